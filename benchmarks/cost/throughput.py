"""Measures an idempotent producer against a transactional one, by records in a transaction and by partitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

from benchmarks.cost.cost_cluster import CostCluster
from benchmarks.cost.producing import (
    Batching,
    WritingCell,
    producer,
    transactional_producer,
    warm,
    written_in_transactions,
    written_plainly,
)
from benchmarks.cost.rows import CostRow
from benchmarks.measuring.ratio import Ratio, Unit
from reports.loading.availability import latency_of

#: A commit every 100 ms is the setting of the published claim. A cell has two transactions of 1 s.
SIZES = (
    *(Batching(records=each) for each in (1, 10, 100, 1_000, 10_000)),
    *(Batching(seconds=each) for each in (0.01, 0.1, 1.0)),
)
PARTITIONS = 10
MANY_PARTITIONS, RECORDS = (1, 10, 100), 100

#: An idempotent cell and a transactional one that followed it.
Pair = tuple[WritingCell, WritingCell]


def by_records(cluster: CostCluster, rounds: int, say: Callable[[str], None]) -> tuple[CostRow, ...]:
    """A row for each size. Raises WorthlessRateError, KafkaException, WireError and WaitTimeoutError."""
    found: dict[Batching, list[Pair]] = {each: [] for each in SIZES}
    for number in range(1, rounds + 1):
        with cluster.topic(f"cost-records-{number}", PARTITIONS) as topic:
            warm(cluster, topic, PARTITIONS)
            for batching in SIZES:
                found[batching].append(pair(cluster, topic, PARTITIONS, batching, number))
                say(f"round {number} of {rounds}, {batching.name}: {_said(found[batching][-1])}")
    return tuple(
        row(f"transactions of {batching.name}", batching.records or 0, pairs) for batching, pairs in found.items()
    )


def by_partitions(cluster: CostCluster, rounds: int, say: Callable[[str], None]) -> tuple[CostRow, ...]:
    """A row for each number of partitions. Raises as `by_records` does."""
    found: dict[int, list[Pair]] = {each: [] for each in MANY_PARTITIONS}
    batching = Batching(records=RECORDS)
    for number in range(1, rounds + 1):
        for partitions in MANY_PARTITIONS:
            with cluster.topic(f"cost-partitions-{number}-{partitions}", partitions) as topic:
                warm(cluster, topic, partitions)
                found[partitions].append(pair(cluster, topic, partitions, batching, number))
            say(f"round {number} of {rounds}, {partitions} partitions: {_said(found[partitions][-1])}")
    return tuple(
        row(f"transactions that write to {_partitions(partitions)}", partitions, pairs)
        for partitions, pairs in found.items()
    )


def pair(cluster: CostCluster, topic: str, partitions: int, batching: Batching, number: int) -> Pair:
    """An idempotent cell and a transactional one, each by a new producer; the next round has the other order."""

    def plainly() -> WritingCell:
        return written_plainly(cluster, producer(cluster), topic, partitions)

    def in_transactions() -> WritingCell:
        by = transactional_producer(cluster, f"{topic}-{batching.name}".replace(" ", ""))
        return written_in_transactions(cluster, by, topic, partitions, batching)

    if number % 2:
        return plainly(), in_transactions()
    last = in_transactions()
    return plainly(), last


def row(name: str, at: float, pairs: Sequence[Pair]) -> CostRow:
    """The cells of one setting as a row."""
    transactional = [each for _, each in pairs]
    return CostRow(
        name=name,
        at=at,
        ratio=Ratio(
            subject="idempotent producer",
            against=name,
            unit=Unit.RECORDS_PER_S,
            pairs=tuple((one.per_s, other.per_s) for one, other in pairs),
        ),
        latencies={"commit": latency_of([ms for each in transactional for ms in each.commits_ms])},
        counts={
            "records": round(median(each.records / len(each.commits_ms) for each in transactional), 1),
            "markers": round(median(each.markers / len(each.commits_ms) for each in transactional), 2),
            "marker bytes": median(each.marker_bytes for each in transactional),
        },
    )


def _partitions(count: int) -> str:
    return "1 partition" if count == 1 else f"{count} partitions"


def _said(pair_: Pair) -> str:
    plainly, transactional = pair_
    rates = f"{plainly.per_s:,.0f} records/s against {transactional.per_s:,.0f}"
    return f"{rates} in {len(transactional.commits_ms)} transactions"
