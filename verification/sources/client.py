"""Reads with the consumer of a client library at an isolation level: the source `client`.

This source is independent of our own Fetch decoder. librdkafka filters aborted records by itself, so its records under
`read_committed` are those that users see. It shows neither producers nor control records.

Reading ends at pinned ends. Offsets of control records or aborted records are never returned. So a range is over with the
record at `end - 1`, or when librdkafka's next fetch offset (partition EOF) is at or beyond the end. An EOF below the end
is stale, or the data is not there yet: the reader goes on until its deadline.

librdkafka blocks for the whole timeout of `consume` unless the requested number of messages came, hence a short timeout.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from verification.sources.parse import identity_columns, referring_columns
from verification.sources.ranges import Range, RangeGroup, decode, grouped
from verification.sources.schema import DELIVERED
from verification.vocabulary.errors import CaptureError, ReaderTimeoutError
from verification.vocabulary.input_reference import VALUE, finder

if TYPE_CHECKING:
    from confluent_kafka import Consumer

#: Messages of one record batch; above some thousands the size makes no difference.
BATCH = 20_000
#: The timeout of one `consume`; the loop checks ends and the deadline this often.
CONSUME_S = 0.05

Place = tuple[str, int]


class ClientReader(DataSourceReader):
    """Reads groups of ranges, one consumer per group; its rows are those of `DELIVERED`.

    Options: `bootstrap`, `isolation`, `run`, `ranges` (see `ranges.encode`), `tasks`, `timeout_s`, `settings` (JSON of
    further settings of librdkafka). Ranges are not cut: one consumer goes through a partition once.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self.bootstrap = options["bootstrap"]
        self.isolation = options["isolation"]
        self.run = options["run"]
        self.ranges = decode(options["ranges"])
        self.tasks = int(options["tasks"])
        self.timeout_s = float(options["timeout_s"])
        self.settings: dict[str, Any] = json.loads(options["settings"])

    def partitions(self) -> list[InputPartition]:
        """Few Spark partitions for many topic partitions."""
        return list(grouped(self.ranges, self.tasks))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Record batches of `DELIVERED`; raises ReaderTimeoutError when an end is not reached in time."""
        assert isinstance(partition, RangeGroup)
        if not partition.ranges:
            return
        consumer = self._consumer(partition.ranges)
        try:
            yield from self._batches(consumer, partition.ranges)
        finally:
            consumer.close()

    def _consumer(self, ranges: tuple[Range, ...]) -> Consumer:
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer(
            {
                "check.crcs": True,
                **self.settings,
                "bootstrap.servers": self.bootstrap,
                "isolation.level": self.isolation,
                # Needed by librdkafka, never joined: partitions are assigned and nothing is committed.
                "group.id": "onceproof-witness",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "enable.partition.eof": True,
                # A pinned start that is gone must be an error, not silently another offset.
                "auto.offset.reset": "error",
                # The log does not grow: an immediate answer with any data beats the default wait of half a second.
                "fetch.wait.max.ms": 50,
                "fetch.min.bytes": 1,
                # A pinned end may lie before the log's end; do not prefetch far beyond it.
                "queued.min.messages": 2 * BATCH,
            }
        )
        consumer.assign([TopicPartition(each.topic, each.partition, each.start) for each in ranges])
        return consumer

    def _batches(self, consumer: Consumer, ranges: tuple[Range, ...]) -> Iterator[pa.RecordBatch]:
        open_ends: dict[Place, Range] = {(each.topic, each.partition): each for each in ranges}
        ends = dict(open_ends)
        at: dict[Place, int] = {place: each.start for place, each in ends.items()}
        deadline = time.monotonic() + self.timeout_s
        while open_ends:
            if time.monotonic() > deadline:
                raise ReaderTimeoutError(self._stuck(open_ends, at))
            kept: list[tuple[Range, Any]] = []
            for message in consumer.consume(BATCH, CONSUME_S):
                place, offset = self._where(message)
                at[place] = max(at[place], offset)
                wanted = ends[place]
                if message.error() is None and offset < wanted.end:
                    kept.append((wanted, message))
                reached = offset if message.error() is not None else offset + 1
                if reached >= wanted.end:
                    open_ends.pop(place, None)
            if kept:
                # Progress was made: the timeout bounds silence, not the amount of data.
                deadline = time.monotonic() + self.timeout_s
                yield self._arrow(kept)

    def _where(self, message: Any) -> tuple[Place, int]:
        """The place of a message or of a partition EOF, whose offset is the next one to be fetched."""
        from confluent_kafka import KafkaError

        error = message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise CaptureError(
                f"a {self.isolation} consumer was answered {error.name()} ({error.str()}) "
                f"at {message.topic()}-{message.partition()}"
            )
        return (message.topic(), message.partition()), message.offset()

    def _stuck(self, open_ends: dict[Place, Range], at: dict[Place, int]) -> str:
        places = ", ".join(
            f"{topic}-{partition} at {at[topic, partition]} of {each.end}"
            for (topic, partition), each in sorted(open_ends.items())
        )
        return (
            f"a {self.isolation} consumer waited {self.timeout_s:.0f} s for the pinned ends of {len(open_ends)} "
            f"partitions and stood at: {places}"
        )

    def _arrow(self, kept: list[tuple[Range, Any]]) -> pa.RecordBatch:
        size = len(kept)
        columns = {
            "run": pa.array([self.run] * size, type=pa.string()),
            "topic": pa.array([each.topic for each, _ in kept], type=pa.string()),
            "topic_index": pa.array([each.topic_index for each, _ in kept], type=pa.int32()),
            "partition": pa.array([each.partition for each, _ in kept], type=pa.int32()),
            "offset": pa.array([message.offset() for _, message in kept], type=pa.int64()),
            "timestamp_ms": pa.array([message.timestamp()[1] for _, message in kept], type=pa.int64()),
            **_identities(kept),
        }
        return pa.RecordBatch.from_pydict({name: columns[name] for name in DELIVERED.names})


def _identities(kept: list[tuple[Range, Any]]) -> dict[str, pa.Array]:
    columns = identity_columns([message.value() for _, message in kept])
    if not any(each.reference for each, _ in kept):
        return columns
    texts = [
        finder(each.reference or VALUE)(message.key(), message.value(), message.headers() or ())
        for each, message in kept
    ]
    return referring_columns(columns, texts)
