"""Signatures: functions over the evidence that recognise a known bug in a violation.

Only evidence gives a name. Release and anomaly alone prove nothing, because another defect can look the same. A violation
without the signature stays unnamed.

`marker-dropped-while-leaderless` (KB-16) needs three facts: a partition of the transaction holds its data without a
marker of the transaction (see `without_marker`); the partition had no leader when the marker was to be sent; and the
coordinator has nothing open for the transactional id any more. There are two proofs that it had no leader:

* The brokers' metadata named no leader at some time between the request to end the transaction and `MARKER_S` after its
  answer (markers are written after the answer). A leader that does not answer is still named.
* The coordinator's log says that the transaction, which had that partition, was complete before any leader was seen. From
  the request until then no leader of the partition answered, and the last look named none: there was none, or no broker
  could tell, as while all brokers start.

Limit: with the second proof, a leader that was not seen may have led in between. A marker that was written to such a
leader and lost with it looks the same.

`refused-duplicate` (KB-17) needs two facts: the producer received the answer that its batch is out of order, and one of
its earlier requests had arrived late, after its transaction. The leader had begun to verify that request and did not
append it: either the transaction was over, or the coordinator was busy, or the batch was known. A batch is known if its
answer names the offset that an earlier operation of the producer received. With any other offset it was appended, to
another transaction (KB-04).

`marker-refused-by-older-leader` (KB-10) needs two facts about a decision that was not completed in time
(`verification.evidence.late_completions`): its coordinator ran 4.2.0 at that time, and a partition of the transaction whose
last stable offset stood, so that it had no marker, was led by a node of an older release.

`verified-by-older-coordinator` (KB-12) needs three facts about a producer whose operations all failed while every node was
up (`verification.evidence.refused_producers`): at least half of them were answered NETWORK_EXCEPTION, which librdkafka names
so only when a broker answered it; the coordinator ran a release older than 3.6.0, which verifies nothing; and a node with
the bug led a partition of the producer's transactions.

`lowered-transaction-version` (KB-40) needs two facts: a broker answered the producer's operation with UNSUPPORTED_VERSION,
and transaction.version was lowered before that answer and not raised again before the operation began.

`repeated-in-a-later-epoch` (KB-41) needs two facts: no two copies of the record in the log have the same producer epoch,
so a later epoch appended what an earlier one had appended; and before that a message of the same producer, which is not
transactional, had timed out in librdkafka, which raises the epoch then.
`producer-id-issued-twice` (KB-42) needs two facts: the record of the transaction log has a producer id that the log also has
for another transactional id; and the cluster had its metadata in ZooKeeper at first.
"""

from __future__ import annotations

import gzip
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from verification.evidence import late_completions, refused_producers
from verification.evidence.lso_samples import leaderless, no_leader_seen
from verification.evidence.run_evidence import RunEvidence
from verification.evidence.transaction_completions import completed_ns
from verification.evidence.transaction_log_rows import NS_PER_MS, wall_clock_ns
from verification.evidence.upgrade_state import leader_at, state_at
from verification.known_bugs import catalogue
from verification.known_bugs.catalogue import KnownBug, Signature
from verification.vocabulary import releases
from verification.vocabulary.errors import ReleaseError
from verification.vocabulary.experiment import FEATURE
from verification.vocabulary.history import FaultRecord, Operation
from verification.vocabulary.transaction_log import TOPIC, TOPIC_INDEX
from verification.vocabulary.violations import Partition, RawViolation

#: The time after the answer to EndTxn in which a marker may still be under way: a restarted coordinator loads its
#: partition and sends the markers of transactions in Prepare within seconds.
MARKER_S = 10.0
#: Coordinator states in which markers are still to come (KIP-664 names).
RUNNING = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort"})
NS = 1_000_000_000


