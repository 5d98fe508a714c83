"""Compare the judge with DuckDB and a textbook query, and write `docs/generated/performance.md`: `tox -e bench-verify`.

Only a complete run writes the file: every contender, 10^5 records in order, 10^6 and 10^7 with plants. Any other run only
prints. The run ends with code 5 if a contender does not find exactly the planted violations, or if DuckDB shows other
records around the examples than the product. A bound that does not hold is printed and written.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from platform import python_version

from benchmarks.judge import figures
from benchmarks.judge.contenders import (
    CONTENDERS,
    DUCKDB,
    LARGE,
    PRODUCT,
    SMALL,
    Contender,
    Setting,
    Turn,
    compare,
    perform,
    require,
)
from benchmarks.judge.figures import Size
from benchmarks.judge.findings import kinds
from benchmarks.judge.generator.evidence import make
from benchmarks.judge.generator.plan import EvidencePlan
from benchmarks.measuring.command import Bench, Benchmark, BenchmarkResult
from benchmarks.measuring.table import render
from fixtures.tools.java import find_java
from fixtures.tools.spark_class_archive import keep_classes
from runner.config import ROOT
from verification.command_line import Parser
from verification.evidence.run_directory import RunDirectory
from verification.spark.java import java_major, spark_java

SIZES = (SMALL, 1_000_000, 10_000_000)
LARGEST = 100_000_000
SEED = 1
#: Below `LARGE` a turn takes seconds. From there on it takes minutes, in which a disturbance matters little.
TURNS, TURNS_LARGE = 3, 1
#: The contenders for more than `LARGE` records. The textbook would take an hour and show nothing new.
BEYOND = (PRODUCT, DUCKDB)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeOptions:
    """Sizes, contenders, seed and threads; `turns` is None for the usual number."""

    sizes: tuple[int, ...]
    contenders: tuple[Contender, ...]
    turns: int | None
    seed: int
    threads: int

    @property
    def complete(self) -> bool:
        """Whether the figures may be published in the documentation."""
        return set(SIZES) <= set(self.sizes) and self.contenders == CONTENDERS

    def contenders_of(self, records: int) -> tuple[Contender, ...]:
        """The contenders for a size. The smallest measures the cost of a Spark session, so only the product takes part."""
        if records == SMALL:
            return tuple(contender for contender in self.contenders if contender is PRODUCT)
        return tuple(contender for contender in self.contenders if records <= LARGE or contender in BEYOND)

    def turns_of(self, records: int) -> int:
        """How often each contender judges evidence of a size."""
        return self.turns or (TURNS_LARGE if records >= LARGE else TURNS)


def plan_of(records: int, seed: int) -> EvidencePlan:
    """The plan for evidence of a size."""
    return (
        EvidencePlan(records=records, seed=seed, rounds=0)
        if records == SMALL
        else EvidencePlan(records=records, seed=seed)
    )


def size_of(options: JudgeOptions, records: int, place: Path, say: Callable[[str], None]) -> Size:
    """Make the evidence of one size, let all contenders judge it by turns, and remove it. Raises BenchError."""
    directory = RunDirectory(place / f"{records}")
    began = time.monotonic()
    made = make(directory, plan_of(records, options.seed))
    bytes_ = sum(path.stat().st_size for path in directory.root.rglob("*") if path.is_file())
    say(f"{made.records} records made in {time.monotonic() - began:.0f} s, {bytes_ / 1e6:.0f} MB")
    setting = Setting(directory=directory, records=records, threads=options.threads)
    judged: dict[Contender, list[Turn]] = {contender: [] for contender in options.contenders_of(records)}
    for turn in range(options.turns_of(records)):
        for contender, turns in judged.items():
            one = perform(contender, setting, made.planted, place)
            turns.append(one)
            took = one.footprint
            say(
                f"turn {turn + 1}, {contender.name}: {took.seconds:.1f} s, processor {took.processor_s:.1f} s, "
                f"{took.peak_bytes / 1e9:.2f} GB, driver {took.driver_bytes / 1e9:.2f} GB; found all {len(made.planted)}"
            )
        if {PRODUCT, DUCKDB} <= judged.keys():
            say(f"turn {turn + 1}: both show the same {compare(setting, place)} rows around examples")
    shutil.rmtree(directory.root)
    return Size(
        setting=setting, made=made.records, planted=len(made.planted), kinds=len(kinds(made.planted)), judged=judged
    )


def _options(parser: Parser, arguments: Sequence[str] | None) -> JudgeOptions:
    parser.add_argument(
        "--large",
        action="store_true",
        help=f"also judge {LARGEST} records, with the product and DuckDB: a quarter of an hour, 6 GB of disk",
    )
    parser.add_argument(
        "--records", action="append", type=int, metavar="N", help="this size instead of the usual ones; repeatable"
    )
    names = [contender.name for contender in CONTENDERS]
    parser.add_argument(
        "--skip", "--without", action="append", default=[], choices=names, help="leave a contender out; repeatable"
    )
    parser.add_argument("--repeat", "--turns", type=int, metavar="N", help="how often each contender judges each size")
    parser.add_argument("--seed", type=int, default=SEED, help="a different seed makes different evidence")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="threads of each contender")
    parsed = parser.parse_args(arguments)
    numbers = (parsed.repeat, parsed.threads, *(parsed.records or ()))
    if any(number is not None and number < 1 for number in numbers):
        parser.error("--records, --repeat and --threads must be at least 1")
    contenders = tuple(contender for contender in CONTENDERS if contender.name not in parsed.skip)
    if not contenders:
        parser.error("--skip leaves no contender")
    return JudgeOptions(
        sizes=tuple(sorted(set(parsed.records or (*SIZES, *((LARGEST,) if parsed.large else ()))))),
        contenders=contenders,
        turns=parsed.repeat,
        seed=parsed.seed,
        threads=parsed.threads,
    )


def _measure(options: JudgeOptions, bench: Bench) -> BenchmarkResult:
    require(options.contenders)
    needed = dict.fromkeys(contender.needs for contender in options.contenders)
    versions = ", ".join(f"{figures.PACKAGES[package]} {version(package)}" for package in needed)
    machine = bench.describe_machine(software=f"{versions}, Python {python_version()}", java=java_major(spark_java()))
    # Keep the classes that Spark's JVM loads, as after any run on a machine.
    keep_classes(find_java(), say=bench.say)
    sizes = [size_of(options, records, bench.directory, bench.say) for records in options.sizes]
    ratios = figures.ratios(sizes)
    return BenchmarkResult(
        tables=(figures.seen(sizes), *((render(ratios),) if ratios else ())),
        bounds=figures.bounds(sizes),
        page=figures.page(sizes, (*machine, f"{options.threads} threads for each contender"))
        if options.complete
        else None,
    )


BENCHMARK = Benchmark(
    name="benchmarks.judge",
    description="Compare the judge with DuckDB and a textbook query, on evidence with planted violations.",
    file=ROOT / "docs" / "generated" / "performance.md",
    options=_options,
    measure=_measure,
)

if __name__ == "__main__":
    BENCHMARK.run_program()
