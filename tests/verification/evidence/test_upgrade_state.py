"""The state of an upgrade follows from the experiment and the history alone."""

from __future__ import annotations

from dataclasses import replace

from tests.verification.test_coverage import S, evidence, fault
from tests.verification.test_fault_measures import sample
from tests.verification.test_stage_measures import phase, roll
from verification.evidence.run_evidence import RunEvidence
from verification.evidence.upgrade_state import leader_at, state_at
from verification.vocabulary.history import NO_LEADER, UNSEEN, Entry

STEPS = (
    replace(roll("roll 1", 10, 15), releases={"1": "4.3.1"}),
    replace(roll("roll 2", 20, None), releases={"2": "4.3.1"}),
    replace(fault(30, 31), confirmed_ns=31 * S, stage="finalize", levels={"metadata.version": 30, "group.version": 0}),
)
PHASES = (phase("await steady", 0, 10), phase("roll 1", 10, 18), phase("finalize", 29, 35))


def upgrade(*entries: Entry) -> RunEvidence:
    """Two nodes of 4.2.1 with two feature levels."""
    plain = evidence(*PHASES, *STEPS, *entries)
    versions = {"feature metadata.version": "29", "feature group.version": "1", "kafka": "4.3.1"}
    experiment = replace(plain.experiment, nodes={"1": "4.2.1", "2": "4.2.1"}, versions=versions)
    return replace(plain, experiment=experiment)


def test_a_node_is_down_from_the_strike_until_it_is_back_with_its_release() -> None:
    """Before it runs the old release; one that is never confirmed stays down."""
    releases = [dict(state_at(upgrade(), at_s * S).releases) for at_s in (9, 12, 15, 25)]
    assert releases == [
        {"1": "4.2.1", "2": "4.2.1"},
        {"2": "4.2.1"},
        {"1": "4.3.1", "2": "4.2.1"},
        {"1": "4.3.1"},
    ]


def test_levels_are_those_of_the_beginning_until_a_step_has_made_others_final() -> None:
    """Level 0 takes a feature away."""
    assert state_at(upgrade(), 30 * S).levels == {"group.version": 1, "metadata.version": 29}
    assert state_at(upgrade(), 31 * S).levels == {"metadata.version": 30}


def test_the_stage_is_the_phase_of_the_moment() -> None:
    """Between two phases there is none."""
    assert [state_at(upgrade(), at_s * S).stage for at_s in (5, 12, 20, 30)] == [
        "await steady",
        "roll 1",
        "",
        "finalize",
    ]


def test_the_leader_is_the_one_that_was_seen_last() -> None:
    """A look without a leader or without an answer does not name one."""
    looks = (sample(1, leader=3), sample(5, leader=2), sample(6, leader=NO_LEADER), sample(7, leader=UNSEEN))
    seen = [leader_at(upgrade(*looks), "out", 0, int(at_s * S)) for at_s in (0.5, 1, 4.9, 8)]
    assert seen == [None, 3, 3, 2]
    assert leader_at(upgrade(*looks), "out", 1, 8 * S) is None
