"""Measure the cost of transactions, and write `docs/generated/cost.md` with its plots: `tox -e cost`.

Each part is measured in one run and kept as a line of `docs/generated/cost.jsonl` with its machine. So `--only` measures a
part again and leaves the others as they are. If a part fails, nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

from confluent_kafka import KafkaException

from benchmarks.cost import (
    completion,
    delivery,
    idempotence,
    loading,
    memory,
    pending,
    producer_ids,
    protocols,
    replication,
    streams,
    throughput,
)
from benchmarks.cost.cost_cluster import CostCluster
from benchmarks.cost.page import SECTIONS, page, plots, tables
from benchmarks.cost.rows import CostRow, PartFigures
from benchmarks.measuring.command import Bench, Benchmark, BenchmarkResult
from benchmarks.measuring.errors import WorthlessRateError
from fixtures.clusters.locks.releases import Release, default_release, parse_release
from runner.config import ROOT
from runner.errors import ENVIRONMENT_ERRORS
from runner.resumable_matrix import stored_lines
from verification.command_line import Parser
from verification.evidence.atomic_write import atomic_write

Measure = Callable[[CostCluster, int, Callable[[str], None]], tuple[CostRow, ...]]

#: `pending` is last, because it leaves transactions open.
PARTS: Mapping[str, Measure] = {
    "throughput": throughput.by_records,
    "partitions": throughput.by_partitions,
    "replication": replication.measure,
    "protocols": protocols.measure,
    "completion": completion.measure,
    "delivery": delivery.measure,
    "memory": memory.measure,
    "idempotence": idempotence.measure,
    "streams": streams.measure,
    "producer-ids": producer_ids.measure,
    "loading": loading.measure,
    "pending": pending.measure,
}
#: With these the whole command takes eighteen minutes on two cores.
ROUNDS, ROUNDS_LEAST = 3, 3
PAGES = ROOT / "docs" / "generated"


@dataclass(frozen=True, slots=True, kw_only=True)
class CostOptions:
    """Which parts are measured, on which release, in how many rounds."""

    parts: tuple[str, ...]
    rounds: int
    release: Release


def _options(parser: Parser, arguments: Sequence[str] | None) -> CostOptions:
    parser.add_argument("--kafka", metavar="VERSION", default=default_release().version, help="Kafka release")
    parser.add_argument("--only", action="append", choices=PARTS, help="measure this part only; repeatable")
    parser.add_argument("--repeat", type=int, default=ROUNDS, metavar="N", help=f"rounds (default {ROUNDS})")
    parsed = parser.parse_args(arguments)
    if parsed.repeat < ROUNDS_LEAST:
        parser.error(f"--repeat {parsed.repeat} is too few for a median; use at least {ROUNDS_LEAST}")
    return CostOptions(
        parts=tuple(part for part in PARTS if part in (parsed.only or PARTS)),
        rounds=parsed.repeat,
        release=parse_release(parsed.kafka),
    )


def _measure(options: CostOptions, bench: Bench) -> BenchmarkResult:
    _, environment, machine = bench.prepare(options.release)
    found: list[PartFigures] = []
    problems: list[str] = []
    with CostCluster.started(environment) as cluster:
        for name in options.parts:
            bench.say(f"{name} …")
            try:
                found.append(PartFigures(part=name, machine=machine, rows=measured(name, cluster, options, bench.say)))
            except ENVIRONMENT_ERRORS as error:
                problems.append(f"{name}: {error}")
    return BenchmarkResult(
        tables=tuple(table for part in found for table in tables(part)) or ("nothing could be measured",),
        page=None if problems else page(published(found)),
        unmeasured=problems,
    )


def measured(name: str, cluster: CostCluster, options: CostOptions, say: Callable[[str], None]) -> tuple[CostRow, ...]:
    """The rows of a part. Raises ENVIRONMENT_ERRORS; an error of a client is WorthlessRateError."""
    try:
        return PARTS[name](cluster, options.rounds, say)
    except KafkaException as error:
        raise WorthlessRateError(f"A client failed: {error}.") from error


def published(found: Sequence[PartFigures], place: Path = PAGES) -> dict[str, PartFigures]:
    """Keep the lines of these parts; when all are kept, draw the plots of all parts. Returns all parts by name."""
    store = stored_lines(place / "cost.jsonl", key=itemgetter("part"), show=lambda _: None)
    for part in found:
        store.put(part.line())
    known = {line["part"]: PartFigures.of_line(line) for line in store.cells}
    parts = {name: known[name] for name in SECTIONS if name in known}
    for name, text in plots(parts).items():
        atomic_write(place / name, text)
    return parts


BENCHMARK = Benchmark(
    name="benchmarks.cost",
    description="Measure the cost of transactions, as ratios of things that one run measures by turns.",
    file=PAGES / "cost.md",
    options=_options,
    measure=_measure,
)

if __name__ == "__main__":
    BENCHMARK.run_program()
