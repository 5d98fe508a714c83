"""The harm of each anomaly in words for people who do not know this suite.

Each text is the end of a sentence that begins with the subject, as in "Kafka 4.3.1 can".
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from verification.vocabulary.anomalies import Anomaly

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
        Anomaly.LOST_NODE: "lose a node while it is upgraded",
        Anomaly.NO_PROGRESS: "stop without an error and process no more inputs",
        Anomaly.STRANDED_PRODUCER: "stop a transactional producer for good",
        Anomaly.SILENT_METRIC: "hide a stuck partition from the metric that operators watch",
    }
)
