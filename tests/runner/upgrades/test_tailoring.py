"""The stages and settings that a run of an upgrade keeps."""

from __future__ import annotations

import pytest

from chaos.faults.brokers import CrashBroker
from chaos.faults.network import CutFollowers
from chaos.operations.placement import PlaceRoles
from chaos.operations.rolling import RollNext
from chaos.schedule import Schedule, Step, stages
from chaos.targets import Controller
from fixtures.clusters.locks.releases import Release
from runner.upgrades.options import UpgradeOptions
from runner.upgrades.path import UpgradePath
from runner.upgrades.plan import UpgradePlan
from runner.upgrades.step_facts import facts_of, steps_s, whole_s
from runner.upgrades.tailoring import only_leaves_out, selected, tailored, until

ROLL = RollNext("4.3.1")
SCHEDULE: Schedule = (
    Step(fault=ROLL, stage="roll 1 of 2"),
    Step(fault=PlaceRoles(topic="orders", leaders="4.3.1"), stage="mixed 1 of 2"),
    Step(fault=CrashBroker(Controller()), stage="mixed 1 of 2"),
    Step(fault=PlaceRoles(topic="orders"), stage="mixed 1 of 2"),
    Step(fault=ROLL, stage="roll 2 of 2"),
    Step(fault=CrashBroker(Controller()), stage="after"),
)


def names(schedule: Schedule) -> list[str]:
    """The stages of a schedule."""
    return [name for name, _ in stages(schedule)]


@pytest.mark.parametrize(
    ("keyword", "kept"),
    [
        ("mixed", ["roll 1 of 2", "mixed 1 of 2"]),
        ("after", ["roll 1 of 2", "roll 2 of 2", "after"]),
        ("not mixed", ["roll 1 of 2", "roll 2 of 2", "after"]),
        ("CrashBroker", ["roll 1 of 2", "mixed 1 of 2", "roll 2 of 2", "after"]),
        ("crash and not after", ["roll 1 of 2", "mixed 1 of 2"]),
        ("roll", ["roll 1 of 2", "roll 2 of 2"]),
        ("test_the_words_of_k", ["roll 1 of 2", "mixed 1 of 2", "roll 2 of 2", "after"]),
        ("not test_the_words_of_k", []),
        ("lunch", []),
    ],
    # An id with the words would be one of the names of the test.
    ids=range(9),
)
def test_the_words_of_k_keep_steps_and_the_changes_before_them(
    keyword: str, kept: list[str], request: pytest.FixtureRequest
) -> None:
    """A word that no step has is looked for in the names of the test, so its whole name keeps all."""
    assert names(selected(SCHEDULE, keyword, request.node)) == kept


def test_leaving_out_is_no_wish_for_what_only_the_nightly_profile_runs() -> None:
    """With a word to select, `-k` asks for it by name."""
    assert only_leaves_out("not back")
    assert only_leaves_out("not back and not mixed")
    assert not any(map(only_leaves_out, ("", "back", "careless", "mixed and not back")))


def test_leaders_are_placed_where_a_selected_step_meets_them(request: pytest.FixtureRequest) -> None:
    """Before it and, back on all nodes, after it; a roll is no reason to stay in its stage."""
    kept = [type(step.fault).__name__ for step in selected(SCHEDULE, "crash and mixed", request.node)]
    assert kept == ["RollNext", "PlaceRoles", "CrashBroker", "PlaceRoles"]
    assert "PlaceRoles" not in [type(step.fault).__name__ for step in selected(SCHEDULE, "after", request.node)]


@pytest.mark.parametrize("pair", [("3.9.2", "4.3.1"), ("4.2.1", "4.4.0"), ("4.2.1", "4.2.1")])
def test_every_step_of_an_upgrade_has_a_proof_in_words(pair: tuple[str, str]) -> None:
    """`steps.toml` has a table for each operation and fault; only what is unknown has the words for all others."""
    path = UpgradePath(source=Release.parse(pair[0]), target=Release.parse(pair[1]))
    schedule = UpgradePlan(path=path, seed=1, thorough=True).schedule
    unknown = Step(fault=CutFollowers("orders", 0))
    assert {type(step.fault).__name__ for step in schedule if facts_of(step) == facts_of(unknown)} == set()


def test_the_schedule_ends_with_a_stage() -> None:
    """It is empty for a stage that it has not."""
    assert names(until(SCHEDULE, "roll 2 of 2")) == ["roll 1 of 2", "mixed 1 of 2", "roll 2 of 2"]
    assert until(SCHEDULE, "") == SCHEDULE
    assert until(SCHEDULE, "roll") == ()


def test_a_run_without_a_stage_is_not_asked_for_what_only_that_stage_brings(request: pytest.FixtureRequest) -> None:
    """Else every part of a path from line 3 would be inconclusive: its producers speak the first protocol."""
    path = UpgradePath(source=Release.parse("3.9.2"), target=Release.parse("4.3.1"))
    plan = UpgradePlan(path=path, seed=1)
    values = {"cluster": plan.cluster, "schedule": plan.schedule, "floors": plan.floors}
    whole = tailored(values, UpgradeOptions(), "", request.node)
    part = tailored(values, UpgradeOptions(stop_after="roll 1 of 3"), "", request.node)
    assert [each.name for each in whole["floors"]] == ["copied_together", "tv2_producers"]
    assert part["floors"] == ()


def test_the_estimate_follows_the_schedule() -> None:
    """Nine rolls and their dwells take most of the time; each further stage adds to it."""
    path = UpgradePath(source=Release.parse("3.9.2"), target=Release.parse("4.3.1"))
    schedule = UpgradePlan(path=path, seed=1).schedule
    rolls = [step for step in schedule if isinstance(step.fault, RollNext)]
    assert steps_s(tuple(rolls)) < steps_s(schedule) < whole_s(schedule)
    assert steps_s(tuple(rolls)) >= 8 * len(rolls)
    assert whole_s(schedule[:2]) < whole_s(schedule[:3])
