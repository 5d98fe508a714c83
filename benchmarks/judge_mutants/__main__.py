"""The mutation test of the judge: `tox -e judge-mutants`.

Makes mutants of clean runs. Spark judges them in a few jobs, the reference judges each one. Prints the score and writes
it as a page; a run with fewer mutants only prints. The exit code is 0 if both judges were right about every mutant, and
5 if one was wrong: that is a mistake of the judge, not of any subject.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

from benchmarks.judge_mutants.base import RUNS, Base, bases
from benchmarks.judge_mutants.batch import judged, passed_unread
from benchmarks.judge_mutants.registry import MUTATORS, mutants
from benchmarks.judge_mutants.score import Score, lines, page, summary
from benchmarks.measuring.command import Bench, Benchmark, BenchmarkResult
from fixtures.errors import UsageError
from fixtures.tools.java import find_java, spark_java_home
from runner.config import ROOT
from verification.command_line import Parser
from verification.vocabulary.errors import UnfitEvidenceError
from verification.vocabulary.verdict import ExitCode

COMMAND = "tox -e judge-mutants"
PAGE = ROOT / "docs" / "generated" / "judge-score.md"
#: Mutants by each mutator: with these, more than a thousand in all.
EACH = 14
SEED = 1
#: Mutants per job: their dataframes have some hundred thousand rows, which fit well into two gigabytes.
BATCH = 400


def _options(parser: Parser, arguments: Sequence[str] | None) -> argparse.Namespace:
    parser.add_argument("--per-mutator", "--each", type=int, default=EACH, metavar="N", help="mutants by each mutator")
    parser.add_argument("--seed", type=int, default=SEED, help="a different seed makes different mutants")
    parser.add_argument("--runs", type=Path, default=RUNS, metavar="DIR", help="directory with clean runs")
    parser.add_argument("--page", type=Path, metavar="FILE", help=f"file for the score (default: {PAGE.name})")
    parsed = parser.parse_args(arguments)
    if parsed.per_mutator < 1:
        raise UsageError(f"--per-mutator {parsed.per_mutator} makes no mutants.", hint="Use at least 1.")
    return parsed


def _scored(clean: Sequence[Base], options: argparse.Namespace, say: Callable[[str], None]) -> Score:
    """Judge all mutants of the clean runs; raises SessionError."""
    from verification.spark.session import start

    began = time.monotonic()
    spark = start(java_home=spark_java_home(find_java()))
    score = Score()
    made = mutants(clean, each=options.per_mutator, seed=options.seed)
    while several := tuple(islice(made, BATCH)):
        found, unread = judged(spark, several), passed_unread(spark, several)
        for mutant in several:
            score.add(mutant, found.get(mutant.name, ()), unread=mutant.name in unread)
        say(f"{sum(score.judged.values())} mutants judged after {time.monotonic() - began:.0f} s")
    return score


def _measure(options: argparse.Namespace, bench: Bench) -> BenchmarkResult:
    try:
        clean = bases(options.runs)
    except (OSError, UnfitEvidenceError) as error:
        raise UsageError(str(error)) from error
    if not clean:
        raise UsageError(f"{options.runs} holds no run, so no mutants can be made.")
    score = _scored(clean, options, bench.say)
    bench.say("\n".join(lines(score, MUTATORS)))
    for mistake in score.mistakes:
        bench.say(str(mistake))
    if score.disagreements:
        bench.say(f"the judges disagree about {', '.join(score.disagreements)}")
    usual = (options.per_mutator, options.seed) == (EACH, SEED)
    command = COMMAND if usual else f"{COMMAND} -- --per-mutator {options.per_mutator} --seed {options.seed}"
    complete = options.runs == RUNS and options.per_mutator >= EACH
    written = page(score, MUTATORS, clean, seed=options.seed, command=command)
    return BenchmarkResult(
        tables=(summary(score),),
        page=written if options.page or complete else None,
        code=ExitCode.CONFORMANT if score.flawless else ExitCode.ENVIRONMENT,
        file=options.page,
    )


BENCHMARK = Benchmark(
    name="benchmarks.judge_mutants",
    description="Test the judge on mutants of clean runs.",
    file=PAGE,
    options=_options,
    measure=_measure,
    kept="the page of the last score stays as it was",
)

if __name__ == "__main__":
    BENCHMARK.run_program()
