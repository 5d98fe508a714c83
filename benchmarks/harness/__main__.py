"""Measure the cost of this suite, print it as ratios, and write `docs/generated/benchmarks.md`: `tox -e bench`.

Only a complete run writes the file: every part, a million records, three pairs. Any other run only prints.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from benchmarks.harness import judging, report, spending, starting, throughput, wire_client
from benchmarks.measuring.command import Bench, Benchmark, BenchmarkResult
from benchmarks.measuring.ratio import Ratio
from benchmarks.measuring.table import render
from fixtures.clusters.local.runtime import LocalRuntime
from fixtures.clusters.locks.releases import Release, default_release, parse_release
from runner.config import ROOT, RunConfig
from runner.environment import Environment
from runner.errors import ENVIRONMENT_ERRORS
from runner.resources import RunResources, ScenarioLane
from verification.command_line import Parser

PARTS = ("spending", "starting", "speaking", "judging", "throughput", "reporting")
#: Fewer records are judged in less time than Spark needs for planning, so they show no rate.
RECORDS = 1_000_000
PAIRS = 5
PAIRS_LEAST = 3
#: Spark's own default of 1 GiB does not hold the judgement of 10^6 records. The user's own setting takes precedence.
SPARK_MEMORY = ("SPARK_DRIVER_MEMORY", "3g")


@dataclass(frozen=True, slots=True, kw_only=True)
class HarnessOptions:
    """Which parts are measured, on which release, with how many records and pairs."""

    parts: tuple[str, ...]
    records: int
    pairs: int
    release: Release

    @property
    def complete(self) -> bool:
        """Whether the figures may be published in the documentation."""
        return self.parts == PARTS and self.records >= RECORDS and self.pairs >= PAIRS_LEAST


class Parts:
    """The parts of one run, with the cluster and the Spark session that they share and that the first user starts."""

    def __init__(self, options: HarnessOptions, config: RunConfig, environment: Environment, bench: Bench) -> None:
        self.options = options
        self.config = config
        self.environment = environment
        self.bench = bench
        self.problems: list[str] = []
        self.spending: tuple[str, ...] = ()
        self._stack = ExitStack()
        self._lane: ScenarioLane | None = None

    def measure(self) -> list[Ratio]:
        """The ratios of all parts; the error of a part that failed is printed and added to `problems`."""
        options, bench = self.options, self.bench
        parts: dict[str, Callable[[], tuple[Ratio, ...]]] = {
            "spending": self._spend,
            "starting": lambda: starting.measure(
                self._runtime, self.config.directory / "starts", pairs=options.pairs, say=bench.say
            ),
            "speaking": lambda: wire_client.measure(
                self._runtime, self.config.directory / "speaking", pairs=options.pairs, say=bench.say
            ),
            "judging": lambda: judging.measure(self._open(), bench.say),
            "throughput": lambda: throughput.measure(self._open(), bench.say, records=options.records),
            "reporting": lambda: report.measure(
                self._open(), self.config.directory / "report", pairs=options.pairs, say=bench.say
            ),
        }
        ratios: list[Ratio] = []
        with self._stack:
            for name in options.parts:
                bench.say(f"{name} …")
                try:
                    ratios += parts[name]()
                except ENVIRONMENT_ERRORS as error:
                    self.problems.append(f"{name}: {error}")
                    bench.say(self.problems[-1])
        return ratios

    def _spend(self) -> tuple[Ratio, ...]:
        """Keep the tables of a run's processor time. It runs first, while no JVM of other parts lives."""
        place = self.config.directory / "spending"
        self.spending = spending.tables(spending.measure(self.options.release.version, place, self.bench.say))
        return ()

    @property
    def _runtime(self) -> LocalRuntime:
        assert isinstance(self.environment.brokers, LocalRuntime), (
            "the configuration asks for processes of this machine"
        )
        return self.environment.brokers

    def _open(self) -> ScenarioLane:
        if self._lane is None:
            os.environ.setdefault(*SPARK_MEMORY)
            resources = RunResources(self.config, self.bench.console, environment=self.environment)
            self._lane = self._stack.enter_context(resources).lane()
        return self._lane


def page(ratios: Sequence[Ratio], machine: Sequence[str], spent: Sequence[str] = ()) -> str:
    """The text of `docs/generated/benchmarks.md`."""
    return "\n".join(
        [
            "# Benchmarks",
            "",
            "Written by `tox -e bench`. Each ratio compares two things that one run measured by turns; the ratio is the",
            "median over the pairs. The figures *seen here* belong to that machine in that minute and promise nothing.",
            "",
            *(f"* {line}" for line in machine),
            "",
            render(ratios),
            "",
            *(line for table in spent for line in (table, "")),
        ]
    )


def _options(parser: Parser, arguments: Sequence[str] | None) -> HarnessOptions:
    parser.add_argument("--kafka", metavar="VERSION", default=default_release().version, help="Kafka release")
    parser.add_argument("--only", action="append", choices=PARTS, help="measure this part only; repeatable")
    parser.add_argument(
        "--records", type=int, default=RECORDS, metavar="N", help=f"records to judge (default {RECORDS})"
    )
    parser.add_argument(
        "--repeat", "--pairs", type=int, default=PAIRS, metavar="N", help=f"rounds of each kind (default {PAIRS})"
    )
    parsed = parser.parse_args(arguments)
    if parsed.repeat < PAIRS_LEAST:
        parser.error(f"--repeat {parsed.repeat} is too few for a median; use at least {PAIRS_LEAST}")
    if parsed.records < 1:
        parser.error(f"--records {parsed.records} leaves no records to judge; use at least 1")
    return HarnessOptions(
        parts=tuple(part for part in PARTS if part in (parsed.only or PARTS)),
        records=parsed.records,
        pairs=parsed.repeat,
        release=parse_release(parsed.kafka),
    )


def _measure(options: HarnessOptions, bench: Bench) -> BenchmarkResult:
    config, environment, machine = bench.prepare(options.release)
    parts = Parts(options, config, environment, bench)
    ratios = parts.measure()
    return BenchmarkResult(
        tables=(*((render(ratios),) if ratios else ()), *parts.spending) or ("nothing could be measured",),
        page=page(ratios, machine, parts.spending) if options.complete else None,
        unmeasured=parts.problems,
    )


BENCHMARK = Benchmark(
    name="benchmarks.harness",
    description="Measure the cost of this suite, as ratios of things that one run measures by turns.",
    file=ROOT / "docs" / "generated" / "benchmarks.md",
    options=_options,
    measure=_measure,
    kept="nothing is left running, and nothing was written",
)

if __name__ == "__main__":
    BENCHMARK.run_program()
