"""Writes at full speed with one producer of confluent-kafka, with and without transactions, and checks the log afterwards.

Both kinds of producers run the same loop over the same partitions with the same settings; only `begin_transaction` and
`commit_transaction` are added. The time ends when every record is acknowledged, or the last transaction committed. The
producer is connected and has its ids before the time begins.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Producer

from benchmarks.cost.cost_cluster import CostCluster
from benchmarks.measuring.errors import WorthlessRateError
from wire.values import TopicPartition

RECORD_BYTES = 1_000
VALUE = b"v" * RECORD_BYTES
#: Long enough for some dozen commits, short enough for many cells in some minutes. An open transaction is finished.
CELL_S = 2.0
#: The first requests to a new topic are slow: its logs are made, and its followers begin to fetch.
WARM_S = 1.0
#: librdkafka's default of 100 000 records would let a cell end with seconds of waiting for acknowledgements.
QUEUED_MAX = 10_000
#: Without transactions the loop looks at the clock after so many records.
RECORDS_AT_ONCE = 100
WITHIN_S = 60.0
SETTINGS: dict[str, Any] = {
    "acks": "all",
    # An idempotent producer may have no more; a plain one has the same here, so that idempotence alone is compared.
    "max.in.flight": 5,
    "queue.buffering.max.messages": QUEUED_MAX,
    "log_level": 0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Batching:
    """When a producer commits: after so many records, or when so much time has passed since the transaction began."""

    records: int | None = None
    seconds: float | None = None

    @property
    def name(self) -> str:
        """As in tables."""
        if self.records is not None:
            return "1 record" if self.records == 1 else f"{self.records:,} records".replace(",", " ")
        assert self.seconds is not None, "a transaction ends by records or by time"
        return f"{self.seconds * 1000:g} ms" if self.seconds < 1 else f"{self.seconds:g} s"

    def full(self, records: int, began_s: float) -> bool:
        """Whether a transaction with so many records that began at a time (of `time.monotonic`) is to be committed."""
        if self.records is not None:
            return records >= self.records
        assert self.seconds is not None, "a transaction ends by records or by time"
        return time.monotonic() - began_s >= self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class WritingCell:
    """One cell: records and transactions, seconds for all, the milliseconds of each commit, and markers in the log."""

    records: int
    seconds: float
    commits_ms: tuple[float, ...] = ()
    markers: int = 0
    marker_bytes: int = 0

    @property
    def per_s(self) -> float:
        """Records per second."""
        return self.records / self.seconds


def producer(cluster: CostCluster, *, idempotent: bool = True, acks: str = "all") -> Producer:
    """A producer without transactions. An idempotent one needs the acknowledgement of all replicas."""
    own = {"bootstrap.servers": cluster.bootstrap, "enable.idempotence": idempotent, "acks": acks}
    return Producer({**SETTINGS, **own})


def transactional_producer(cluster: CostCluster, transactional_id: str) -> Producer:
    """A producer with transactions, initialised."""
    made = Producer({**SETTINGS, "bootstrap.servers": cluster.bootstrap, "transactional.id": transactional_id})
    made.init_transactions(WITHIN_S)
    return made


def send(to: Producer, topic: str, partition: int, value: bytes = VALUE, **options: Any) -> None:
    """Hand a record over, and wait while the queue is full."""
    while True:
        try:
            to.produce(topic, value, partition=partition, **options)
        except BufferError:
            to.poll(0.005)
        else:
            return


def warm(cluster: CostCluster, topic: str, partitions: int) -> None:
    """Write to a new topic for a while. Raises as `written_plainly` does."""
    written_plainly(cluster, producer(cluster), topic, partitions, seconds=WARM_S)


def written_plainly(
    cluster: CostCluster, by: Producer, topic: str, partitions: int, *, seconds: float = CELL_S
) -> WritingCell:
    """Write for so long. Raises WorthlessRateError if a record is missing in the log."""

    def write() -> tuple[int, list[float]]:
        began_s, sent = time.monotonic(), 0
        while time.monotonic() - began_s < seconds:
            for _ in range(RECORDS_AT_ONCE):
                send(by, topic, sent % partitions)
                sent += 1
            by.poll(0)
        _flush(by)
        return sent, []

    for partition in range(partitions):
        send(by, topic, partition)
    _flush(by)
    return checked(cluster, topic, partitions, write)


def written_in_transactions(
    cluster: CostCluster, by: Producer, topic: str, partitions: int, batching: Batching
) -> WritingCell:
    """The same in transactions, and the last one to its end. Raises WorthlessRateError if a record is missing."""

    def write() -> tuple[int, list[float]]:
        began_s, sent = time.monotonic(), 0
        commits_ms: list[float] = []
        while time.monotonic() - began_s < CELL_S:
            by.begin_transaction()
            first, transaction_s = sent, time.monotonic()
            while not batching.full(sent - first, transaction_s):
                send(by, topic, sent % partitions)
                sent += 1
            asked_s = time.monotonic()
            by.commit_transaction(WITHIN_S)
            commits_ms.append((time.monotonic() - asked_s) * 1000)
        return sent, commits_ms

    by.begin_transaction()
    for partition in range(partitions):
        send(by, topic, partition)
    by.commit_transaction(WITHIN_S)
    return checked(cluster, topic, partitions, write)


def _flush(by: Producer) -> None:
    if left := by.flush(WITHIN_S):
        raise WorthlessRateError(f"The producer did not deliver {left} records within {WITHIN_S:.0f} s.")


def checked(
    cluster: CostCluster, topic: str, partitions: int, write: Callable[[], tuple[int, list[float]]]
) -> WritingCell:
    """Time `write`, which returns the number of records and the commits, and compare with the ends of the log."""
    before = cluster.ends(topic, partitions)
    began_s = time.monotonic()
    sent, commits_ms = write()
    seconds = time.monotonic() - began_s
    after = cluster.ends(topic, partitions, at_least=sum(before.values()) + sent)
    markers = sum(after.values()) - sum(before.values()) - sent
    if markers < len(commits_ms) or (markers and not commits_ms):
        raise WorthlessRateError(
            f"{sent} records and {len(commits_ms)} transactions to {topic} moved the ends of the log by {markers + sent}."
        )
    first = TopicPartition(topic, 0)
    return WritingCell(
        records=sent,
        seconds=seconds,
        commits_ms=tuple(commits_ms),
        markers=markers,
        marker_bytes=cluster.marker_bytes(first, after[first]) if commits_ms else 0,
    )