def without_marker(evidence: RunEvidence, ended: Operation) -> frozenset[Partition]:
    """Partitions where the operation's data is not followed by a marker of the operation.

    Its producer wrote nothing after it, or data of a later operation, or a marker with the other decision: that of a later
    transaction which had the partition but wrote nothing there.
    """
    process, operation = ended.process, ended.operation
    rows = evidence.capture_reader.producer_rows(process, operation)
    pending: set[Partition] = set()
    missing: set[Partition] = set()
    for topic_index, partition, _, control, writer, number, *_ in rows:
        here = (topic_index, partition)
        if (writer, number) == (process, operation):
            pending.add(here)
        elif here in pending:
            pending.discard(here)
            if control != ended.intent:
                missing.add(here)
    return frozenset(missing | pending)


def _ended(evidence: RunEvidence, violation: RawViolation) -> Operation | None:
    """The violation's operation when its end was asked for."""
    return next(
        (
            each
            for each in evidence.history.of(Operation)
            if (each.process, each.operation) == violation.operation_key and each.decided_ns is not None
        ),
        None,
    )


def marker_dropped_while_leaderless(evidence: RunEvidence, violation: RawViolation) -> bool:
    """KB-16; see the module's docstring."""
    ended = _ended(evidence, violation)
    if ended is None or ended.decided_ns is None or not evidence.experiment.has_log:
        return False
    states = {each.transactional_id: each.state for each in evidence.captures.coordinator_states}
    state = states.get(ended.transactional_id or "")
    if state is None or state in RUNNING:
        return False
    asked_ns = ended.decided_ns
    until_ns = (ended.completed_ns or asked_ns) + int(MARKER_S * NS)
    return any(
        _leaderless_between(evidence, partition, asked_ns, until_ns)
        or _completed_unseen(evidence, partition, asked_ns, completed_ns(evidence, ended, partition))
        for partition in without_marker(evidence, ended)
    )


def _leaderless_between(evidence: RunEvidence, partition: Partition, asked_ns: int, until_ns: int) -> bool:
    """The first proof: the metadata named no leader while the marker was to be sent."""
    return any(
        span.began_ns <= until_ns and (span.until_ns is None or span.until_ns > asked_ns)
        for span in leaderless(evidence, partition)
    )


def _completed_unseen(evidence: RunEvidence, partition: Partition, asked_ns: int, done_ns: int | None) -> bool:
    """The second proof: the transaction was complete before any leader was seen."""
    return done_ns is not None and no_leader_seen(evidence, partition, asked_ns, done_ns)


#: A leader's answers to a late batch that it does not append: INVALID_TXN_STATE and TRANSACTION_ABORTABLE, because its
#: transaction is over; NOT_ENOUGH_REPLICAS to TV1 producers, because the coordinator is busy
#: (ReplicaManager.handleProduceAppend), after the leader has begun to verify.
_NOT_APPENDED = frozenset({19, 48, 120})
#: The proof that `chaos.faults.late_duplicate` writes.
_LATE = re.compile(
    r"arrived after its transaction and was answered: error codes \((?P<code>-?\d+),?\)"
    r"(, base offset (?P<offset>\d+) on (?P<topic>\S+)-(?P<partition>\d+)$)?"
)
_OUT_OF_ORDER = 45
#: The broker's text for that code, and librdkafka's for its consequence.
_ERROR_TEXTS = ("out of order sequence", "sequence desynchronization")


def refused_duplicate(evidence: RunEvidence, violation: RawViolation) -> bool:
    """KB-17; see the module's docstring."""
    refused = next(
        (
            each
            for each in evidence.history.of(Operation)
            if (each.process, each.operation) == violation.operation_key and each.completed_ns is not None
        ),
        None,
    )
    if refused is None or refused.completed_ns is None:
        return False
    reason = (refused.error_reason or "").lower()
    if refused.error_code != _OUT_OF_ORDER and not any(words in reason for words in _ERROR_TEXTS):
        return False
    return any(
        each.target == refused.transactional_id
        and each.confirmed_ns is not None
        and each.confirmed_ns < refused.completed_ns
        and _not_appended(evidence, refused, each.proof or "")
        for each in evidence.history.of(FaultRecord)
    )


