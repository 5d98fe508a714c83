"""Measures what replicas and acknowledgements cost: transactions with one replica and three, and acks=1 against acks=all.

A transactional producer, as an idempotent one, waits for the acknowledgement of all replicas in sync. The coordinator's own
log has three replicas in both cases.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from benchmarks.cost.cost_cluster import REPLICAS, CostCluster
from benchmarks.cost.producing import Batching, producer, warm, written_plainly
from benchmarks.cost.rows import CostRow
from benchmarks.cost.throughput import PARTITIONS, Pair, pair, row
from benchmarks.measuring.ratio import Ratio, Unit

FACTORS = (1, REPLICAS)
BATCHING = Batching(records=1_000)
#: By turns, next to each other on one topic of three replicas.
ACKS = ("1", "all")


def measure(cluster: CostCluster, rounds: int, say: Callable[[str], None]) -> tuple[CostRow, ...]:
    """A row for each number of replicas, and one for acks. Raises the errors of `throughput.by_records`."""
    pairs: dict[int, list[Pair]] = {each: [] for each in FACTORS}
    rates: list[tuple[float, float]] = []
    for number in range(1, rounds + 1):
        for factor in FACTORS:
            with cluster.topic(f"cost-replication-{number}-{factor}", PARTITIONS, factor) as topic:
                warm(cluster, topic, PARTITIONS)
                pairs[factor].append(pair(cluster, topic, PARTITIONS, BATCHING, number))
                if factor == REPLICAS:
                    rates.append(_acknowledged(cluster, topic, number))
        said = ", ".join(f"{_replicas(factor)} {each[-1][1].per_s:,.0f}" for factor, each in pairs.items())
        say(f"round {number} of {rounds}, records/s in transactions: {said}")
    return (*(of_replicas(factor, each) for factor, each in pairs.items()), of_acks(rates))


def of_replicas(factor: int, pairs: list[Pair]) -> CostRow:
    """The cells with so many replicas as a row."""
    name = _replicas(factor)
    found = row(f"transactions of {BATCHING.name}", factor, pairs)
    return replace(found, name=name, ratio=replace(found.ratio, subject=f"{found.ratio.subject}, {name}"))


def of_acks(rates: list[tuple[float, float]]) -> CostRow:
    """Records per second of plain producers with acks=1 and acks=all as a row."""
    one, every = (f"plain producer, acks={acks}" for acks in ACKS)
    ratio = Ratio(subject=one, against=every, unit=Unit.RECORDS_PER_S, pairs=tuple(rates))
    return CostRow(name=f"acks={ACKS[0]}", at=0, ratio=ratio)


def _acknowledged(cluster: CostCluster, topic: str, number: int) -> tuple[float, float]:
    """Records per second with each of `ACKS`; the next round has the other order."""
    order = ACKS if number % 2 else ACKS[::-1]
    rates = {
        acks: written_plainly(cluster, producer(cluster, idempotent=False, acks=acks), topic, PARTITIONS).per_s
        for acks in order
    }
    return rates[ACKS[0]], rates[ACKS[1]]


def _replicas(factor: int) -> str:
    return "1 replica" if factor == 1 else f"{factor} replicas"
