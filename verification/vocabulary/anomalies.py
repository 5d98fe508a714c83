"""The twenty-four anomalies that a history of a Kafka cluster can show, with their definitions and their severity.

Names are Jepsen's and Adya's where those exist. Three sources of truth are compared: *told*, the answer to the producer;
the *log* with its control records; and *delivered*, the records that a consumer received. A definition names a wrong. It
never says whether that wrong is allowed. The requirements decide that (`verification.requirements`): a subject without
idempotence may duplicate, and an observer at read_uncommitted may see aborted records.

One defect has one primary finding. The severity order puts silent and irrevocable wrongs before mere delays. It also
decides between two definitions that describe one defect (`excludes`). Whether a wrong record in the log is worse than a
missing one is a matter of taste; both are worse than a delay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class Anomaly(StrEnum):
    """A named kind of wrongness, the most severe first."""

    LOST_WRITE = "lost-write"
    PHANTOM_RECORD = "phantom-record"
    INCONSISTENT_OFFSET = "inconsistent-offset"
    TORN_TRANSACTION = "torn-transaction"
    ABORTED_READ = "aborted-read"
    HIDDEN_COMMITTED = "hidden-committed"
    ZOMBIE_WRITE = "zombie-write"
    OFFSET_WITHOUT_OUTPUT = "offset-without-output"
    STATE_DIVERGENCE = "state-divergence"
    DUPLICATE = "duplicate"
    OUTPUT_WITHOUT_OFFSET = "output-without-offset"
    EARLY_READ = "early-read"
    REORDERED_WRITE = "reordered-write"
    BROKEN_SEQUENCE = "broken-sequence"
    POLL_SKIP = "poll-skip"
    NONMONOTONIC_POLL = "nonmonotonic-poll"
    ILLEGAL_TRANSITION = "illegal-transition"
    HUNG_TRANSACTION = "hung-transaction"
    STUCK_LSO = "stuck-lso"
    DECIDED_LATE = "decided-late"
    LOST_NODE = "lost-node"
    NO_PROGRESS = "no-progress"
    STRANDED_PRODUCER = "stranded-producer"
    SILENT_METRIC = "silent-metric"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnomalyDefinition:
    """The meaning of an anomaly: `severity` 1 is the worst; `definition` and `why_illegal` are one sentence each.

    `excludes` says in one sentence which finding wins when two definitions describe one defect; otherwise it is empty.
    """

    anomaly: Anomaly
    severity: int
    definition: str
    why_illegal: str
    excludes: str = ""


# (definition, why it is illegal, exclusions), keyed in the enum's order, which is the severity order.
_SENTENCES: Mapping[Anomaly, tuple[str, str, str]] = {
    Anomaly.LOST_WRITE: (
        "A record is missing from the log although its write or commit was acknowledged to its producer.",
        "An acknowledgement with acks=all is Kafka's promise that the record survives every failure that leaves an"
        " in-sync replica.",
        "",
    ),
    Anomaly.PHANTOM_RECORD: (
        "The log holds a record that no producer of the run sent, or a record whose content was changed.",
        "A log may hold only the records that were sent, byte for byte; anything else is corruption or data of another"
        " producer.",
        "",
    ),
    Anomaly.INCONSISTENT_OFFSET: (
        "One offset of one partition had two different contents, on two replicas or in two polls, or its content is"
        " gone.",
        "An offset below the high watermark names one record for ever, and consumers store it as their only position.",
        "",
    ),
    Anomaly.TORN_TRANSACTION: (
        "When all work has ended, some but not all records of one transaction are visible under read_committed.",
        "A transaction is atomic across partitions and brokers: all of its records become visible or none.",
        "The missing records of a torn transaction are not reported again as lost or hidden.",
    ),
    Anomaly.ABORTED_READ: (
        "A record of a transaction whose outcome is abort was delivered under read_committed, or a copy of a record that is"
        " aborted or undecided is committed.",
        "An aborted transaction never happened, and read_committed exists to keep its records from readers"
        " (Adya's G1a).",
        "A copy is not reported if read_committed delivered its input, because then the input is.",
    ),
    Anomaly.HIDDEN_COMMITTED: (
        "The log holds a record whose outcome is commit, but read_committed does not deliver it when all work has ended.",
        "A committed record that is never delivered is lost to every reader that relies on transactions.",
        "Records at or above a last stable offset that does not move are reported as stuck-lso instead.",
    ),
    Anomaly.ZOMBIE_WRITE: (
        "A committed record was written by a producer epoch or instance that had already been superseded.",
        "Initialising a transactional id promises that every older instance of it is fenced from that moment on.",
        "",
    ),
    Anomaly.OFFSET_WITHOUT_OUTPUT: (
        "A copier's committed input offset covers an input record whose output is not committed.",
        "Offsets and outputs commit in one transaction; an offset that runs ahead makes the copier skip its input.",
        "",
    ),
    Anomaly.STATE_DIVERGENCE: (
        "A committed output of a pipeline that counts its inputs by key has no count, or not the count of the output of its"
        " key before it plus one, or the key was in another partition before, or the state at the end has another count.",
        "The state of an exactly-once pipeline reflects each input once, so the outputs of a key count 1, 2, 3 and so on"
        " up to the count in its state.",
        "An output that is a duplicate is reported only as such.",
    ),
    Anomaly.DUPLICATE: (
        "One record identity is found at two offsets that both count as committed.",
        "An idempotent or transactional producer promises that a retry never adds a second copy.",
        "",
    ),
    Anomaly.OUTPUT_WITHOUT_OFFSET: (
        "A copier's output is committed, but the committed input offset does not cover the input record of that output.",
        "Offsets and outputs commit in one transaction; an offset that stays behind makes the copier repeat output.",
        "",
    ),
    Anomaly.EARLY_READ: (
        "A record was delivered under read_committed before the commit of its transaction was invoked.",
        "A transaction can still abort until its producer asks for the commit, so readers must not see its records.",
        "A record that is also an aborted-read is reported only as such.",
    ),
    Anomaly.REORDERED_WRITE: (
        "Records that one process sent to one partition are in that partition in an order that is not the send order.",
        "An idempotent producer with at most five requests in flight keeps the send order per partition.",
        "",
    ),
    Anomaly.BROKEN_SEQUENCE: (
        "The sequence numbers of a producer have a gap or a repetition in the log of a partition.",
        "A leader accepts only the next sequence number: a gap means that it accepted a wrong one, or that earlier"
        " records are lost.",
        "It is not reported again where another finding shows that a record of the producer is missing, duplicated or"
        " not in its place.",
    ),
    Anomaly.POLL_SKIP: (
        "The polls of an observer skipped a record of a partition that they had to return.",
        "A consumer receives every visible record of its partitions in order unless it seeks.",
        "",
    ),
    Anomaly.NONMONOTONIC_POLL: (
        "An observer received an offset that is not above the offset that it received before on the same partition.",
        "A consumer that neither seeks nor loses its partition only moves forward.",
        "",
    ),
    Anomaly.ILLEGAL_TRANSITION: (
        "A record of the transaction log cannot follow the records that its coordinator wrote before for the same"
        " transactional id, or has the producer id of another one.",
        "Coordinators decide by this log and load it after a failover: an illegal step is a transaction that is decided"
        " twice, or an epoch that lets a fenced producer write.",
        "",
    ),
    Anomaly.HUNG_TRANSACTION: (
        "A transaction is open on a partition while its coordinator has no open transaction for that producer there.",
        "No coordinator will ever decide it, so the last stable offset does not move until an operator aborts the"
        " transaction by hand.",
        "The last stable offset that it holds back is not reported again as stuck-lso.",
    ),
    Anomaly.STUCK_LSO: (
        "The last stable offset stays below the high watermark for longer than its bound, although no transaction may be"
        " open any more.",
        "Every committed record has to become visible within a bounded time; a last stable offset that does not move"
        " hides all later ones.",
        "",
    ),
    Anomaly.DECIDED_LATE: (
        "The log holds no marker of a transaction on a partition, and the marker of the producer's next transaction there"
        " decided it.",
        "A coordinator writes the marker of a transaction before its producer may begin the next one; by the marker of"
        " another transaction the outcome may differ from the one that was acknowledged.",
        "A transaction that is still open on the partition at the end is reported as hung-transaction instead.",
    ),
    Anomaly.LOST_NODE: (
        "A node that was started with another release, on the data of the release before it, ended by itself or did not come"
        " back within its bound; or a node ended by itself while a cluster was upgraded.",
        "A cluster is upgraded and rolled back node by node; while one does not come back, the next failure stops its"
        " writers.",
        "A node that its machine kept from running is no finding; then the run is an error.",
    ),
    Anomaly.NO_PROGRESS: (
        "A pipeline committed no output for 90 s, although all its instances ran, no fault held, and committed inputs had"
        " waited for as long; or a third of a client's operations had no acknowledgement, or its processes ended again and"
        " again, while no fault held and another client worked on the same cluster.",
        "A client or an exactly-once pipeline may be late by a session, a transaction timeout and a start; one that stands"
        " for ever delivers nothing.",
        "A pipeline or client whose machine was too slow for other clients as well is no finding.",
    ),
    Anomaly.STRANDED_PRODUCER: (
        "A transactional producer received an error after which it can never go on, although no other producer had"
        " superseded it; or in an upgrade all its operations failed for more than 4 s, although every node was up.",
        "Idempotence and epochs exist because networks delay and repeat requests: a transaction may have to be aborted,"
        " but its producer must be able to go on.",
        "An error for good counts only where the subject claims that its producers survive. An operation that lasted as"
        " long as the transaction timeout does not count, because its coordinator may have aborted the transaction and"
        " fenced it.",
    ),
    Anomaly.SILENT_METRIC: (
        "The last stable offset of a partition stood below the high watermark for 15 s, and its leader's metric"
        " LastStableOffsetLag was 0 for all of that time.",
        "Operators alert on metrics and see nothing else: a metric that contradicts the broker's own answers hides a stuck"
        " partition.",
        "",
    ),
}

#: Every anomaly with its definition, the most severe first; read-only.
DEFINITIONS: Mapping[Anomaly, AnomalyDefinition] = MappingProxyType(
    {
        anomaly: AnomalyDefinition(
            anomaly=anomaly,
            severity=severity,
            definition=_SENTENCES[anomaly][0],
            why_illegal=_SENTENCES[anomaly][1],
            excludes=_SENTENCES[anomaly][2],
        )
        for severity, anomaly in enumerate(Anomaly, start=1)
    }
)


def severity(anomaly: Anomaly) -> int:
    """The rank of an anomaly, 1 for the most severe; a sort key for findings."""
    return DEFINITIONS[anomaly].severity
