"""The mutation test of the judge in small: the same mutators, fewer mutants; `tox -e judge-mutants` makes all of them."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.judge_mutants.__main__ import BENCHMARK, COMMAND, EACH, PAGE
from benchmarks.judge_mutants.__main__ import SEED as KEPT_SEED
from benchmarks.judge_mutants.base import RUNS, Base, bases, place_of
from benchmarks.judge_mutants.batch import judged, passed_unread
from benchmarks.judge_mutants.in_memory_rows import run_in_memory
from benchmarks.judge_mutants.mutant import Mutant
from benchmarks.judge_mutants.registry import MUTATORS, mutants
from benchmarks.judge_mutants.score import MutantOutcome, Score, lines, outcome_of, page, summary
from benchmarks.judge_mutants.trim_run import cut
from verification.evidence.rows import all_rows
from verification.evidence.run_evidence import read_run
from verification.fingerprints.workers.agreement import disagreement
from verification.judge.primary_findings import attribute
from verification.reference import judge_rows
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.verdict import ExitCode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = [mutator.name for mutator in MUTATORS]
#: A different seed than the score's, so that these are other mutants.
SEED = 5


@lru_cache(maxsize=1)
def _bases() -> tuple[Base, ...]:
    return tuple(bases())


@pytest.fixture(scope="module")
def made() -> list[Mutant]:
    """Two mutants by every mutator."""
    return list(mutants(_bases(), each=2, seed=SEED))


@pytest.mark.parametrize("name", sorted(path.name for path in RUNS.iterdir() if path.is_dir()))
def test_the_clean_runs_are_clean(name: str) -> None:
    """The base itself passes, so every violation in a mutant was made by its mutator."""
    (base,) = [base for base in _bases() if base.name == name]
    assert judge_rows(base.rows) == []


@pytest.mark.parametrize("name", NAMES)
def test_the_reference_is_right_about_every_mutator(name: str, made: list[Mutant]) -> None:
    """A mutant that breaks something is killed by exactly that, and a harmless mutant passes."""
    mine = [mutant for mutant in made if mutant.mutator == name]
    assert len(mine) == 2
    for mutant in mine:
        assert frozenset(attribute(judge_rows(mutant.rows)).primary) == mutant.breaks, mutant.base.name


@pytest.mark.parametrize("name", ["copier-killed", "partitioned-zombie", "transactional-relay"])
def test_a_cut_run_is_a_clean_run(name: str, tmp_path: Path) -> None:
    """Cutting leaves whole operations: the smaller run can be judged, and passes as the whole run does."""
    (whole,) = [base for base in _bases() if base.name == name]
    rows = all_rows(read_run(cut(RUNS / name, tmp_path / name, per_kind=1)))
    assert judge_rows(rows) == []
    assert {place_of(row) for row in rows["log"]} < {place_of(row) for row in whole.rows["log"]}
    assert {row["action"] for row in rows["operations"]} == {row["action"] for row in whole.rows["operations"]}


def test_every_anomaly_is_made(made: list[Mutant]) -> None:
    """There is a mutator for every anomaly, and there are harmless ones."""
    assert {anomaly for mutant in made for anomaly in mutant.breaks} == set(Anomaly)
    assert any(not mutant.breaks for mutant in made)


def test_a_seed_makes_the_same_mutants_again() -> None:
    """A score names its mutants, so the same seed makes the same ones, and another seed others."""
    first, again, other = (
        [mutant.rows for mutant in islice(mutants(_bases(), each=1, seed=seed), 20)] for seed in (SEED, SEED, SEED + 1)
    )
    assert again == first
    assert other != first


def test_bases_stay_as_they_were(made: list[Mutant]) -> None:
    """Mutants share rows with their base; none of them changes a row in place."""
    assert made
    assert [base.rows for base in _bases()] == [base.rows for base in bases()]


@pytest.mark.parametrize(
    ("breaks", "found", "expected"),
    [
        ({Anomaly.DUPLICATE}, {Anomaly.DUPLICATE}, MutantOutcome.KILLED),
        (set(), set(), MutantOutcome.PASSED),
        ({Anomaly.DUPLICATE}, set(), MutantOutcome.SURVIVED),
        (set(), {Anomaly.DUPLICATE}, MutantOutcome.FALSELY_REPORTED),
        ({Anomaly.DUPLICATE}, {Anomaly.LOST_WRITE}, MutantOutcome.MISNAMED),
        ({Anomaly.DUPLICATE}, {Anomaly.DUPLICATE, Anomaly.LOST_WRITE}, MutantOutcome.MISNAMED),
    ],
)
def test_judgements(breaks: set[Anomaly], found: set[Anomaly], expected: MutantOutcome) -> None:
    """Only the exact set of anomalies counts as right."""
    assert outcome_of(frozenset(breaks), frozenset(found)) is expected


def test_a_judge_that_sees_nothing_is_shown_up(made: list[Mutant]) -> None:
    """A score without findings has survivors and disagreements, and shows them in the mutator's row."""
    score = Score()
    guilty = next(mutant for mutant in made if mutant.breaks)
    score.add(guilty, [])
    assert not score.flawless
    assert (score.total(MutantOutcome.SURVIVED), score.disagreements) == (1, [guilty.name])
    assert any(guilty.mutator in line and "| 1 |" in line for line in lines(score, MUTATORS))


