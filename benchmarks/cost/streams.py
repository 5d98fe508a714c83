"""Measures Kafka Streams with exactly_once_v2 against at_least_once, by the interval of its commits.

The application is `fixtures/pipelines/streams/OrderCopy.java`, which copies a topic that was written before. The time runs
from the first offsets that it commits until all are committed, so that the start of the JVM does not count. Both guarantees
have the same interval: by default it is 100 ms with exactly_once_v2, and 30 s with at_least_once.
"""

from __future__ import annotations

import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.cost.cost_cluster import CostCluster
from benchmarks.cost.producing import WITHIN_S, producer, send
from benchmarks.cost.rows import CostRow
from benchmarks.cost.throughput import PARTITIONS
from benchmarks.measuring.errors import WorthlessRateError
from benchmarks.measuring.ratio import Ratio, Unit
from fixtures.downloads.cache import cache_dir, ensure_dir
from fixtures.pipelines.streams.command import STREAMS
from fixtures.processes.keeper import Keeper

LIBRARY = "4.3.1"
EXACTLY, AT_LEAST = "exactly_once_v2", "at_least_once"
INTERVALS_MS = (100, 1_000)
#: At 20 000 records per second some ten intervals of the longer kind.
RECORDS = 200_000
#: A JVM starts within seconds; this bounds one that does not copy.
COPIED_WITHIN_S = 120.0
LOOK_EVERY_S = 0.01


def measure(cluster: CostCluster, rounds: int, say: Callable[[str], None]) -> tuple[CostRow, ...]:
    """A row for each interval. Raises WorthlessRateError, WireError and the errors of a fetched library."""
    rates: dict[int, list[tuple[float, float]]] = {each: [] for each in INTERVALS_MS}
    with cluster.topic("cost-streams", PARTITIONS) as orders, Keeper(ensure_dir(cache_dir() / "ledgers")) as keeper:
        _fill(cluster, orders)
        for number in range(1, rounds + 1):
            for interval_ms in INTERVALS_MS:
                # The next round has the other order.
                order = (EXACTLY, AT_LEAST) if number % 2 else (AT_LEAST, EXACTLY)
                found = {each: _copied(cluster, keeper, orders, each, interval_ms, number) for each in order}
                rates[interval_ms].append((found[EXACTLY], found[AT_LEAST]))
                said = ", ".join(f"{each} {found[each]:,.0f} records/s" for each in (EXACTLY, AT_LEAST))
                say(f"round {number} of {rounds}, a commit every {interval_ms} ms: {said}")
    return tuple(row(interval_ms, pairs) for interval_ms, pairs in rates.items())


def row(interval_ms: int, pairs: list[tuple[float, float]]) -> CostRow:
    """Records per second under both guarantees in each round as a row."""
    name = f"a commit every {interval_ms / 1000:g} s" if interval_ms >= 1_000 else f"a commit every {interval_ms} ms"
    ratio = Ratio(subject=f"{EXACTLY}, {name}", against=AT_LEAST, unit=Unit.RECORDS_PER_S, pairs=tuple(pairs))
    return CostRow(name=name, at=interval_ms, ratio=ratio)


def _fill(cluster: CostCluster, topic: str) -> None:
    by = producer(cluster)
    for number in range(RECORDS):
        send(by, topic, number % PARTITIONS)
        by.poll(0)
    if left := by.flush(WITHIN_S):
        raise WorthlessRateError(f"The producer did not deliver {left} records within {WITHIN_S:.0f} s.")


def _copied(cluster: CostCluster, keeper: Keeper, orders: str, guarantee: str, interval_ms: int, number: int) -> float:
    """Records per second of an application with this guarantee, which copies all inputs to a topic of its own."""
    group = f"cost-{guarantee}-{interval_ms}-{number}".replace("_", "-")
    with (
        tempfile.TemporaryDirectory(prefix="onceproof-cost-") as place,
        cluster.topic(f"{group}-out", PARTITIONS) as output,
    ):
        variables = {
            "BOOTSTRAP": cluster.bootstrap,
            "GROUP": group,
            "INPUT": orders,
            "OUTPUT": output,
            "INSTANCE": "0",
            "STATE": place,
            "TRANSACTION_TIMEOUT_MS": "10000",
            "GUARANTEE": guarantee,
            "COMMIT_MS": str(interval_ms),
        }
        application = keeper.spawn(
            group,
            STREAMS.command(LIBRARY),
            directory=Path(place),
            log=Path(place) / "streams.log",
            variables={f"ONCEPROOF_{name}": value for name, value in variables.items()}
            | {"JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={place}"},
        )
        began_s = time.monotonic()
        first, first_s = _committed(cluster, group, 1, began_s)
        last, last_s = _committed(cluster, group, RECORDS, began_s)
        application.signal(signal.SIGTERM)
        application.await_exit()
    if last_s <= first_s or last != RECORDS:
        raise WorthlessRateError(f"{group} committed {first} and then {last} of {RECORDS} inputs.")
    return (last - first) / (last_s - first_s)


def _committed(cluster: CostCluster, group: str, at_least: int, began_s: float) -> tuple[int, float]:
    """The sum of the offsets that the group has committed once it is so much, and the time. Raises WorthlessRateError."""
    while True:
        found = sum(each.offset for each in cluster.client.offset_fetch(group, require_stable=False).values())
        now_s = time.monotonic()
        if found >= at_least:
            return found, now_s
        if now_s - began_s > COPIED_WITHIN_S:
            raise WorthlessRateError(
                f"{group} had committed {found} of {RECORDS} inputs {COPIED_WITHIN_S:g} s after its start."
            )
        time.sleep(LOOK_EVERY_S)
