"""The schedule after the rolls follows from the levels that both releases offer, and from nothing else."""

from __future__ import annotations

import pytest

from chaos.clients import SyncPoint
from chaos.faults.brokers import CrashBroker, StopBroker
from chaos.faults.sites import CutSite
from chaos.operations.across import SpokenSecondProtocol, ZombieAcross
from chaos.operations.feature_levels import LevelChange, SetFeatureLevel
from chaos.operations.refusals import RefusedFeatureLevel, RefusedRoll
from chaos.operations.rolling import RollNext
from chaos.schedule import Step, stages
from fixtures.clusters.locks.releases import Release
from runner.upgrades.finalize import Finalization, locked, lowered_transactions
from runner.upgrades.path import UpgradePath
from runner.upgrades.plan import UpgradePlan


def path(source: str, target: str) -> UpgradePath:
    """A path between two releases."""
    return UpgradePath(source=Release.parse(source), target=Release.parse(target))


def steps(source: str, target: str, *, thorough: bool = False) -> tuple[Step, ...]:
    """The steps after the rolls, with seed 1."""
    levels = Finalization(path=path(source, target), seed=1, thorough=thorough)
    return (*levels.raised, *levels.lowered)


def levels(found: tuple[Step, ...]) -> list[tuple[str, int]]:
    """The levels that are set, in order."""
    faults = [each.fault.operation if isinstance(each.fault, ZombieAcross) else each.fault for each in found]
    return [(each.feature, each.level) for each in faults if isinstance(each, SetFeatureLevel)]


def test_levels_are_raised_one_at_a_time_and_in_order() -> None:
    """metadata.version first, then transaction.version level by level; kraft.version last, as it cannot go back."""
    assert levels(steps("3.9.2", "4.3.1"))[:8] == [
        ("metadata.version", 30),
        ("transaction.version", 1),
        ("transaction.version", 2),
        ("group.version", 1),
        ("eligible.leader.replicas.version", 1),
        ("share.version", 1),
        ("streams.version", 1),
        ("kraft.version", 1),
    ]


def test_every_level_changes_while_transactions_are_open() -> None:
    """Each change waits until every producer is before its commit; a request that is refused changes nothing."""
    for each in steps("3.9.2", "4.3.1", thorough=True):
        changes = isinstance(each.fault, SetFeatureLevel | ZombieAcross)
        assert (each.while_held is SyncPoint.BEFORE_COMMIT) == changes


def test_after_transaction_version_a_coordinator_crashes() -> None:
    """A zombie from before the last level comes back after it; the crash makes producers connect again."""
    parts = dict(stages(steps("3.9.2", "4.3.1")))
    kinds = [type(each.fault) for each in parts["finalize transaction.version"]]
    assert kinds == [SetFeatureLevel, ZombieAcross, CrashBroker]
    nightly = dict(stages(steps("3.9.2", "4.3.1", thorough=True)))["finalize transaction.version"]
    assert [type(each.fault) for each in nightly] == [
        ZombieAcross,
        ZombieAcross,
        CrashBroker,
        CutSite,
    ]


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [("3.9.2", "4.0.2", True), ("4.2.1", "4.3.1", True), ("4.3.1", "4.3.1", False), ("4.0.1", "4.0.2", False)],
)
def test_an_old_release_must_refuse_where_a_level_is_new_to_it(source: str, target: str, expected: bool) -> None:
    """4.0.1 knows the level of eligible leader replicas that a path within 4.0 raises."""
    assert locked(path(source, target)) == expected
    found = [each.fault for each in steps(source, target) if isinstance(each.fault, RefusedRoll)]
    assert [each.release for each in found] == ([source] if expected else [])


@pytest.mark.parametrize(("source", "may_run"), [("3.3.2", True), ("3.5.2", False), ("4.1.2", False)])
def test_only_a_broker_that_skips_unknown_levels_may_refuse_by_being_kept_out(source: str, may_run: bool) -> None:
    """Others must end by themselves."""
    (refusal,) = [
        each.fault for each in steps(source, "3.9.2" if may_run else "4.3.1") if isinstance(each.fault, RefusedRoll)
    ]
    assert bool(refusal.kept_out) is may_run


def test_the_old_release_refuses_after_the_last_level_was_raised() -> None:
    """The stages of a whole path: no level is lowered before the old release has refused."""
    names = [stage for stage, _ in stages(steps("4.2.1", "4.3.1"))]
    assert names == ["finalize metadata.version", "finalize other features", "refuse 4.2.1", "lower"]


