"""`tox -e bench-verify`: measure the judge beside DuckDB and the textbook, and write `docs/generated/performance.md`.

The file is written only by a complete run: every party, 10^5 records in order, 10^6 and 10^7 with plants. Anything less is
printed. A party that does not find exactly what was planted, and a yardstick that shows other records around it than the
product, end the run with code 5; a bound that does not hold is printed and written.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.judge import figures
from benchmarks.judge.contenders import (
    CONTENDERS,
    DUCKDB,
    LARGE,
    PRODUCT,
    SMALL,
    Contender,
    Judged,
    Setting,
    compare,
    perform,
    require,
)
from benchmarks.judge.figures import Size
from benchmarks.judge.findings import kinds
from benchmarks.judge.generator.evidence import make
from benchmarks.judge.generator.plan import Plan
from benchmarks.measuring.publishing import publish
from benchmarks.measuring.ratio import Ratio
from benchmarks.measuring.table import look, render
from fixtures.errors import OnceproofError
from fixtures.tools.java import find_java
from fixtures.tools.spark_class_archive import keep_classes
from runner.config import OUT, ROOT
from verification.command_line import Parser, end_with
from verification.evidence.run_directory import RunDirectory
from verification.spark.java import java_major, spark_java
from verification.vocabulary.errors import VerificationError
from verification.vocabulary.verdict import ExitCode

PAGE = ROOT / "docs" / "generated" / "performance.md"
SIZES = (SMALL, 1_000_000, 10_000_000)
LARGEST = 100_000_000
SEED = 1
#: Below `LARGE` a turn takes seconds; from there on minutes, in which little disturbs the whole.
TURNS, TURNS_LARGE = 3, 1
#: More than `LARGE` records are not for the textbook: it would take an hour to say again what it said before.
BEYOND = (PRODUCT, DUCKDB)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for; `turns` is None for the usual number."""

    sizes: tuple[int, ...]
    contenders: tuple[Contender, ...]
    turns: int | None
    seed: int
    threads: int

    @property
    def complete(self) -> bool:
        """Whether the figures may stand in the documentation."""
        return set(SIZES) <= set(self.sizes) and self.contenders == CONTENDERS

    def parties_of(self, records: int) -> tuple[Contender, ...]:
        """Who judges evidence of a size; whoever does not pay for a session is no yardstick for what one costs."""
        if records == SMALL:
            return tuple(contender for contender in self.contenders if contender is PRODUCT)
        return tuple(contender for contender in self.contenders if records <= LARGE or contender in BEYOND)

    def turns_of(self, records: int) -> int:
        """How often each party judges evidence of a size."""
        return self.turns or (TURNS_LARGE if records >= LARGE else TURNS)


def _options(arguments: list[str] | None) -> Request:
    parser = Parser(prog="python -m benchmarks.judge", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--large",
        action="store_true",
        help=f"also {LARGEST} records, by the product and DuckDB: a quarter of an hour, and 6 GB of disk",
    )
    parser.add_argument("--records", action="append", type=int, metavar="N", help="this size instead; repeatable")
    names = [contender.name for contender in CONTENDERS]
    parser.add_argument("--without", action="append", default=[], choices=names, help="leave a party out; repeatable")
    parser.add_argument("--turns", type=int, metavar="N", help="how often each party judges each size")
    parser.add_argument("--seed", type=int, default=SEED, help="another seed makes other evidence")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="threads of each party")
    options = parser.parse_args(arguments)
    if any(number is not None and number < 1 for number in (options.turns, options.threads, *(options.records or ()))):
        parser.error("records, turns and threads are at least 1")
    sizes = tuple(sorted(set(options.records or (*SIZES, *((LARGEST,) if options.large else ())))))
    contenders = tuple(contender for contender in CONTENDERS if contender.name not in options.without)
    if not contenders:
        parser.error("--without leaves nobody to judge")
    return Request(sizes=sizes, contenders=contenders, turns=options.turns, seed=options.seed, threads=options.threads)


def plan_of(records: int, seed: int) -> Plan:
    """What is made of a size."""
    return Plan(records=records, seed=seed, rounds=0) if records == SMALL else Plan(records=records, seed=seed)


def measure(request: Request, records: int, place: Path, say: Callable[[str], None]) -> Size:
    """Make the evidence of one size, let all judge it by turns, and remove it; raises what a party raises."""
    directory = RunDirectory(place / f"{records}")
    began = time.monotonic()
    made = make(directory, plan_of(records, request.seed))
    bytes_ = sum(path.stat().st_size for path in directory.root.rglob("*") if path.is_file())
    say(f"{made.records} records made in {time.monotonic() - began:.0f} s, {bytes_ / 1e6:.0f} MB")
    setting = Setting(directory=directory, records=records, threads=request.threads)
    judged: dict[Contender, list[Judged]] = {contender: [] for contender in request.parties_of(records)}
    for turn in range(request.turns_of(records)):
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


def run(request: Request, place: Path, say: Callable[[str], None]) -> ExitCode:
    """Measure everything and say it; the exit code. Raises what a party raises."""
    require(request.contenders)
    here = look(release="", java=java_major(spark_java()))
    # As after any run on a machine: what Spark's JVM loads is kept.
    keep_classes(find_java(), say=say)
    sizes = [measure(request, records, place, say) for records in request.sizes]
    ratios: list[Ratio] = figures.ratios(sizes)
    say("")
    say(figures.seen(sizes))
    if ratios:
        say("")
        say(render(ratios))
    for bound in figures.bounds(sizes):
        say(str(bound))
    publish(PAGE, figures.page(sizes, figures.machine(here, request.threads)) if request.complete else None, say)
    return ExitCode.CONFORMANT


def main(arguments: list[str] | None = None) -> int:
    """Measure; exit code 0, 4 for bad options, 5 when a party failed or was wrong."""
    request = _options(arguments)

    def say(text: str) -> None:
        print(text, flush=True)

    OUT.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(prefix=".bench-verify-", dir=OUT, ignore_cleanup_errors=True) as place:
            return run(request, Path(place), say)
    except OnceproofError as error:
        say(str(error))
        return error.exit_code
    except VerificationError as error:
        say(str(error))
        return ExitCode.ENVIRONMENT


if __name__ == "__main__":
    end_with(main, program="python -m benchmarks.judge", kept="the page stays as it was")