def _not_appended(evidence: RunEvidence, refused: Operation, proof: str) -> bool:
    """Whether a late request was answered without having been appended then."""
    late = _LATE.search(proof)
    if late is None or late["code"] != "0":
        return late is not None and int(late["code"]) in _NOT_APPENDED
    if late["offset"] is None or refused.process not in evidence.acks:
        return False
    place = (evidence.topic_index(late["topic"]), int(late["partition"]), int(late["offset"]))
    with gzip.open(evidence.acks[refused.process], "rb") as lines:
        bodies = map(json.loads, lines)
        earlier = (body["acks"] for body in bodies if body["operation"] < refused.operation)
        return any(tuple(ack[1:4]) == place for acks in earlier for ack in acks)


#: Its coordinators send WriteTxnMarkers v2 to leaders that do not know it.
_SENDS_UNKNOWN_VERSION = "4.2.0"


def marker_refused_by_older_leader(evidence: RunEvidence, violation: RawViolation) -> bool:
    """KB-10; see the module's docstring."""
    late, zero_ns = late_completions.of_violation(evidence, violation), wall_clock_ns(evidence)
    if late is None or zero_ns is None:
        return False
    at_ns = late.at_ms * NS_PER_MS - zero_ns
    running = _running(evidence, at_ns)
    coordinator = running.get(str(leader_at(evidence, TOPIC, late.decided.partition, at_ns)))
    leaders = {running.get(str(leader), "") for leader in late_completions.leaders(evidence, late)}
    older = any(each and releases.parse(each) < releases.parse(_SENDS_UNKNOWN_VERSION) for each in leaders)
    return coordinator == _SENDS_UNKNOWN_VERSION and older


_NETWORK_EXCEPTION = 13
#: Coordinators from this release on answer the requests by which leaders verify transactions (KIP-890).
_ANSWERS_VERIFICATION = "3.6.0"


def verified_by_older_coordinator(evidence: RunEvidence, violation: RawViolation) -> bool:
    """KB-12; see the module's docstring."""
    refused, zero_ns = refused_producers.of_violation(evidence, violation), wall_clock_ns(evidence)
    if refused is None or zero_ns is None or evidence.transaction_log is None:
        return False
    codes = [each.error_code for each in refused.answers]
    if 2 * codes.count(_NETWORK_EXCEPTION) < len(codes):
        return False
    at_ns = refused.last.ended_ms * NS_PER_MS - zero_ns
    running, bug = _running(evidence, at_ns), catalogue.load()["KB-12"]
    own = (each for each in evidence.transaction_log.entries if each.transactional_id == refused.last.transactional_id)
    coordinators = {running.get(str(leader_at(evidence, TOPIC, each.partition, at_ns)), "") for each in own}
    led = {running.get(str(each), "") for each in refused_producers.leaders(evidence, refused)}
    older = all(each and releases.parse(each) < releases.parse(_ANSWERS_VERIFICATION) for each in coordinators)
    return bool(coordinators) and older and any(each and catalogue.affects(bug, each) for each in led)


_TRANSACTION_VERSION = "transaction.version"
_UNSUPPORTED_VERSION = 35
#: The broker's text for that code; client libraries wrap the error in others.
_VERSION_TEXT = "version of api is not supported"


def lowered_transaction_version(evidence: RunEvidence, violation: RawViolation) -> bool:
    """KB-40; see the module's docstring."""
    ended = next(
        (
            each
            for each in evidence.history.of(Operation)
            if (each.process, each.operation) == violation.operation_key and each.completed_ns is not None
        ),
        None,
    )
    if ended is None or ended.completed_ns is None:
        return False
    if ended.error_code != _UNSUPPORTED_VERSION and _VERSION_TEXT not in (ended.error_reason or "").lower():
        return False
    return any(
        began_ns < ended.completed_ns and ended.invoked_ns < until_ns for began_ns, until_ns in _lowered(evidence)
    )


def _lowered(evidence: RunEvidence) -> Iterator[tuple[int, float]]:
    """The times from each lowering of transaction.version until it was raised again."""
    before = int(evidence.experiment.versions.get(f"{FEATURE}{_TRANSACTION_VERSION}", "0"))
    since: int | None = None
    for each in evidence.history.of(FaultRecord):
        level = each.levels.get(_TRANSACTION_VERSION)
        if level is None or each.struck_ns is None or each.applied_ns is None:
            continue
        if level > before and since is not None:
            yield since, each.applied_ns
            since = None
        elif level < before and since is None:
            since = each.struck_ns
        before = level
    if since is not None:
        yield since, math.inf