def lowered(target: str, *, thorough: bool) -> list[tuple[str, int, LevelChange]]:
    """The levels that stage `lower` sets."""
    found = dict(stages(steps(target, target, thorough=thorough)))["lower"]
    return [
        (each.fault.feature, each.fault.level, each.fault.change)
        for each in found
        if isinstance(each.fault, SetFeatureLevel)
    ]


def test_levels_that_may_be_lowered_are_lowered_and_raised_again() -> None:
    """transaction.version has a scenario of its own; metadata.version goes down where no record of it changed."""
    assert lowered("4.2.1", thorough=True) == [
        (name, level, change)
        for name, low, high in (
            ("eligible.leader.replicas.version", 0, 1),
            ("group.version", 0, 1),
            ("metadata.version", 28, 29),
            ("share.version", 0, 1),
            ("streams.version", 0, 1),
        )
        for level, change in ((low, LevelChange.SAFE_DOWNGRADE), (high, LevelChange.UPGRADE))
    ]
    assert "metadata.version" not in {name for name, *_ in lowered("4.3.1", thorough=True)}
    assert len(lowered("4.3.1", thorough=False)) == 2


def test_requests_that_must_be_refused_are_made_of_the_target() -> None:
    """4.3 refuses to lower metadata.version in either way; 4.2 was never seen to."""

    def refused(target: str) -> list[tuple[str, int, LevelChange]]:
        faults = [each.fault for each in steps(target, target) if isinstance(each.fault, RefusedFeatureLevel)]
        return [(each.feature, each.level, each.change) for each in faults]

    common = [("no.such.feature", 1, LevelChange.UPGRADE)]
    assert refused("4.3.1") == [
        ("metadata.version", 31, LevelChange.UPGRADE),
        *common,
        ("metadata.version", 29, LevelChange.UPGRADE),
        ("metadata.version", 29, LevelChange.SAFE_DOWNGRADE),
        ("metadata.version", 29, LevelChange.UNSAFE_DOWNGRADE),
        ("kraft.version", 0, LevelChange.SAFE_DOWNGRADE),
    ]
    assert refused("4.0.2")[-1] == ("metadata.version", 22, LevelChange.UNSAFE_DOWNGRADE)
    assert refused("3.9.2") == [
        ("metadata.version", 22, LevelChange.UPGRADE),
        *common,
        ("metadata.version", 20, LevelChange.UPGRADE),
    ]


def test_transaction_version_is_lowered_level_by_level_once_producers_speak_it() -> None:
    """Down to 0 by safe downgrades, and up again."""
    found = tuple(lowered_transactions(path("4.3.1", "4.3.1")))
    assert isinstance(found[0].fault, SpokenSecondProtocol)
    assert [level for _, level in levels(found)] == [1, 0, 1, 2]
    assert [type(each.fault) for each in found[-3:]] == [StopBroker] * 3


def test_a_level_that_only_the_log_has_still_locks_the_way_back() -> None:
    """metadata.version stays, so no other level can be the reason; the words name transaction.version and its level."""
    plan = UpgradePlan(path=path("3.9.2", "4.3.1"), seed=1)
    found = plan.remembered
    assert [type(each.fault) for each in found] == [*[RollNext] * 3, *[SetFeatureLevel] * 2, RefusedRoll]
    assert levels(found) == [("transaction.version", 2), ("transaction.version", 0)]
    refusal = found[-1].fault
    assert isinstance(refusal, RefusedRoll)
    assert refusal.release == "3.9.2"
    assert all("transaction.version" in text and "featureLevel=2" in text for text in refusal.texts)


def test_with_dedicated_controllers_every_node_is_rolled_and_runs_the_old_release_at_first() -> None:
    """Three controllers follow the three brokers."""
    plan = UpgradePlan(path=path("4.2.1", "4.3.1"), seed=1, controllers=3)
    spec = plan.cluster(release="4.3.1")
    assert spec.controller_ids == (4, 5, 6)
    assert set(spec.node_releases.values()) == {"4.2.1"}
    rolls = [each for each in plan.schedule if isinstance(each.fault, RollNext)]
    assert [each.stage for each in rolls] == [
        *(f"roll {number} of 6" for number in range(1, 7)),
        *["back"] * 6,
        *["forward"] * 6,
    ]
