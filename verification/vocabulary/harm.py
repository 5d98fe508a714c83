"""The harm of each anomaly in words for people who do not know this suite: as a danger, and as something that happened."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from verification.vocabulary.anomalies import Anomaly

#: The end of a sentence that begins with the subject, as in "Kafka 4.3.1 can".
HARM: Mapping[Anomaly, str] = MappingProxyType(
    {
        Anomaly.LOST_WRITE: "lose records that it acknowledged",
        Anomaly.PHANTOM_RECORD: "store records that no producer sent",
        Anomaly.INCONSISTENT_OFFSET: "give different records for one offset",
        Anomaly.TORN_TRANSACTION: "show a part of a transaction without the rest",
        Anomaly.ABORTED_READ: "show records of aborted transactions to readers that ask for committed ones",
        Anomaly.HIDDEN_COMMITTED: "keep committed records from readers",
        Anomaly.ZOMBIE_WRITE: "accept records of a producer that was fenced",
        Anomaly.OFFSET_WITHOUT_OUTPUT: "commit the offset of an input without its output, so that the input is skipped",
        Anomaly.STATE_DIVERGENCE: "count inputs wrongly in its state",
        Anomaly.DUPLICATE: "store a record twice",
        Anomaly.OUTPUT_WITHOUT_OFFSET: "commit an output without the offset of its input, which is then processed twice",
        Anomaly.EARLY_READ: "show records before their commit was requested",
        Anomaly.REORDERED_WRITE: "store records in another order than they were sent",
        Anomaly.BROKEN_SEQUENCE: "leave a gap or a repetition in the sequence numbers of a producer",
        Anomaly.POLL_SKIP: "skip records when a consumer reads",
        Anomaly.NONMONOTONIC_POLL: "give a consumer older records again",
        Anomaly.ILLEGAL_TRANSITION: "write a step into its transaction log that must not follow the step before it",
        Anomaly.HUNG_TRANSACTION: "leave a transaction open for ever, so that later records stay hidden",
        Anomaly.STUCK_LSO: "hide committed records for longer than its bound",
        Anomaly.DECIDED_LATE: "decide a transaction by the marker of the next one, perhaps against the answer that it gave",
        Anomaly.LOST_NODE: "lose a node while it is upgraded",
        Anomaly.NO_PROGRESS: "stop without an error while others work",
        Anomaly.STRANDED_PRODUCER: "stop a transactional producer for good",
        Anomaly.SILENT_METRIC: "hide a stuck partition from the metric that operators watch",
    }
)

#: The words after a count; `{s}` is the ending of the plural.
_SEEN: Mapping[Anomaly, str] = MappingProxyType(
    {
        Anomaly.LOST_WRITE: "acknowledged record{s} lost",
        Anomaly.PHANTOM_RECORD: "record{s} that no producer sent",
        Anomaly.INCONSISTENT_OFFSET: "offset{s} with different contents",
        Anomaly.TORN_TRANSACTION: "transaction{s} shown only in part",
        Anomaly.ABORTED_READ: "aborted record{s} shown to readers of committed records",
        Anomaly.HIDDEN_COMMITTED: "committed record{s} that no reader received",
        Anomaly.ZOMBIE_WRITE: "record{s} accepted from a fenced producer",
        Anomaly.OFFSET_WITHOUT_OUTPUT: "input{s} skipped, because the offset was committed without the output",
        Anomaly.STATE_DIVERGENCE: "output{s} with a wrong count",
        Anomaly.DUPLICATE: "record{s} stored twice",
        Anomaly.OUTPUT_WITHOUT_OFFSET: "output{s} committed without the offset of the input",
        Anomaly.EARLY_READ: "record{s} shown before the commit was requested",
        Anomaly.REORDERED_WRITE: "record{s} not in the order of sending",
        Anomaly.BROKEN_SEQUENCE: "gap{s} or repetition{s} in the sequence numbers of producers",
        Anomaly.POLL_SKIP: "record{s} skipped by a consumer",
        Anomaly.NONMONOTONIC_POLL: "poll{s} that returned older records again",
        Anomaly.ILLEGAL_TRANSITION: "illegal step{s} in the transaction log",
        Anomaly.HUNG_TRANSACTION: "transaction{s} left open on a partition",
        Anomaly.STUCK_LSO: "partition{s} on which the last stable offset did not move on",
        Anomaly.DECIDED_LATE: "transaction{s} decided by the marker of the next one",
        Anomaly.LOST_NODE: "node{s} that did not come back",
        Anomaly.NO_PROGRESS: "standstill{s} of a pipeline or client while others worked",
        Anomaly.STRANDED_PRODUCER: "producer{s} stopped for good",
        Anomaly.SILENT_METRIC: "stuck partition{s} that the metric did not show",
    }
)

#: The same where a reader alone shows it (`Finding.reader`), about that reader.
READER_HARM: Mapping[Anomaly, str] = MappingProxyType(
    {
        Anomaly.ABORTED_READ: "return records of aborted transactions, although it was asked for committed ones",
        Anomaly.EARLY_READ: "return records before their commit was requested, although it was asked for committed ones",
        Anomaly.POLL_SKIP: "skip records that other readers receive",
        Anomaly.NONMONOTONIC_POLL: "return older records again",
    }
)


def seen(anomaly: str, count: int) -> str:
    """What happened, with its count: `7 transactions left open on a partition`; an unknown name stays as it is."""
    if anomaly not in _SEEN:
        return f"{anomaly} × {count}"
    return f"{count} {_SEEN[Anomaly(anomaly)].format(s='' if count == 1 else 's')}"
