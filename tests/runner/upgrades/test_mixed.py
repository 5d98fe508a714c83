"""Which placements and faults the seed draws for the stages in which both releases serve."""

from __future__ import annotations

from collections import Counter

import pytest

from chaos.faults.frames import TamperFrames
from chaos.faults.late_duplicate import LateDuplicate
from chaos.operations.placement import PlaceRoles
from chaos.schedule import Schedule, stages
from fixtures.clusters.locks.releases import Release
from runner.upgrades.mixed import DWELL_S, PROBES, TIMEOUT_S, TOPIC
from runner.upgrades.path import UpgradePath
from runner.upgrades.plan import UpgradePlan

PATH = UpgradePath(source=Release.parse("4.1.2"), target=Release.parse("4.2.1"))
OLD_COORDINATES = PlaceRoles(topic=TOPIC, coordinators="4.1.2", leaders="4.2.1")
NEW_COORDINATES = PlaceRoles(topic=TOPIC, coordinators="4.2.1", leaders="4.1.2")
EVERYWHERE = PlaceRoles(topic=TOPIC)


def mixed(seed: int, *, thorough: bool = False, containers: bool = False) -> dict[str, Schedule]:
    """The steps of each mixed stage."""
    plan = UpgradePlan(path=PATH, seed=seed, thorough=thorough, containers=containers)
    return {stage: steps for stage, steps in stages(plan.schedule) if stage.startswith("mixed")}


def test_the_same_seed_gives_the_same_schedule() -> None:
    """A run can be repeated; another seed may differ."""
    assert all(UpgradePlan(path=PATH, seed=i).schedule == UpgradePlan(path=PATH, seed=i).schedule for i in range(5))
    assert len({str(mixed(seed)) for seed in range(20)}) > 5


def test_a_mixed_stage_follows_each_roll_but_the_last() -> None:
    """With one and with two of three nodes on the new release, and not with three."""
    names = [stage for stage, _ in stages(UpgradePlan(path=PATH, seed=1).schedule)]
    assert names[:5] == ["roll 1 of 3", "mixed 1 of 3", "roll 2 of 3", "mixed 2 of 3", "roll 3 of 3"]


@pytest.mark.parametrize("seed", range(10))
def test_a_quick_run_meets_both_placements_with_a_fault_in_each(seed: int) -> None:
    """One placement for each stage, met for the whole dwell, one fault in it; then the roles are spread again."""
    placements = []
    for placing, probe, spreading in mixed(seed).values():
        placements.append(placing.fault)
        assert placing.hold_s == DWELL_S
        assert probe.fault in [each.fault for each in PROBES]
        assert spreading.fault == EVERYWHERE
    assert Counter(placements) == Counter([OLD_COORDINATES, NEW_COORDINATES])


def test_every_fault_is_drawn_in_every_placement_by_some_seed() -> None:
    """No fault is out of reach of the quick profile."""
    drawn = {(placing.fault, probe.fault) for seed in range(100) for placing, probe, _ in mixed(seed).values()}
    assert drawn == {(at, probe.fault) for at in (OLD_COORDINATES, NEW_COORDINATES) for probe in PROBES}


def test_containers_meet_every_fault_that_leads_no_connection_through_the_harness() -> None:
    """Such a connection cannot leave the Toxiproxy server's container. The other faults are drawn, and tried by night."""
    possible = [each.fault for each in PROBES if not isinstance(each.fault, TamperFrames | LateDuplicate)]
    assert len(possible) == 3
    quick = [probe.fault for seed in range(20) for _, probe, _ in mixed(seed, containers=True).values()]
    assert all(each in possible for each in quick)
    assert all(each in quick for each in possible)
    for steps in mixed(3, thorough=True, containers=True).values():
        assert [each.fault for each in steps if not isinstance(each.fault, PlaceRoles)] == 2 * possible


def test_a_thorough_run_tries_every_fault_in_both_placements_of_both_stages() -> None:
    """The placement is made anew before each fault, because the one before may have moved the roles."""
    for steps in mixed(3, thorough=True).values():
        pairs = [(placing.fault, probe.fault) for placing, probe in zip(steps[:-1:2], steps[1:-1:2], strict=True)]
        assert len(pairs) == len(set(pairs)) == 2 * len(PROBES)
        assert {at for at, _ in pairs} == {OLD_COORDINATES, NEW_COORDINATES}
        assert Counter(step.hold_s for step in steps if step.fault == NEW_COORDINATES)[DWELL_S] == 1
        assert steps[-1].fault == EVERYWHERE


def test_every_step_of_a_mixed_stage_waits_for_whole_in_sync_sets() -> None:
    """A preferred replica that is out of sync is not elected, and two nodes that are down together stop every write."""
    for thorough in (False, True):
        for stage, steps in mixed(4, thorough=thorough).items():
            assert all(step.once_whole and step.stage == stage for step in steps)


def test_producers_are_paused_past_the_transaction_timeout_of_the_workload() -> None:
    """The bound that the zombie outlives is the one that its workload has."""
    from suites.upgrades import test_rolling_upgrade

    described = {}
    plan = UpgradePlan(path=PATH, seed=0)
    test_rolling_upgrade.test_rolling_upgrade(run=lambda **values: described.update(values), upgrade=plan)
    assert described["workload"].transaction_timeout_s == TIMEOUT_S
    (pause,) = [probe.fault for probe in PROBES if "paused" in probe.fault.describe()]
    assert pause.past_s == TIMEOUT_S
