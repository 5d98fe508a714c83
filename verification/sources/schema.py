"""The columns of every dataframe of evidence, as explicit schemas.

Every dataframe has a column `run`, so that one job judges many runs. Topics are their index in `Experiment.topics`
(`topic_index`), the same number as in identities; findings have names again. Identity columns are null where `valid` is
false: this suite did not write the value, or it changed on its way.

`digest` is CRC-32 of the whole value and `identity_digest` CRC-32 of its first 96 bytes. They compare the values that two
readers received at one offset. They do not prove integrity; the checksum of the identity does (`valid`).
"""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)


def _schema(*columns: tuple[str, DataType]) -> StructType:
    return StructType([StructField(name, data_type, nullable=True) for name, data_type in columns])


_STRING, _INT, _LONG, _BOOLEAN = StringType(), IntegerType(), LongType(), BooleanType()

_PLACE: tuple[tuple[str, DataType], ...] = (
    ("run", _STRING),
    ("topic", _STRING),
    ("topic_index", _INT),
    ("partition", _INT),
    ("offset", _LONG),
    ("timestamp_ms", _LONG),
)

#: The fields of `verification.vocabulary.identity.Identity`; `identity_run` is its `run`.
IDENTITY: tuple[tuple[str, DataType], ...] = (
    ("identity_run", _STRING),
    ("process", _INT),
    ("operation", _LONG),
    ("kind", _STRING),
    ("index", _INT),
    ("count", _INT),
    ("intended_topic_index", _INT),
    ("intended_partition", _INT),
    ("send_order", _LONG),
    ("source_partition", _INT),
    ("source_offset", _LONG),
)

_CONTENT: tuple[tuple[str, DataType], ...] = (("valid", _BOOLEAN), ("digest", _LONG), ("identity_digest", _LONG))

#: `log/`: every record and every control record by offset, as the leader's log holds them.
#: `leader_epoch` is that of the leader which appended the record (KIP-101); null in older evidence.
#: `control` is null for data, otherwise `commit`, `abort`, or `other` for control types that do not end transactions.
LOG = _schema(
    *_PLACE,
    ("producer_id", _LONG),
    ("producer_epoch", _INT),
    ("sequence", _INT),
    ("leader_epoch", _INT),
    ("control", _STRING),
    ("transactional", _BOOLEAN),
    *IDENTITY,
    *_CONTENT,
)

#: `uncommitted/` and `committed/`: the records that a consumer of that isolation level received.
DELIVERED = _schema(*_PLACE, *IDENTITY, *_CONTENT)

#: One row per acknowledged record; `offset` is -1 where the answer has none, `outcome` ok, fail or info.
ACKS = _schema(
    ("run", _STRING),
    ("process", _INT),
    ("operation", _LONG),
    ("index", _INT),
    ("topic_index", _INT),
    ("partition", _INT),
    ("offset", _LONG),
    ("outcome", _STRING),
)

#: One line of `acks/<process>.jsonl.gz`; an ack is [index, topic_index, partition, offset, outcome].
ACKS_LINE = _schema(("operation", _LONG), ("acks", ArrayType(ArrayType(_STRING))))

#: The live observers; `observer_index` is the place in `Experiment.observers`, `committed_reader` whether the observer
#: declares read_committed, by which it is judged.
OBSERVERS = _schema(
    ("run", _STRING),
    ("observer_index", _INT),
    ("observer", _STRING),
    ("committed_reader", _BOOLEAN),
)

#: One row per record that a live observer received, in order of receipt: (poll, position). The identity is parsed from
#: the text that the client returned.
OBSERVATIONS = _schema(
    ("run", _STRING),
    ("observer_index", _INT),
    ("committed_reader", _BOOLEAN),
    ("poll", _LONG),
    ("position", _INT),
    ("received_ns", _LONG),
    ("topic_index", _INT),
    ("partition", _INT),
    ("offset", _LONG),
    *IDENTITY,
    ("valid", _BOOLEAN),
    ("identity_digest", _LONG),
)

#: One line of `observations/<observer>.jsonl.gz`; a record is [topic_index, partition, offset, text].
OBSERVATIONS_LINE = _schema(("poll", _LONG), ("received_ns", _LONG), ("records", ArrayType(ArrayType(_STRING))))

#: One row per operation of the history. `told` is committed, aborted or unknown for transactions and null for the
#: rest; `plain` means that no transaction binds its records (append, and copies of control copiers).
OPERATIONS = _schema(
    ("run", _STRING),
    ("process", _INT),
    ("operation", _LONG),
    ("action", _STRING),
    ("outcome", _STRING),
    ("told", _STRING),
    ("plain", _BOOLEAN),
    ("transactional_id", _STRING),
    ("records", _INT),
    ("invoked_ns", _LONG),
    ("decided_ns", _LONG),
    ("completed_ns", _LONG),
    ("fatal", _BOOLEAN),
)

