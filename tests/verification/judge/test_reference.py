"""The reference judge alone: it finds exactly the plants, and changes without meaning change nothing."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.support.planted.busy import Found
from tests.support.planted.cases import CASES
from tests.support.planted.histories import Plant
from tests.support.planted.programs import BYSTANDER, Program, build, honest_programs, programs
from verification.judge.primary_findings import attribute
from verification.reference import judge_rows
from verification.vocabulary.violations import RawViolation

#: No deadline: the machine may be busy with brokers. No database: a failure prints how to repeat it.
QUICK = settings(
    max_examples=150, deadline=None, database=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)


def as_found(violation: RawViolation) -> Found:
    """A violation in the form of the planted cases."""
    place = (violation.topic_index, violation.partition, violation.offset)
    record = (violation.process, violation.operation, violation.index)
    return (str(violation.anomaly), *record, *place, violation.observer)


@pytest.mark.parametrize("name", CASES)
def test_reference_finds_exactly_what_was_planted(name: str) -> None:
    """The reference judge finds the whole expected set of a planted history, and nothing else."""
    plant, expected = CASES[name]("planted")
    assert {as_found(each) for each in judge_rows(plant.rows)} == expected


def _findings(plant: Plant) -> list[RawViolation]:
    return judge_rows(plant.rows)


@QUICK
@given(honest_programs())
def test_honest_histories_pass(program: Program) -> None:
    """Nothing is found in any history of correct clients on a correct cluster."""
    assert _findings(build(program, "honest")) == []


@QUICK
@given(programs(), st.randoms(use_true_random=False))
def test_the_order_of_evidence_does_not_matter(program: Program, chance: Random) -> None:
    """Rows are facts: their order within a file changes no verdict."""
    plant = build(program, "shuffled")
    before = _findings(plant)
    for rows in plant.rows.values():
        chance.shuffle(rows)
    assert _findings(plant) == before


@QUICK
@given(programs(), st.integers(1, 10**15))
def test_the_origin_of_the_clock_does_not_matter(program: Program, shift_us: int) -> None:
    """Moving every time by the same amount changes no verdict."""
    plant = build(program, "shifted")
    before = _findings(plant)
    for rows in plant.rows.values():
        for row in rows:
            row |= {
                name: row[name] + 1_000 * shift_us for name in row if name.endswith("_ns") and row[name] is not None
            }
    assert _findings(plant) == before


@QUICK
@given(programs())
def test_a_bystander_changes_nothing(program: Program) -> None:
    """A correct client that writes elsewhere, and that all readers see, adds no finding and hides none."""
    # Tampering picks rows by number, so it would change other rows next to a bystander.
    program = replace(program, tampering=())
    nearby = replace(program, steps=(*program.steps, ("bystander", (0, 0, 0))))
    with_bystander = {each for each in _findings(build(nearby, "nearby")) if each.topic_index != BYSTANDER}
    assert with_bystander == set(_findings(build(program, "nearby")))


@QUICK
@given(honest_programs(), st.integers(0, 60))
def test_nothing_committed_can_vanish(program: Program, number: int) -> None:
    """Removing any one visible record from the log and from all readers fails a clean run."""
    plant = build(program, "vanished")
    acked = {
        (row["topic_index"], row["partition"], row["offset"]) for row in plant.rows["acks"] if row["outcome"] == "ok"
    }
    places = [(row["topic_index"], row["partition"], row["offset"]) for row in plant.rows["committed"]]
    promised = [place for place in places if place in acked]
    assume(promised)
    for frame in ("log", "committed", "uncommitted", "observations"):
        plant.drop(frame, *promised[number % len(promised)])
    assert _findings(plant) != []


@QUICK
@given(programs())
def test_attribution_keeps_every_violation(program: Program) -> None:
    """A violation is a finding of its own, a consequence of one, or allowed; a run with others keeps a finding."""
    violations = _findings(build(program, "attributed"))
    attributed = attribute(violations)
    kept = [each for group in (attributed.primary, attributed.consequences) for each in group.values()]
    assert sum(map(len, kept)) + len(attributed.allowed) == len(violations)
    assert (len(violations) > len(attributed.allowed)) == bool(attributed.primary)
    assert set(attributed.consequences) <= set(attributed.primary)
