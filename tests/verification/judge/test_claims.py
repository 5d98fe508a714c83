"""A run that claims at-least-once: its copies may come again, and nothing else is excused."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.support.judging import judged
from tests.support.planted import copies, counts
from tests.support.planted.busy import Case
from tests.support.planted.histories import Plant
from verification.judge.primary_findings import attribute
from verification.reference import judge_rows
from verification.vocabulary.experiment import AT_LEAST_ONCE, EXACTLY_ONCE, SEMANTICS
from verification.vocabulary.violations import Attributed, RawViolation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The findings of an exactly-once run, those that are left of them where it claims at-least-once, and the others there.
CASES: dict[Case, tuple[set[str], set[str], dict[str, int]]] = {
    copies.clean_copies: (set(), set(), {}),
    copies.copied_twice: ({"duplicate"}, set(), {"duplicate": 2}),
    copies.copied_thrice: ({"duplicate"}, set(), {"duplicate": 4}),
    copies.output_ahead: ({"output-without-offset"}, set(), {"output-without-offset": 2}),
    copies.offset_ahead: ({"offset-without-output"}, {"offset-without-output"}, {}),
    copies.copied_aborted: ({"aborted-read"}, {"aborted-read"}, {}),
    copies.input_twice: ({"duplicate"}, {"duplicate"}, {}),
    counts.counted_twice: ({"duplicate"}, set(), {"duplicate": 1, "state-divergence": 1}),
    counts.counted_again: (
        {"duplicate", "state-divergence"},
        set(),
        {"duplicate": 4, "state-divergence": 2},
    ),
    counts.counted_again_and_kept_wrong: (
        {"duplicate", "state-divergence"},
        {"state-divergence"},
        {"duplicate": 4, "state-divergence": 1},
    ),
    counts.counts_again: ({"state-divergence"}, {"state-divergence"}, {}),
    counts.counts_jump: ({"state-divergence"}, {"state-divergence"}, {}),
    counts.key_in_two_partitions: ({"state-divergence"}, {"state-divergence"}, {}),
    counts.without_count: ({"state-divergence"}, {"state-divergence"}, {}),
}
PLANTS = [(case, claim) for case in CASES for claim in SEMANTICS]


def _planted(case: Case, claim: str, run: str) -> Plant:
    """A planted run with this claim."""
    plant, _ = case(run)
    plant.rows["runs"] = [{**row, "at_least_once": claim == AT_LEAST_ONCE} for row in plant.rows["runs"]]
    return replace(plant, experiment=replace(plant.experiment, semantics=claim))


def _comparable(attributed: Attributed) -> tuple[set[str], Counter[str]]:
    return {str(each) for each in attributed.primary}, Counter(str(each.anomaly) for each in attributed.allowed)


def _expected(case: Case, claim: str) -> tuple[set[str], Counter[str]]:
    exactly, at_least, allowed = CASES[case]
    return (exactly, Counter()) if claim == EXACTLY_ONCE else (at_least, Counter(allowed))


@pytest.mark.parametrize(("case", "claim"), PLANTS)
def test_the_reference_excuses_what_comes_again(case: Case, claim: str) -> None:
    """Duplicates and outputs ahead of the offset pass under at-least-once alone; everything else is found under both."""
    assert _comparable(attribute(judge_rows(_planted(case, claim, "claim").rows))) == _expected(case, claim)


@pytest.fixture(scope="module")
def by_spark(spark: SparkSession) -> dict[str, list[RawViolation]]:
    """The violations of all of them, in one job."""
    return judged(spark, [_planted(*each, f"claim-{number:02d}") for number, each in enumerate(PLANTS)])


@pytest.mark.spark
@pytest.mark.parametrize("number", range(len(PLANTS)), ids=[f"{case.__name__}-{claim}" for case, claim in PLANTS])
def test_the_checks_excuse_the_same(number: int, by_spark: dict[str, list[RawViolation]]) -> None:
    """As the reference."""
    assert _comparable(attribute(by_spark.get(f"claim-{number:02d}", []))) == _expected(*PLANTS[number])


def test_an_unknown_offset_is_no_claim() -> None:
    """Where no offset of a partition is known, nothing says that outputs which are not there were not promised."""
    plant = _planted(copies.output_ahead, AT_LEAST_ONCE, "claim")
    plant.rows["group_offsets"] = []
    found, allowed = _comparable(attribute(judge_rows(plant.rows)))
    assert (found, allowed) == ({"output-without-offset"}, Counter())
