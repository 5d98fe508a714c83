"""Measures the time from send to delivery, under read_committed and read_uncommitted, of the same records at the same time.

A transactional producer sends at a steady pace and commits after a number of records, or when a time has passed. Two
consumers of the same process read the topic from its end on. Each value has the time of its sending, by the clock that the
consumers also read. While a commit lasts nothing is sent, and no record is late for that reason. Then an idempotent producer
sends at that pace without transactions to one consumer.
"""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable, Mapping
from statistics import median

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.cost.cost_cluster import CostCluster
from benchmarks.cost.producing import RECORD_BYTES, WITHIN_S, Batching, producer, send, transactional_producer
from benchmarks.cost.rows import CostRow
from benchmarks.cost.steady_pace import SteadyPace
from benchmarks.cost.throughput import PARTITIONS
from benchmarks.measuring.errors import WorthlessRateError
from benchmarks.measuring.ratio import Ratio, Unit
from reports.loading.availability import latency_of

BATCHINGS = (
    *(Batching(records=each) for each in (1, 10, 100, 1_000)),
    *(Batching(seconds=each) for each in (0.01, 0.1, 1.0, 10.0)),
)
RECORDS_PER_S = 1_000
#: So long, and at least two transactions: most of the records of a single one might come at its end by chance.
SECONDS, TRANSACTIONS = 3.0, 2
COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"
#: Without transactions, under read_committed.
IDEMPOTENT = "idempotent"
_TIME = struct.Struct(">q")
_PADDING = b"v" * (RECORD_BYTES - _TIME.size)
#: Neither record nor marker needs so long: this only bounds a cluster that hangs.
_STALL_S = 30.0
_CALL_S = 0.1


def measure(cluster: CostCluster, rounds: int, say: Callable[[str], None]) -> tuple[CostRow, ...]:
    """A row for each way to commit. Raises WorthlessRateError, KafkaException, WireError and WaitTimeoutError."""
    found: dict[Batching, list[Mapping[str, list[float]]]] = {each: [] for each in BATCHINGS}
    for number in range(1, rounds + 1):
        with cluster.topic(f"cost-delivery-{number}", PARTITIONS) as topic:
            for batching in BATCHINGS:
                found[batching].append(took := _delivered(cluster, topic, batching))
                said = ", ".join(f"{level} {median(took_ms):.1f} ms" for level, took_ms in took.items())
                say(f"round {number} of {rounds}, {batching.name}: {said}")
    return tuple(row(batching, rounds_) for batching, rounds_ in found.items())


def row(batching: Batching, rounds: list[Mapping[str, list[float]]]) -> CostRow:
    """The milliseconds of both levels in each round as a row; `at` is the time for which a transaction gathers records."""
    seconds = batching.seconds if batching.seconds is not None else (batching.records or 0) / RECORDS_PER_S
    return CostRow(
        name=batching.name if batching.records is not None else f"a commit every {batching.name}",
        at=seconds * 1000,
        ratio=Ratio(
            subject=f"{COMMITTED}, {batching.name}",
            against=UNCOMMITTED,
            unit=Unit.MILLISECONDS,
            pairs=tuple((median(each[COMMITTED]), median(each[UNCOMMITTED])) for each in rounds),
        ),
        latencies={
            kind: latency_of([ms for each in rounds for ms in each[kind]])
            for kind in (COMMITTED, UNCOMMITTED, IDEMPOTENT)
        },
    )


class DeliveryReader:
    """A thread with a consumer that notes how old each record is when it is delivered."""

    def __init__(self, cluster: CostCluster, isolation: str, begins: list[TopicPartition]) -> None:
        self.took_ms: list[float] = []
        self._consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "group.id": "cost",
                "isolation.level": isolation,
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        self._consumer.assign(begins)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._read, name=isolation, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while not self._stopped.is_set():
            # One by one: a call for many messages waits until there are so many, or its time is over.
            message = self._consumer.poll(_CALL_S)
            now_ns = time.monotonic_ns()
            if message is not None and message.error() is None:
                self.took_ms.append((now_ns - _TIME.unpack_from(message.value())[0]) / 1e6)
        self._consumer.close()

    def all_of(self, count: int) -> list[float]:
        """The milliseconds of so many records, once they are delivered. Raises WorthlessRateError."""
        until_s = time.monotonic() + _STALL_S
        while len(self.took_ms) < count and time.monotonic() < until_s:
            time.sleep(0.02)
        self.stop()
        if len(self.took_ms) != count:
            raise WorthlessRateError(
                f"{len(self.took_ms)} of {count} records were delivered under {self._thread.name}."
            )
        return self.took_ms

    def stop(self) -> None:
        """End the thread and close its consumer."""
        self._stopped.set()
        self._thread.join(_STALL_S)


def _delivered(cluster: CostCluster, topic: str, batching: Batching) -> Mapping[str, list[float]]:
    by = transactional_producer(cluster, f"{topic}-{batching.name}".replace(" ", ""))

    def in_transactions() -> int:
        began_s, pace, sent, transactions = time.monotonic(), SteadyPace(RECORDS_PER_S), 0, 0
        while time.monotonic() - began_s < SECONDS or transactions < TRANSACTIONS:
            sent += _transaction(by, topic, batching, pace)
            transactions += 1
        return sent

    plain = producer(cluster)

    def plainly() -> int:
        return _sent(plain, topic, Batching(seconds=SECONDS), SteadyPace(RECORDS_PER_S))

    # The first records of a producer wait until it is connected.
    _transaction(by, topic, Batching(records=PARTITIONS), SteadyPace(RECORDS_PER_S))
    took = _read(cluster, topic, {level: level for level in (COMMITTED, UNCOMMITTED)}, in_transactions)
    _sent(plain, topic, Batching(records=PARTITIONS), SteadyPace(RECORDS_PER_S))
    plain.flush(WITHIN_S)
    return took | _read(cluster, topic, {IDEMPOTENT: COMMITTED}, plainly)


def _read(
    cluster: CostCluster, topic: str, isolation: Mapping[str, str], write: Callable[[], int]
) -> dict[str, list[float]]:
    """The milliseconds of each record that `write` sends, by the names of the readers."""
    ends = cluster.ends(topic, PARTITIONS)
    readers = {
        name: DeliveryReader(cluster, level, [TopicPartition(*at, end) for at, end in ends.items()])
        for name, level in isolation.items()
    }
    try:
        sent = write()
        return {name: each.all_of(sent) for name, each in readers.items()}
    finally:
        for each in readers.values():
            each.stop()


def _transaction(by: Producer, topic: str, batching: Batching, pace: SteadyPace) -> int:
    """Send at the pace and commit; the number of records."""
    by.begin_transaction()
    sent = _sent(by, topic, batching, pace)
    by.commit_transaction(WITHIN_S)
    return sent


def _sent(by: Producer, topic: str, batching: Batching, pace: SteadyPace) -> int:
    began_s, sent = time.monotonic(), 0
    while not batching.full(sent, began_s):
        pace.wait()
        send(by, topic, sent % PARTITIONS, _TIME.pack(time.monotonic_ns()) + _PADDING)
        by.poll(0)
        sent += 1
    return sent
