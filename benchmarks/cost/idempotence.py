"""Measures an idempotent producer against a plain one: records per second, and the time until a record is acknowledged.

Both have acks=all and five requests in flight. The rate is measured at full speed. The time of acknowledgement is measured
at a steady pace, because at full speed it would only show the length of the producer's queue.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from benchmarks.cost.cost_cluster import CostCluster
from benchmarks.cost.producing import WITHIN_S, producer, send, warm, written_plainly
from benchmarks.cost.rows import CostRow
from benchmarks.cost.steady_pace import SteadyPace
from benchmarks.cost.throughput import PARTITIONS
from benchmarks.measuring.errors import WorthlessRateError
from benchmarks.measuring.ratio import Ratio, Unit
from reports.loading.availability import latency_of

RECORDS_PER_S, SECONDS = 1_000, 2.0
KINDS = {"idempotent": True, "plain": False}


def measure(cluster: CostCluster, rounds: int, say: Callable[[str], None]) -> tuple[CostRow, ...]:
    """Rows for rate and acknowledgement. Raises WorthlessRateError, KafkaException, WireError and WaitTimeoutError."""
    rates: dict[str, list[float]] = {kind: [] for kind in KINDS}
    acknowledged: dict[str, list[list[float]]] = {kind: [] for kind in KINDS}
    for number in range(1, rounds + 1):
        with cluster.topic(f"cost-idempotence-{number}", PARTITIONS) as topic:
            warm(cluster, topic, PARTITIONS)
            # The next round has the other order.
            for kind in list(KINDS)[:: 1 if number % 2 else -1]:
                by = producer(cluster, idempotent=KINDS[kind])
                rates[kind].append(written_plainly(cluster, by, topic, PARTITIONS).per_s)
                acknowledged[kind].append(_acknowledged(cluster, topic, idempotent=KINDS[kind]))
        say(f"round {number} of {rounds}: " + ", ".join(f"{kind} {rates[kind][-1]:,.0f} records/s" for kind in KINDS))
    tails = {kind: [latency_of(each).p99_ms or 0.0 for each in acknowledged[kind]] for kind in KINDS}
    return (
        CostRow(name="at full speed", at=0, ratio=_ratio("", Unit.RECORDS_PER_S, rates)),
        CostRow(
            name=f"at {RECORDS_PER_S} records/s",
            at=RECORDS_PER_S,
            ratio=_ratio(", p99 of acknowledgement", Unit.MILLISECONDS, tails),
            latencies={kind: latency_of([ms for each in acknowledged[kind] for ms in each]) for kind in KINDS},
        ),
    )


def _ratio(what: str, unit: Unit, values: dict[str, list[float]]) -> Ratio:
    idempotent, plain = values.values()
    return Ratio(
        subject=f"idempotent producer{what}",
        against="plain producer",
        unit=unit,
        pairs=tuple(zip(idempotent, plain, strict=True)),
    )


def _acknowledged(cluster: CostCluster, topic: str, *, idempotent: bool) -> list[float]:
    """Milliseconds from handing each record over until its acknowledgement, at a steady pace."""
    by = producer(cluster, idempotent=idempotent)
    took_ms: list[float] = []
    count = round(RECORDS_PER_S * SECONDS)
    pace = SteadyPace(RECORDS_PER_S)
    # The first round over the partitions connects to their leaders, and does not count.
    for sent in range(PARTITIONS + count):
        if sent == PARTITIONS:
            by.flush(WITHIN_S)
            took_ms.clear()
        pace.wait()
        at_s = time.monotonic()
        send(
            by,
            topic,
            sent % PARTITIONS,
            on_delivery=lambda error, _, at_s=at_s: None if error else took_ms.append((time.monotonic() - at_s) * 1000),
        )
        by.poll(0)
    by.flush(WITHIN_S)
    if len(took_ms) != count:
        raise WorthlessRateError(f"{len(took_ms)} of {count} records were acknowledged.")
    return took_ms
