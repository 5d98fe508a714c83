"""Roles are placed on nodes by their release, and the proof names nodes and releases on both sides."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chaos.arena import Arena
from chaos.cluster import GROUPS_TOPIC, BrokerId
from chaos.errors import InjectionError, UnresolvedTargetError
from chaos.nemesis import Nemesis
from chaos.operations.placement import PlaceRoles
from chaos.schedule import Step
from tests.support.fake_cluster import BILLING, FakeCluster, arena
from tests.support.servers.fake_controller import FakeController
from verification.vocabulary import transaction_log
from verification.vocabulary.history import FaultRecord
from wire.codes import ErrorCode
from wire.errors import DeadlineError, DisconnectedError
from wire.values import TopicPartition

OLD, NEW = "4.1.2", "4.2.0"
OLD_COORDINATES = PlaceRoles(topic="billing-events", coordinators=OLD, leaders=NEW)


def mixed(*new: int, reacts: bool = True) -> tuple[Arena, FakeCluster, FakeController]:
    """A cluster of which some nodes are new, and its controller."""
    on = arena(reacts=reacts)
    cluster = on.cluster
    assert isinstance(cluster, FakeCluster)
    cluster.releases.update({BrokerId(node): NEW for node in new})
    admin = FakeController(cluster)
    return replace(on, admin=admin), cluster, admin


def leaders(cluster: FakeCluster, topic: str) -> list[int | None]:
    """The leaders of a topic's partitions."""
    return [seen.leader for at, seen in sorted(cluster.view().partitions.items()) if at.topic == topic]


def record_of(on: Arena, operation: PlaceRoles, *, looks: int = 5) -> FaultRecord:
    """What the history keeps of the operation; the nemesis looks so often for its proof."""
    waits = 0

    def wait(_: float) -> None:
        nonlocal waits
        waits += 1
        if waits > looks:
            raise KeyboardInterrupt

    nemesis = Nemesis(arena=on, record=lambda _: None, tell=lambda _: None, wait=wait)
    (record,) = nemesis.run((Step(fault=operation, hold_s=0),))
    return record


def test_every_coordinator_is_on_one_release_and_every_leader_on_the_other() -> None:
    """Whatever the transactional id is, its transactions pass from the one release to the other."""
    on, cluster, _ = mixed(3)
    record = record_of(on, OLD_COORDINATES)
    assert record.error is None
    assert record.proof == (
        "coordinator of producer 0 on broker 1 (4.1.2), leader of billing-events-0 on broker 3 (4.2.0), "
        "coordinator of the copiers on broker 3 (4.2.0); all of __transaction_state led by nodes of 4.1.2, all of "
        "billing-events and __consumer_offsets by nodes of 4.2.0"
    )
    assert leaders(cluster, transaction_log.TOPIC) == [1, 2, 1]
    assert leaders(cluster, BILLING.topic) == [3, 3]
    assert leaders(cluster, GROUPS_TOPIC) == [3, 3, 3]
    assert leaders(cluster, "other") == [1], "a topic that was not named has been placed"
    assert record.partitions == ("r-billing-events-0", "r-billing-events-1")


def test_a_role_falls_to_a_node_of_the_other_release() -> None:
    """After a crash the first replica in the order that lives takes over: it has to read what the other release wrote."""
    on, cluster, _ = mixed(3)
    record_of(on, PlaceRoles(topic="billing-events", coordinators=NEW, leaders=OLD))
    assert cluster.placed[TopicPartition(transaction_log.TOPIC, 1)].replicas == (3, 1, 2)
    assert [cluster.placed[TopicPartition(BILLING.topic, index)].replicas for index in (0, 1)] == [(1, 3, 2), (2, 3, 1)]


def test_roles_without_a_release_are_spread_over_all_nodes() -> None:
    """After the stage no node has more than its share."""
    on, cluster, _ = mixed(3)
    record_of(on, OLD_COORDINATES)
    assert record_of(on, PlaceRoles(topic="billing-events")).confirmed_ns is not None
    assert leaders(cluster, transaction_log.TOPIC) == [1, 2, 3]
    assert leaders(cluster, BILLING.topic) == [1, 2]


def test_a_placement_that_did_not_take_place_is_not_confirmed() -> None:
    """That the requests were answered is no proof: the leaders are."""
    on, _, admin = mixed(3, reacts=False)
    injection = OLD_COORDINATES.inject(on)
    assert injection.confirm() is None
    assert admin.asked.count("ElectLeaders") == 2, "an election without effect is asked for again"


def test_a_run_without_copiers_has_no_group_to_name() -> None:
    """The topic of groups is placed nevertheless: its partitions may serve the next run."""
    on, _, _ = mixed(3)
    proof = record_of(replace(on, group=None), OLD_COORDINATES).proof
    assert proof is not None
    assert "leader of billing-events-0 on broker 3 (4.2.0); all of" in proof


def test_a_replica_that_was_out_of_sync_is_elected_later() -> None:
    """The first election passes over a node that is down."""
    on, cluster, _ = mixed(3)
    cluster.dead.add(BrokerId(3))
    injection = OLD_COORDINATES.inject(on)
    assert injection.confirm() is None
    cluster.dead.clear()
    assert injection.confirm() is None
    assert injection.confirm() is not None


def test_a_coordinator_that_other_brokers_do_not_know_yet_is_no_proof() -> None:
    """The proof needs FindCoordinator to name nodes of the releases, not only the metadata of the topics."""
    on, cluster, _ = mixed(3)
    injection = OLD_COORDINATES.inject(on)
    cluster.transaction_coordinator = lambda _: BrokerId(3)  # type: ignore[method-assign]
    assert injection.confirm() is None
    del cluster.transaction_coordinator
    cluster.group_coordinator = lambda _: BrokerId(2)  # type: ignore[method-assign]
    assert injection.confirm() is None
    del cluster.group_coordinator
    assert injection.confirm() is not None


def test_a_coordinator_that_reads_its_log_is_not_placed_yet() -> None:
    """Until it has read the log it ends no transaction; a transaction that waits for it then shows nothing."""
    on, cluster, _ = mixed(3)
    injection = OLD_COORDINATES.inject(on)
    cluster.loading.append("__transaction_state-0: COORDINATOR_LOAD_IN_PROGRESS(14)")
    assert injection.confirm() is None
    cluster.loading.clear()
    assert injection.confirm() is not None


def test_requests_are_repeated_while_the_controller_changes() -> None:
    """Two requests without an answer end nothing."""
    on, _, admin = mixed(3)
    admin.silent = [DeadlineError("waited 4 s"), DisconnectedError("closed by the broker")]
    assert OLD_COORDINATES.inject(on).confirm() is not None
    assert admin.asked == ["AlterPartitionReassignments"] * 3 + ["ElectLeaders"]


def test_a_refused_reassignment_is_the_error_of_the_step() -> None:
    """The history names the refusal."""
    on, _, admin = mixed(3)
    admin.refusal = int(ErrorCode.INVALID_REPLICA_ASSIGNMENT)
    with pytest.raises(InjectionError, match=r"the reassignment was refused: INVALID_REPLICA_ASSIGNMENT.*: no"):
        OLD_COORDINATES.inject(on)


def test_a_release_that_no_replica_has_cannot_be_placed_on() -> None:
    """Without a node of the release nothing is asked of the controller."""
    on, _, admin = mixed()
    with pytest.raises(UnresolvedTargetError, match=r"no replica of __consumer_offsets-0 is on a node of 4\.2\.0"):
        OLD_COORDINATES.inject(on)
    assert admin.asked == []
