"""Measures OffsetFetch with require_stable against without, while many transactions of the group hold pending offsets.

The wire client leaves so many transactions open, each with an offset of one partition of the group. Then it asks again
and again, by turns with and without require_stable, for the offset of a partition that no transaction touches.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from benchmarks.cost.cost_cluster import CostCluster
from benchmarks.cost.rows import CostRow, row_of_times
from wire.router import check
from wire.values import CoordinatorType

PENDING = (0, 10, 100, 1_000)
GROUP, TOPIC, PARTITIONS = "cost-pending", "cost-pending", 100
#: Requests of each kind in a turn.
REQUESTS = 200
#: Nothing may end before the last request: the longest that brokers allow by default.
TIMEOUT_MS = 900_000
#: The last versions in which a request names one group, and one member without an id.
FETCH_VERSION, COMMIT_VERSION, ADD_VERSION = 7, 3, 3
KINDS = {"with": True, "without": False}


def measure(cluster: CostCluster, rounds: int, say: Callable[[str], None]) -> tuple[CostRow, ...]:
    """A row for each number of pending transactions. Raises WireError."""
    with cluster.topic(TOPIC, PARTITIONS):
        found, opened = [], 0
        for pending in PENDING:
            for number in range(opened, pending):
                _open(cluster, number)
            opened = pending
            turns = [{kind: _asked(cluster, stable=stable) for kind, stable in KINDS.items()} for _ in range(rounds)]
            found.append(row(pending, turns))
            say(f"{pending} pending transactions: {found[-1].ratio.median:.2f}")
    return tuple(found)


def row(pending: int, turns: list[dict[str, list[float]]]) -> CostRow:
    """The milliseconds of both kinds in each turn as a row."""
    name = f"{pending:,} pending transactions".replace(",", " ")
    return row_of_times(name, pending, turns, subject="OffsetFetch with require_stable")


def _open(cluster: CostCluster, number: int) -> None:
    """Begin a transaction that commits an offset, and leave it open."""
    name = f"cost-pending-{number}"
    producer = cluster.client.init_producer_id(name, transaction_timeout_ms=TIMEOUT_MS)
    identity = {"TransactionalId": name, "ProducerId": producer.id, "ProducerEpoch": producer.epoch, "GroupId": GROUP}
    coordinator = cluster.client.find_coordinator(name, CoordinatorType.TRANSACTION)
    answer = cluster.client.call("AddOffsetsToTxn", identity, ADD_VERSION, broker=coordinator)
    check(answer["ErrorCode"], f"AddOffsetsToTxn of {name}")
    # Partition 0 is the one that is asked for.
    partition = {"PartitionIndex": 1 + number % (PARTITIONS - 1), "CommittedOffset": number, "CommittedMetadata": ""}
    body = identity | {"Topics": [{"Name": TOPIC, "Partitions": [partition]}]}
    group = cluster.client.find_coordinator(GROUP, CoordinatorType.GROUP)
    answer = cluster.client.call("TxnOffsetCommit", body, COMMIT_VERSION, broker=group)
    check(answer["Topics"][0]["Partitions"][0]["ErrorCode"], f"TxnOffsetCommit of {name}")


def _asked(cluster: CostCluster, *, stable: bool) -> list[float]:
    """Milliseconds of each request for the offset of partition 0."""
    coordinator = cluster.client.find_coordinator(GROUP, CoordinatorType.GROUP)
    body = {
        "GroupId": GROUP,
        "Topics": [{"Name": TOPIC, "PartitionIndexes": [0]}],
        "RequireStable": stable,
    }
    took_ms = []
    for _ in range(REQUESTS):
        asked_s = time.monotonic()
        answer = cluster.client.call("OffsetFetch", body, FETCH_VERSION, broker=coordinator)
        took_ms.append((time.monotonic() - asked_s) * 1000)
        check(answer["ErrorCode"], f"OffsetFetch of {GROUP}")
    return took_ms
