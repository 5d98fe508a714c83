"""Measures for how long a coordinator of many transactional ids answers none of them after it took over.

A broker that becomes the leader of a partition of `__transaction_state` reads the partition before it serves its ids
(KIP-98). Until then it answers COORDINATOR_LOAD_IN_PROGRESS. Here one partition has so many ids, another has none. By
turns the leader of one of them is moved by a preferred election, and an id that no client uses is asked for until the new
leader knows that it does not know it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count, islice

from benchmarks.cost.cost_cluster import CostCluster
from benchmarks.cost.rows import CostRow, row_of_times
from benchmarks.measuring.errors import WorthlessRateError
from chaos.cluster import BrokerId
from chaos.operations.placement import elect, reassign
from fixtures.clusters.observing.coordinators import TRANSACTIONS_TOPIC, partition_of, unused_key
from wire.client import Client
from wire.codes import ErrorCode
from wire.router import check
from wire.values import CoordinatorType, TopicPartition

IDS = (1_000, 10_000, 100_000)
FULL, EMPTY = 0, 1
KINDS = {"with ids": FULL, "without": EMPTY}
#: Moves of each partition in a turn; each is one time.
MOVES = 5
#: Clients that make ids at a time. One alone waits for replicas most of the time.
WRITERS = 8
TIMEOUT_MS = 60_000
#: To load 100 000 ids takes a second or two; this bounds a coordinator that never gets there.
LOADED_WITHIN_S = 60.0


def measure(cluster: CostCluster, rounds: int, say: Callable[[str], None]) -> tuple[CostRow, ...]:
    """A row for each number of ids. Raises WireError, InjectionError, WorthlessRateError."""
    partitions = len(cluster.client.metadata([TRANSACTIONS_TOPIC]).topics[TRANSACTIONS_TOPIC].partitions)
    names = (name for each in count() if partition_of(name := f"cost-id-{each}", partitions) == FULL)
    probes = {place: unused_key(place, partitions) for place in KINDS.values()}
    found, made = [], 0
    for ids in IDS:
        _make(cluster, list(islice(names, ids - made)))
        made = ids
        turns = [
            {kind: [_moved(cluster, place, probes[place]) for _ in range(MOVES)] for kind, place in KINDS.items()}
            for _ in range(rounds)
        ]
        found.append(row(ids, turns))
        say(f"{found[-1].name}: {found[-1].ratio.median:.2f}")
    return tuple(found)


def row(ids: int, turns: list[dict[str, list[float]]]) -> CostRow:
    """The milliseconds of both partitions in each turn as a row."""
    name = f"{ids:,} transactional ids".replace(",", " ")
    return row_of_times(name, ids, turns, subject="coordinator taken over")


def _make(cluster: CostCluster, names: list[str]) -> None:
    """Initialise these transactional ids."""

    def make(mine: list[str]) -> None:
        with cluster.another_client() as client:
            coordinator = client.find_coordinator(names[0], CoordinatorType.TRANSACTION)
            for name in mine:
                body = {"TransactionalId": name, "TransactionTimeoutMs": TIMEOUT_MS}
                answer = client.call("InitProducerId", body, broker=coordinator)
                check(answer["ErrorCode"], f"InitProducerId of {name}")

    # The first one waits until the coordinator of a new cluster is ready.
    cluster.client.init_producer_id(names[0])
    with ThreadPoolExecutor(max_workers=WRITERS) as at_once:
        for done in [at_once.submit(make, names[each::WRITERS]) for each in range(WRITERS) if names[each::WRITERS]]:
            done.result()


def _moved(cluster: CostCluster, place: int, probe: str) -> float:
    """Move the partition to its next replica; the milliseconds until that one has loaded it."""
    client, at = cluster.client, TopicPartition(TRANSACTIONS_TOPIC, place)
    seen = client.metadata([at.topic]).topics[at.topic].partitions[place]
    first = seen.replicas.index(seen.leader)
    order = {at: tuple(map(BrokerId, (*seen.replicas[first + 1 :], *seen.replicas[: first + 1])))}
    reassign(client, order)
    asked_s = time.monotonic()
    elect(client, order)
    while not _knows(client, order[at][0], probe):
        if time.monotonic() - asked_s > LOADED_WITHIN_S:
            raise WorthlessRateError(f"Broker {order[at][0]} had not loaded {at} after {LOADED_WITHIN_S:g} s.")
    return (time.monotonic() - asked_s) * 1000


def _knows(client: Client, broker: int, probe: str) -> bool:
    """Whether a broker has loaded the id's partition: it answers that there is no such id."""
    answer = client.call("DescribeTransactions", {"TransactionalIds": [probe]}, broker=broker)
    return bool(answer["TransactionStates"][0]["ErrorCode"] == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
