"""The mutation test of the judge: `tox -e judge-mutants`.

Makes mutants of the clean runs, judges them with Spark in a few jobs and with the reference, prints the score, and
writes it as a page; a run of fewer mutants is only printed. Ends with 0 when every mutant was judged right by both,
with 5 when one was not: that says something about this judge and nothing about any subject.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from benchmarks.judge_mutants.base import RUNS, Base, bases
from benchmarks.judge_mutants.batch import acquitted, judged
from benchmarks.judge_mutants.registry import MUTATORS, mutants
from benchmarks.judge_mutants.score import Score, lines, page, summary
from fixtures.tools.java import find_java, spark_java_home
from runner.config import ROOT
from verification.command_line import Parser, end_with
from verification.vocabulary.errors import SessionError, UnfitEvidenceError
from verification.vocabulary.verdict import ExitCode

COMMAND = "tox -e judge-mutants"
PAGE = ROOT / "docs" / "generated" / "judge-score.md"
#: Mutants by each mutator: with these, more than a thousand in all.
EACH = 14
SEED = 1
#: Mutants per job: frames of some hundred thousand rows, which two gigabytes hold with ease.
BATCH = 400


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(prog="python -m benchmarks.judge_mutants", description="Try the judge on mutants of clean runs.")
    parser.add_argument("--each", type=int, default=EACH, metavar="N", help="mutants by each mutator")
    parser.add_argument("--seed", type=int, default=SEED, help="another seed makes other mutants")
    parser.add_argument("--runs", type=Path, default=RUNS, metavar="DIR", help="directory with clean runs")
    parser.add_argument("--page", type=Path, metavar="FILE", help="where the score is written; default: " + PAGE.name)
    return parser.parse_args(arguments)


def _scored(clean: Sequence[Base], *, each: int, seed: int) -> Score:
    """Judge all mutants of the clean runs; raises SessionError."""
    from verification.spark.session import start

    began = time.monotonic()
    spark = start(java_home=spark_java_home(find_java()))
    score = Score()
    made = mutants(clean, each=each, seed=seed)
    while several := tuple(islice(made, BATCH)):
        found, unread = judged(spark, several), acquitted(spark, several)
        for mutant in several:
            score.add(mutant, found.get(mutant.name, ()), acquitted=mutant.name in unread)
        print(f"{sum(score.judged.values())} mutants judged after {time.monotonic() - began:.0f} s", flush=True)
    return score


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge, print the score and every mistake, write the page, and return the exit code."""
    parsed = _arguments(arguments)
    try:
        clean = bases(parsed.runs)
    except (OSError, UnfitEvidenceError) as error:
        print(error, file=sys.stderr)
        return ExitCode.USAGE
    if not clean or parsed.each < 1:
        print(f"no mutants can be made of {parsed.runs}: it holds no run, or none was asked for", file=sys.stderr)
        return ExitCode.USAGE
    try:
        score = _scored(clean, each=parsed.each, seed=parsed.seed)
    except SessionError as error:
        print(error, file=sys.stderr)
        return ExitCode.ENVIRONMENT
    print("\n".join(lines(score, MUTATORS)))
    for mistake in score.mistakes:
        print(mistake)
    if score.disagreements:
        print(f"the judges disagree about {', '.join(score.disagreements)}")
    print(summary(score))
    whole = parsed.runs == RUNS and parsed.each >= EACH
    if target := parsed.page or (PAGE if whole else None):
        usual = (parsed.each, parsed.seed) == (EACH, SEED)
        command = COMMAND if usual else f"{COMMAND} -- --each {parsed.each} --seed {parsed.seed}"
        target.write_text(page(score, MUTATORS, clean, seed=parsed.seed, command=command), encoding="utf-8")
    return ExitCode.CONFORMANT if score.flawless else ExitCode.ENVIRONMENT


if __name__ == "__main__":
    end_with(main, program="python -m benchmarks.judge_mutants", kept="the page of the last score stays as it was")