#: librdkafka's code for a message that was not acknowledged within `message.timeout.ms`.
_MESSAGE_TIMED_OUT = -192


def repeated_in_a_later_epoch(evidence: RunEvidence, violation: RawViolation) -> bool:
    """KB-41; see the module's docstring."""
    operations = evidence.history.of(Operation)
    repeated = next((each for each in operations if (each.process, each.operation) == violation.operation_key), None)
    if repeated is None or repeated.completed_ns is None or repeated.transactional_id is not None:
        return False
    if not evidence.experiment.has_log or not any(
        each.process == repeated.process
        and each.operation < repeated.operation
        and each.error_code == _MESSAGE_TIMED_OUT
        and (each.producer_epoch or 0) < (repeated.producer_epoch or 0)
        for each in operations
    ):
        return False
    rows = evidence.capture_reader.producer_rows(repeated.process, repeated.operation)
    record = (violation.topic_index, violation.partition, repeated.process, repeated.operation, violation.index)
    epochs = [epoch for at, partition, _, _, *identity, epoch in rows if (at, partition, *identity) == record]
    return len(epochs) > 1 and len(set(epochs)) == len(epochs)


def producer_id_issued_twice(evidence: RunEvidence, violation: RawViolation) -> bool:
    """KB-42; see the module's docstring."""
    log = evidence.transaction_log
    if log is None or violation.topic_index != TOPIC_INDEX or not _began_with_zookeeper(evidence):
        return False
    at = (violation.partition, violation.offset)
    users = {each.producer_id: each.transactional_id for each in log.entries if (each.partition, each.offset) == at}
    return any(users.get(each.producer_id, each.transactional_id) != each.transactional_id for each in log.entries)


def _began_with_zookeeper(evidence: RunEvidence) -> bool:
    """Whether nodes were started in that mode, which their release then names."""
    return any("ZooKeeper" in each.split() for each in evidence.experiment.nodes.values())


SIGNATURES: Mapping[Signature, Callable[[RunEvidence, RawViolation], bool]] = {
    Signature.MARKER_DROPPED_WHILE_LEADERLESS: marker_dropped_while_leaderless,
    Signature.REFUSED_DUPLICATE: refused_duplicate,
    Signature.MARKER_REFUSED_BY_OLDER_LEADER: marker_refused_by_older_leader,
    Signature.VERIFIED_BY_OLDER_COORDINATOR: verified_by_older_coordinator,
    Signature.LOWERED_TRANSACTION_VERSION: lowered_transaction_version,
    Signature.REPEATED_IN_A_LATER_EPOCH: repeated_in_a_later_epoch,
    Signature.PRODUCER_ID_ISSUED_TWICE: producer_id_issued_twice,
}


def _software(release: str) -> str:
    """A release without the mode that a node has in a migration, such as `3.9.2 KRaft`; it may be empty."""
    return release.partition(" ")[0]


def _running(evidence: RunEvidence, at_ns: int) -> dict[str, str]:
    """The releases of the nodes that were up, without their modes."""
    return {node: _software(release) for node, release in state_at(evidence, at_ns).releases.items()}


def _concerns(bug: KnownBug, evidence: RunEvidence) -> bool:
    """Whether a release that runs at some time in the run has the bug."""
    try:
        return any(
            catalogue.affects(bug, _software(each))
            for each in {evidence.experiment.release, *evidence.experiment.nodes.values()}
        )
    except ReleaseError:
        return False


def recognise(evidence: RunEvidence, violations: Iterable[RawViolation]) -> str | None:
    """The id of the known bug that explains every one of the violations (of one anomaly); None when none does."""
    every = tuple(violations)
    for bug in catalogue.load().values():
        if bug.signature is None or not _concerns(bug, evidence):
            continue
        matches = SIGNATURES[bug.signature]
        if every and all(each.anomaly in bug.anomalies and matches(evidence, each) for each in every):
            return bug.id
    return None
