"""Measures the time from the request to commit until the last marker, by partitions, with requests of the wire client.

A coordinator answers EndTxn once the decision is in its log. Only then it has markers written to each partition, and only
with its marker a partition shows the records to a read_committed reader. So an application that reads once its commit is
answered may not find all of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

from benchmarks.cost.cost_cluster import CostCluster
from benchmarks.cost.protocols import ProtocolProducer, TransactionProtocol
from benchmarks.cost.rows import CostRow, row_of_times
from benchmarks.cost.throughput import MANY_PARTITIONS
from benchmarks.measuring.errors import WorthlessRateError
from wire.values import Isolation, TopicPartition

TRANSACTIONS = 20
#: A record and its marker.
OFFSETS = 2
LAST, ANSWER = "last marker", "answer"
#: Markers take milliseconds; this bounds a cluster that hangs.
COMPLETE_WITHIN_S = 30.0


def measure(cluster: CostCluster, rounds: int, say: Callable[[str], None]) -> tuple[CostRow, ...]:
    """A row for each number of partitions. Raises WireError, WorthlessRateError; VersionError before Kafka 4.0."""
    found = []
    for partitions in MANY_PARTITIONS:
        turns = []
        for number in range(1, rounds + 1):
            with cluster.topic(f"cost-completion-{number}-{partitions}", partitions) as topic:
                turns.append(_completed(cluster, topic, partitions))
            said = ", ".join(f"{name} {median(took_ms):.1f} ms" for name, took_ms in turns[-1].items())
            say(f"round {number} of {rounds}, {partitions} partitions: {said}")
        found.append(row(partitions, turns))
    return tuple(found)


def row(partitions: int, turns: list[dict[str, list[float]]]) -> CostRow:
    """The milliseconds until the last marker and until the answer in each turn as a row."""
    name = "1 partition" if partitions == 1 else f"{partitions} partitions"
    return row_of_times(name, partitions, turns, subject="time of the last marker")


def _completed(cluster: CostCluster, topic: str, partitions: int) -> dict[str, list[float]]:
    """The milliseconds of each transaction from EndTxn; the first one does not count."""
    by = ProtocolProducer.initialised(cluster, topic, topic, partitions, TransactionProtocol.TWO)
    places = [TopicPartition(topic, each) for each in range(partitions)]
    took: dict[str, list[float]] = {LAST: [], ANSWER: []}
    for number in range(1, TRANSACTIONS + 2):
        by.produce()
        asked_s = time.monotonic()
        by.commit()
        answered_s = time.monotonic()
        # Without a pause: a look takes a millisecond, or a few with many partitions.
        while not _stable(cluster, places, OFFSETS * number):
            if time.monotonic() - asked_s > COMPLETE_WITHIN_S:
                raise WorthlessRateError(f"{topic} had not all markers {COMPLETE_WITHIN_S:g} s after a commit.")
        if number > 1:
            took[ANSWER].append((answered_s - asked_s) * 1000)
            took[LAST].append((time.monotonic() - asked_s) * 1000)
    return took


def _stable(cluster: CostCluster, places: list[TopicPartition], end: int) -> bool:
    """Whether a read_committed reader may read to this offset in all places."""
    found = cluster.client.list_offsets(places, isolation=Isolation.READ_COMMITTED)
    return all(offset >= end for offset in found.values())
