"""Measure how fast each source reads one real log into Spark, and write `docs/generated/reading.md`: `tox -e bench-reading`.

A single broker of this machine holds a log that a real producer wrote. One session reads it by `wire`, by Spark's own
connector and by confluent-kafka, by turns. Only a complete run writes the file: 10^7 records, three turns. Any other run
only prints. If the sources do not read the same records, the run ends with code 5. A bound that does not hold is printed
and written.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measuring.command import Bench, Benchmark, BenchmarkResult
from benchmarks.measuring.table import render
from benchmarks.reading.figures import bounds, page, ratios
from benchmarks.reading.filling import fill
from benchmarks.reading.reading import PinnedLog, Took, by_turns
from chaos.cluster import Site
from fixtures.clusters.local.runtime import LocalRuntime
from fixtures.clusters.locks.releases import default_release
from fixtures.clusters.locks.spark_connector import connector_jars
from fixtures.clusters.spec import ClusterSpec
from runner.config import ROOT
from runner.environment import Environment
from verification.command_line import Parser
from verification.spark.session import ARROW_OPTIONS
from wire.client import Client
from wire.messages import Definitions

RECORDS, TURNS = 10_000_000, 3
#: So many records pay for a JVM that optimises; the options of a session that starts quickly are for small jobs.
SETTINGS = {"spark.driver.memory": "2g", "spark.driver.extraJavaOptions": f"-Xss4m {ARROW_OPTIONS}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingOptions:
    """How many records are read, and how often by each source."""

    records: int
    turns: int

    @property
    def complete(self) -> bool:
        """Whether the figures may be published in the documentation."""
        return self.records >= RECORDS and self.turns >= TURNS


def times(
    options: ReadingOptions, environment: Environment, place: Path, say: Callable[[str], None]
) -> Mapping[str, Sequence[Took]]:
    """Write the log and read it; the times of each source. Raises UnequalError, and the errors of cluster and Spark."""
    from verification.spark.session import start
    from verification.spark.worker_code import ship

    jars = connector_jars()
    brokers = environment.brokers
    assert isinstance(brokers, LocalRuntime), "the configuration asks for processes of this machine"
    release = str(brokers.files.release)
    spec = ClusterSpec(release=release, brokers=1, replicas=1, min_in_sync=1, sites=(Site("app"),))
    cluster = brokers.launch(spec, place / "broker", keep_data=False)
    try:
        definitions = environment.witness_definitions
        with Client(cluster.witness_bootstrap, Definitions.load(*definitions), client_id="bench") as client:
            ends = fill(client, cluster.witness_bootstrap, options.records)
        say(f"{sum(ends.values())} offsets written")
        cores = len(os.sched_getaffinity(0))
        settings = {**SETTINGS, "spark.master": f"local[{cores}]", "spark.jars": ",".join(map(str, jars))}
        spark = start(java_home=environment.spark_java_home, options=settings)
        try:
            ship(spark)
            log = PinnedLog(bootstrap=cluster.witness_bootstrap, definitions=definitions, ends=ends)
            return by_turns(spark, log, tasks=cores, turns=options.turns, say=say)
        finally:
            spark.stop()
    finally:
        cluster.close()


def _options(parser: Parser, arguments: Sequence[str] | None) -> ReadingOptions:
    parser.add_argument(
        "--records", type=int, default=RECORDS, metavar="N", help=f"records to read (default {RECORDS})"
    )
    parser.add_argument(
        "--repeat", "--turns", type=int, default=TURNS, metavar="N", help=f"turns of each (default {TURNS})"
    )
    parsed = parser.parse_args(arguments)
    if parsed.records < 1 or parsed.repeat < 1:
        parser.error("--records and --repeat must be at least 1")
    return ReadingOptions(records=parsed.records, turns=parsed.repeat)


def _measure(options: ReadingOptions, bench: Bench) -> BenchmarkResult:
    _, environment, machine = bench.prepare(default_release())
    found = ratios(options.records, times(options, environment, bench.directory, bench.say))
    return BenchmarkResult(
        tables=(render(found),), bounds=bounds(found), page=page(found, machine) if options.complete else None
    )


BENCHMARK = Benchmark(
    name="benchmarks.reading",
    description="Measure how fast each source reads one real log into Spark.",
    file=ROOT / "docs" / "generated" / "reading.md",
    options=_options,
    measure=_measure,
)

if __name__ == "__main__":
    BENCHMARK.run_program()