#: One row per partition: its ends, as its leader answered at quiescence.
ENDS = _schema(
    ("run", _STRING),
    ("topic_index", _INT),
    ("partition", _INT),
    ("start", _LONG),
    ("high_watermark", _LONG),
    ("last_stable_offset", _LONG),
)

#: One row per partition and wait for LSO = high watermark (`verification.vocabulary.history.Settled`).
SETTLED = _schema(
    ("run", _STRING),
    ("topic_index", _INT),
    ("partition", _INT),
    ("high_watermark", _LONG),
    ("last_stable_offset", _LONG),
    ("before_fencing", _BOOLEAN),
)

#: One row per producer with an open transaction, as a partition's leader answered (DescribeProducers, KIP-664).
OPEN_PRODUCERS = _schema(
    ("run", _STRING),
    ("topic_index", _INT),
    ("partition", _INT),
    ("producer_id", _LONG),
    ("offset", _LONG),
)

#: One row per transactional id (DescribeTransactions, KIP-664).
COORDINATOR_STATES = _schema(("run", _STRING), ("producer_id", _LONG), ("state", _STRING))

#: One row per input partition of a copiers' group: its committed offset, -1 when there is none.
GROUP_OFFSETS = _schema(("run", _STRING), ("topic_index", _INT), ("partition", _INT), ("offset", _LONG))

#: One row per run: the parts of its experiment that checks need. `at_least_once`: its copies may come again. `forgetful`: it
#: lasted so long that brokers may have forgotten producers. `transaction_timeout_ns`: so long its transactions may be open;
#: Kafka's default where the experiment does not say it.
RUNS = _schema(
    ("run", _STRING),
    ("has_log", _BOOLEAN),
    ("order_claimed", _BOOLEAN),
    ("survival_claimed", _BOOLEAN),
    ("fan_out", _INT),
    ("at_least_once", _BOOLEAN),
    ("forgetful", _BOOLEAN),
    ("transaction_timeout_ns", _LONG),
)

#: One row per place, as `checks.places` describes.
PLACES = _schema(
    ("run", _STRING),
    ("process", _INT),
    ("operation", _LONG),
    ("topic_index", _INT),
    ("partition", _INT),
    ("offset", _LONG),
    ("in_log", _BOOLEAN),
    ("control", _STRING),
    ("transactional", _BOOLEAN),
    ("producer_id", _LONG),
    ("producer_epoch", _INT),
    ("sequence", _INT),
    ("sequence_due", _INT),
    ("sequence_known", _BOOLEAN),
    ("outcome", _STRING),
    ("epoch_before", _INT),
    ("adopted", _BOOLEAN),
    ("next_process", _INT),
    ("next_operation", _LONG),
    *IDENTITY[4:],
    ("genuine", _BOOLEAN),
    *((name, _LONG) for name in ("committed", "uncommitted", "received", "returned")),
    *((name, _LONG) for name in ("previous_offset", "first_received_ns", "first_observer")),
    ("inconsistent", _BOOLEAN),
    ("gone_process", _INT),
    ("gone_operation", _LONG),
    ("gone_index", _INT),
    ("has_log", _BOOLEAN),
    ("order_claimed", _BOOLEAN),
    ("fan_out", _INT),
    ("high_watermark", _LONG),
    ("last_stable_offset", _LONG),
    ("known", _BOOLEAN),
    ("told", _STRING),
    ("plain", _BOOLEAN),
    ("size", _INT),
    ("decided_ns", _LONG),
    ("superseded_ns", _LONG),
)

#: One row per record, as `checks.records` describes.
RECORDS = _schema(
    ("run", _STRING),
    ("process", _INT),
    ("operation", _LONG),
    ("index", _INT),
    ("expected", _BOOLEAN),
    ("acked", _BOOLEAN),
    ("at_topic_index", _INT),
    ("at_partition", _INT),
    ("at_offset", _LONG),
    *((name, _BOOLEAN) for name in ("visible", "waiting", "open")),
    ("size", _INT),
    ("copies", _LONG),
    ("known", _BOOLEAN),
    ("told", _STRING),
    ("plain", _BOOLEAN),
    ("has_log", _BOOLEAN),
    ("seen", _LONG),
    ("waits", _LONG),
    ("any_open", _BOOLEAN),
)

#: The result of every check. `topic_index` becomes the topic's name when the finding is written. `places` are the
#: acknowledged places of missing records, for attribution. `cause` is null for a primary finding; otherwise it names
#: the explanation (see `verification.judge.primary_findings`). `harm` and `live` are those of
#: `RawViolation`.
VIOLATIONS = _schema(
    ("run", _STRING),
    ("anomaly", _STRING),
    ("process", _INT),
    ("operation", _LONG),
    ("index", _INT),
    ("topic_index", _INT),
    ("partition", _INT),
    ("offset", _LONG),
    ("observer", _STRING),
    ("detail", _STRING),
    ("cause", _STRING),
    ("places", ArrayType(_STRING)),
    ("harm", _INT),
    ("live", _BOOLEAN),
)
