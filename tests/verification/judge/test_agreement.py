"""Two judges, one verdict: the Spark checks and the plain-Python reference on hundreds of generated histories.

Hypothesis generates the histories; Spark judges them all in one job per batch, because a job per history would measure
Spark's start-up. When the judges disagree, the history is shrunk by judging every program with one step less in one
job, again and again, until no smaller one disagrees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.support.generated import generated
from tests.support.judging import judged
from tests.support.planted.histories import Plant
from tests.support.planted.programs import Program, build
from verification.reference import judge_rows
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.violations import RawViolation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
#: Histories per job and jobs: a job of some hundred takes little longer than one of one.
BATCH = 400
#: Coordinators' histories have two judges of their own, which `test_transitions` compares on generated ones. Lost nodes are
#: no matter of records: the planted ones (`tests.support.planted.nodes`) are compared in `test_checks`. States are
#: compared in `test_states`.
SHOWN = set(Anomaly) - {
    *(
        Anomaly.ILLEGAL_TRANSITION,
        Anomaly.LOST_NODE,
        Anomaly.NO_PROGRESS,
        Anomaly.SILENT_METRIC,
        Anomaly.STATE_DIVERGENCE,
    )
}
#: An aborted record that a copier read; observers and captures, which read others, have a name.
READ_BY_COPIER = (Anomaly.ABORTED_READ, None)


def comparable(violations: Iterable[RawViolation]) -> Counter[RawViolation]:
    """Violations without their wording, and with missing places in one order."""
    return Counter(replace(each, detail="", places=tuple(sorted(each.places))) for each in violations)


def disagreements(spark: SparkSession, several: Iterable[Program]) -> list[tuple[Program, str]]:
    """The programs on which the judges disagree, each with the violations that only one of them found."""
    plants: dict[str, tuple[Program, Plant]] = {}
    for number, program in enumerate(several):
        run = f"g{number:06d}"
        plants[run] = (program, build(program, run))
    by_spark = judged(spark, [plant for _, plant in plants.values()])
    found = []
    for run, (program, plant) in plants.items():
        left, right = comparable(by_spark.get(run, [])), comparable(judge_rows(plant.rows))
        if left != right:
            found.append((program, f"only Spark: {list(left - right)}\nonly the reference: {list(right - left)}"))
    return found


def shrunk(spark: SparkSession, program: Program, difference: str) -> tuple[Program, str]:
    """The smallest program, by leaving out steps, on which the judges still disagree."""
    # Each round leaves out one step, so there are at most as many rounds as steps.
    for _ in range(len(program.steps) + len(program.tampering)):
        smaller = disagreements(spark, program.smaller())
        if not smaller:
            break
        program, difference = smaller[0]
    return program, difference


def _injected(several: Iterable[Program]) -> set[tuple[Anomaly, str | None]]:
    """Every anomaly that the reference finds in some of the histories, with its observer."""
    every = (each for program in several for each in judge_rows(build(program, "injected").rows))
    return {(each.anomaly, each.observer) for each in every}


@pytest.mark.parametrize("batch", [2, 3])
def test_both_judges_find_the_same(spark: SparkSession, batch: int) -> None:
    """On every generated history the Spark checks and the reference find exactly the same violations."""
    several = generated(BATCH, batch)
    injected = _injected(several)
    assert {anomaly for anomaly, _ in injected} == SHOWN, "an anomaly that is never injected is not compared"
    assert READ_BY_COPIER in injected
    found = disagreements(spark, several)
    if found:
        program, difference = shrunk(spark, *found[0])
        pytest.fail(f"{len(found)} of {len(several)} disagree; the smallest found:\n{program}\n{difference}")


def test_the_comparison_sees_a_difference(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reference that overlooks lost writes is noticed, and the program is shrunk to the step that matters."""
    gone = ("transaction-gone-wrong", (0, 0, 6))
    program = Program(shape=1, steps=(("append", (0, 0, 0)), gone, ("succession", (1, 0, 0))))
    monkeypatch.setattr("tests.verification.judge.test_agreement.judge_rows", lambda _: [])
    ((_, difference),) = disagreements(spark, [program])
    smallest, _ = shrunk(spark, program, difference)
    assert smallest.steps == (gone,)
