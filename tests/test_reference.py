"""The reference judge alone: what was planted is what it finds."""

from __future__ import annotations

import pytest

from tests.planted_cases import CASES, Found
from verification.folding import RawViolation
from verification.reference import judge_rows


def as_found(violation: RawViolation) -> Found:
    """A violation in the form of the planted cases."""
    place = (violation.topic_index, violation.partition, violation.offset)
    who = (violation.process, violation.operation, violation.index)
    return (str(violation.anomaly), *who, *place, violation.observer)


@pytest.mark.parametrize("name", CASES)
def test_reference_finds_exactly_what_was_planted(name: str) -> None:
    """The reference judge finds the whole expected set of a planted history, and nothing else."""
    plant, expected = CASES[name]("planted")
    assert {as_found(each) for each in judge_rows(plant.rows)} == expected
