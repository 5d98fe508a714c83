"""Names of known defects and limitations that the explorer finds, by signature.

The model itself names an answer whose consequences it knows, and the walk goes on after it; NAMED explains these names.
A finding that ends a walk is named by its signature and its release alone. `KB` ids are those of
`verification/known_bugs/catalogue.toml`, which has one entry per cause. `EX` ids tell apart the explorer's findings:
EX-01 to EX-03 are KB-19, EX-04 is KB-21, EX-05 and EX-06 are KB-20.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from verification.vocabulary.releases import within

#: The names after which a walk goes on, each with its explanation.
NAMED: Mapping[str, str] = {
    "KB-03": "EndTxn of one transaction, sent again, decides the next one: TV1 requests do not name their transaction.",
    "KB-04": "A late request of one transaction is taken for the next one: TV1 requests do not name their transaction.",
    "KB-05": "A first sequence above zero is accepted on a partition that never held a record.",
    "KB-11": "A TV2 transaction may begin above sequence zero.",
    "KB-17": "A batch that was verified and not appended shuts out the batch that is due.",
    "EX-01": (
        "InitProducerId with a stale epoch aborts the transaction that the current owner has open. "
        "TransactionCoordinator.prepareInitProducerIdTransit compares the epoch of the request only where nothing is "
        "open (TransactionMetadata.prepareIncrementProducerEpoch); for Ongoing it fences the owner whatever epoch was "
        "named, and refuses the zombie only when it comes back. KIP-360 (KAFKA-8710) lets only the current and the last "
        "epoch pass, and fences all others."
    ),
    "EX-02": (
        "InitProducerId of a producer that continued (KIP-360), arriving a second time, aborts the transaction that "
        "the same producer has begun since. As EX-01: in Ongoing no epoch is looked at, not even the last one, which "
        "says that the request is a repetition."
    ),
    "EX-03": (
        "InitProducerId with an epoch that no instance was given aborts the open transaction, and then succeeds: "
        "the abort raises the epoch to the one that was named. As EX-01."
    ),
    "EX-04": (
        "Before 4.0 a batch or an offset with an epoch that no instance was given joins the transaction that its partition "
        "has open. The marker, of a lower epoch, is then refused: the transaction stays in PrepareCommit, the last stable "
        "offset stands, and nothing of it becomes visible. UnifiedLog.hasOngoingTransaction compared the producer "
        "id alone, so that the coordinator was not asked; 4.0 compares the epoch too (KAFKA-14563)."
    ),
    "EX-05": (
        "A batch with an epoch that no instance was given is refused (47) and yet shuts out the current owner: every "
        "further batch in order of its open transaction is answered 45 until the transaction is ended. "
        "UnifiedLog.maybeStartTransactionVerification keeps a VerificationStateEntry for the refused batch, because its "
        "epoch differs from that of the open transaction, and ProducerAppendInfo.checkSequence holds every batch of the "
        "producer against that entry's lowest sequence, whatever its epoch. The mechanism is that of KB-17, in the middle "
        "of a transaction and with TV2 too."
    ),
    "EX-06": (
        "In 4.0 a late batch of a lower epoch is refused (47) and yet shuts out the current owner: every further batch in "
        "order of its open transaction is answered 45 until the transaction is ended. As EX-05, but by a request that "
        "networks really deliver late; since 4.1 the leader refuses a lower epoch before it keeps anything (KAFKA-18042)."
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFinding:
    """A name for findings whose signature matches, on a range of releases; `until` None for all later ones."""

    name: str
    pattern: str
    since: str = "0.11"
    until: str | None = None


#: Only one consequence of EX-04: the markers are refused, and the transaction never leaves Prepare.
KNOWN: tuple[KnownFinding, ...] = (
    KnownFinding(name="EX-04", pattern="TV1: after * the coordinator says Prepare* after EX-04", until="3.9"),
)


def name_of(signature: str, release: str) -> str:
    """The name of a signature; empty for a new one."""
    if signature in NAMED:
        return signature
    return next(
        (
            each.name
            for each in KNOWN
            if fnmatchcase(signature, each.pattern) and within(release, each.since, each.until)
        ),
        "",
    )
