"""Measures a broker that remembers many producer ids against the same broker without: restart, live heap, snapshots.

A broker remembers each producer id of each partition: epoch, sequence numbers and offsets, so that it can refuse
duplicates (KIP-98). At a clean stop it writes them to a snapshot for each partition, and reads that when it starts. Here
each id writes one batch of one record. The wire client chooses the ids itself: a leader takes any that it does not know.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from benchmarks.cost.cost_cluster import CostCluster
from benchmarks.cost.rows import CostRow
from benchmarks.measuring.errors import WorthlessRateError
from benchmarks.measuring.jvm_heap import live_bytes
from benchmarks.measuring.ratio import Ratio, Unit
from chaos.cluster import BrokerId
from fixtures.clusters.health import await_healthy
from fixtures.clusters.local.cluster import LocalCluster
from wire.records import encode
from wire.router import check
from wire.values import TopicPartition

IDS = (10_000, 100_000)
TOPIC, PARTITIONS = "cost-producer-ids", 100
#: The broker that is restarted; it has a replica of each partition, as the two others have.
BROKER = BrokerId(1)
#: A restart takes some seconds; this bounds a broker that does not come back.
BACK_WITHIN_S = 90.0
#: An id that no coordinator of a new cluster has given by then.
FIRST_ID = 1_000_000_000
_ALL = -1
#: The last version before transactions of protocol 2 (KIP-890), which names topics and not their ids.
PRODUCE_VERSION = 11


def measure(cluster: CostCluster, rounds: int, say: Callable[[str], None]) -> tuple[CostRow, ...]:
    """Two rows for each number of ids: restart and heap. Raises WireError, ClusterError, WorthlessRateError."""
    brokers = cluster.running
    if not isinstance(brokers, LocalCluster):
        raise WorthlessRateError("Brokers in containers show neither their heap nor their data: use processes.")
    found: list[CostRow] = []
    for ids in IDS:
        restarts, heaps, snapshot = [], [], 0
        for _ in range(rounds):
            without = _restarted(brokers)
            with cluster.topic(TOPIC, PARTITIONS):
                _remember(cluster, ids)
                restarted = _restarted(brokers)
                snapshot = sum(each.stat().st_size for each in brokers.directory.rglob(f"{TOPIC}-*/*.snapshot"))
            restarts.append((restarted[0], without[0]))
            heaps.append((restarted[1], without[1]))
        found += rows(ids, restarts=restarts, heaps=heaps, snapshot_bytes=snapshot)
        say(f"{found[-1].name}: restart {found[-2].ratio.median:.2f}, heap {found[-1].ratio.median:.2f}")
    return tuple(found)


def rows(
    ids: int, *, restarts: list[tuple[float, float]], heaps: list[tuple[float, float]], snapshot_bytes: int
) -> tuple[CostRow, CostRow]:
    """Seconds of a restart, and kilobytes of live heap, each with the ids and without, as rows."""
    name = f"{ids:,} producer ids".replace(",", " ")
    heap = Ratio(subject=f"live heap, {name}", against="without", unit=Unit.KILOBYTES, pairs=tuple(heaps))
    with_ids, without = heap.seen
    return (
        CostRow(
            name=name,
            at=ids,
            ratio=Ratio(subject=f"restart, {name}", against="without", unit=Unit.SECONDS, pairs=tuple(restarts)),
            counts={
                "bytes of heap per id": round((with_ids - without) * 1000 / ids),
                "bytes of snapshot per id": round(snapshot_bytes / ids),
            },
        ),
        CostRow(name=name, at=ids, ratio=heap),
    )


def _restarted(brokers: LocalCluster) -> tuple[float, float]:
    """Stop the broker and start it again: the seconds until it is in sync again, and its kilobytes of live heap."""
    brokers.stop(BROKER)
    started_s = time.monotonic()
    brokers.start(BROKER)
    await_healthy(brokers, BACK_WITHIN_S)
    took_s = time.monotonic() - started_s
    return took_s, live_bytes(brokers.pids()[BROKER]) / 1000


def _remember(cluster: CostCluster, ids: int) -> None:
    """Let so many ids write a batch, each to one partition, in the same number to each."""
    leaders = {at: each.leader for at, each in cluster.client.metadata([TOPIC]).topics[TOPIC].partitions.items()}
    for first in range(0, ids, PARTITIONS):
        for leader in sorted(set(leaders.values())):
            mine = [at for at in leaders if leaders[at] == leader]
            parts = [{"Index": at, "Records": _batch(FIRST_ID + first + at)} for at in mine]
            body = {
                "TransactionalId": None,
                "Acks": _ALL,
                "TimeoutMs": 30_000,
                "TopicData": [{"Name": TOPIC, "PartitionData": parts}],
            }
            answer = cluster.client.call("Produce", body, PRODUCE_VERSION, broker=leader)
            for each in answer["Responses"][0]["PartitionResponses"]:
                check(each["ErrorCode"], f"Produce to {TopicPartition(TOPIC, each['Index'])}")


def _batch(producer_id: int) -> bytes:
    return encode([(None, b"x")], producer_id=producer_id, producer_epoch=0, base_sequence=0)
