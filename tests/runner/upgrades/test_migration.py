"""The schedule of a migration from ZooKeeper to KRaft: its stages, its rolls, and the producer ids that it takes."""

from __future__ import annotations

from chaos.clients import SyncPoint
from chaos.faults.brokers import CrashBroker
from chaos.operations.migration import MetadataCopied, StopZooKeeper, TakeProducerIds
from chaos.operations.placement import PlaceRoles
from chaos.operations.rolling import RollNext
from chaos.schedule import stages
from fixtures.clusters.locks.releases import Release
from runner.upgrades.migration import BROKERS, Migration
from runner.upgrades.path import UpgradePath
from runner.upgrades.plan import UpgradePlan
from runner.upgrades.step_facts import facts_of

RELEASE = Release.parse("3.9.2")
PLAN = UpgradePlan(path=UpgradePath(source=RELEASE, target=RELEASE, migrates=True), seed=1)
STEPS = PLAN.migration.schedule
ROLLS = [step for step in STEPS if isinstance(step.fault, RollNext)]


def test_a_cluster_begins_as_brokers_with_zookeeper() -> None:
    """Controllers are part of the specification, but no nodes at first."""
    spec = PLAN.migration.cluster(release="3.9.2")
    assert spec.node_releases == dict.fromkeys((1, 2, 3), "3.9.2 ZooKeeper")
    assert spec.controller_ids == (4, 5, 6)
    assert spec.versions == {"3.9.2"}


def test_the_stages_are_those_of_the_documentation() -> None:
    """Controllers first, then every broker twice, and controllers once."""
    names = [stage for stage, _ in stages(STEPS)]
    assert names[:4] == ["zookeeper", "controllers", "migrate", "dual write"]
    assert names[4:] == ["roll 1 of 3", "mixed 1 of 3", "roll 2 of 3", "mixed 2 of 3", "roll 3 of 3", "finish"]
    assert [(step.fault.release, step.fault.nodes) for step in ROLLS if isinstance(step.fault, RollNext)] == [
        *[("3.9.2 migrating", (1, 2, 3))] * BROKERS,
        *[("3.9.2 KRaft", (1, 2, 3))] * BROKERS,
        *[("3.9.2 KRaft", (4, 5, 6))] * 3,
    ]


def test_a_transaction_is_open_across_each_roll_and_each_waits_for_whole_in_sync_sets() -> None:
    """A broker that stops while another one is behind could take records with it."""
    assert all(step.while_held is SyncPoint.BEFORE_COMMIT and step.holding and step.once_whole for step in ROLLS)


def test_producer_ids_are_taken_before_during_and_after() -> None:
    """Also between the last two rolls before the copy: the last block of ZooKeeper's is one of those."""
    assert [step.stage for step in STEPS if isinstance(step.fault, TakeProducerIds)] == [
        "zookeeper",
        "migrate",
        "dual write",
        "finish",
    ]
    faults = [step.fault for step in STEPS if step.stage == "migrate"]
    assert [type(each) for each in faults] == [RollNext, RollNext, TakeProducerIds, RollNext]
    assert len({fault.phase for step in STEPS if isinstance(fault := step.fault, TakeProducerIds)}) == 4


def test_zookeeper_is_needed_until_the_last_controller_has_left_it() -> None:
    """It is stopped once, after every roll, and work goes on without it."""
    (at,) = [number for number, step in enumerate(STEPS) if isinstance(step.fault, StopZooKeeper)]
    assert at > STEPS.index(ROLLS[-1])
    assert isinstance(STEPS[-1].fault, TakeProducerIds)


def test_a_coordinator_crashes_while_metadata_is_written_twice() -> None:
    """The stage follows the proof that the metadata was copied. Brokers of both modes then have the roles in turn."""
    faults = [step.fault for step in STEPS if step.stage == "dual write"]
    assert isinstance(faults[0], MetadataCopied)
    assert any(isinstance(each, CrashBroker) for each in faults)
    placed = {each.fault for each in STEPS if isinstance(each.fault, PlaceRoles) and each.stage.startswith("mixed")}
    modes = {"3.9.2 migrating", "3.9.2 KRaft"}
    assert {frozenset((each.coordinators, each.leaders)) for each in placed} == {frozenset(modes), frozenset({""})}


def test_every_step_has_a_proof_in_words() -> None:
    """`--plan` shows it."""
    assert all(facts_of(step).proof for step in Migration(release="3.9.2", seed=2, thorough=True).schedule)