def test_fingerprints_that_pass_a_broken_mutant_are_shown_up(made: list[Mutant]) -> None:
    """A broken mutant that the fingerprints pass is a mistake, even if both judges find its anomalies."""
    guilty = next(mutant for mutant in made if mutant.breaks)
    score = Score()
    score.add(guilty, judge_rows(guilty.rows), unread=True)
    assert [(each.judge, each.outcome) for each in score.mistakes] == [("the fingerprints", MutantOutcome.SURVIVED)]
    assert summary(score).endswith("the fingerprints passed 0 of those that break nothing, and 1 of the others")


def test_every_mutator_is_on_the_page() -> None:
    """A new mutator is not published until the score has been made again."""
    kept = PAGE.read_text(encoding="utf-8")
    assert [name for name in NAMES if f"\n| `{name}` | " not in kept] == []


@pytest.mark.deep
def test_the_kept_score_is_of_these_mutators_and_flawless() -> None:
    """The published score is that of a judge that is right about each of today's thousand mutants."""
    score = Score()
    quiet = 0
    for mutant in mutants(_bases(), each=EACH, seed=KEPT_SEED):
        score.judged[mutant.mutator, outcome_of(mutant.breaks, mutant.breaks)] += 1
        score.broken.setdefault(mutant.mutator, Counter())[mutant.breaks] += 1
        quiet += (
            not mutant.breaks and mutant.rows["runs"][0]["has_log"] and disagreement(run_in_memory(mutant.rows)) is None
        )
    score.unread[False] = quiet
    assert sum(score.judged.values()) >= 1_000
    assert PAGE.read_text(encoding="utf-8") == page(score, MUTATORS, _bases(), seed=KEPT_SEED, command=COMMAND)


@pytest.mark.parametrize(
    "arguments", [["--runs", "nowhere"], ["--per-mutator", "0"], ["--runs", str(RUNS / "leader-crash")]]
)
def test_nothing_to_judge_is_a_usage_error(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A score of no mutants would be flawless, so it is refused before a session starts."""
    assert BENCHMARK.main(arguments) == ExitCode.USAGE
    assert capsys.readouterr().err


@pytest.mark.spark
@pytest.mark.deep
def test_spark_is_right_about_every_mutator(spark: SparkSession, made: list[Mutant]) -> None:
    """One job: the checks kill exactly the mutants that break something, by exactly that."""
    score = Score()
    found, unread = judged(spark, made), passed_unread(spark, made)
    for mutant in made:
        score.add(mutant, found.get(mutant.name, ()), unread=mutant.name in unread)
    assert [str(mistake) for mistake in score.mistakes] == []
    assert score.disagreements == []
    assert score.unread[False] > len(made) // 6
