"""The steps of a migration prove what they did, and end as errors where the cluster disobeys."""

from __future__ import annotations

import pytest

from chaos.arena import Arena
from chaos.cluster import ZOOKEEPER, BrokerId
from chaos.errors import InjectionError, NodeLostError
from chaos.operations.migration import AddControllers, MetadataCopied, StopZooKeeper, TakeProducerIds
from chaos.operations.rolling import RollNext
from tests.support.fake_cluster import FakeAdmin, FakeCluster, arena

CONTROLLERS = (BrokerId(4), BrokerId(5))
ADDED = AddControllers(CONTROLLERS, "3.9.2 migrating")


def cluster_of(on: Arena) -> FakeCluster:
    """The fake cluster of an arena, where new nodes do not run yet."""
    assert isinstance(on.cluster, FakeCluster)
    on.cluster.dead.update(CONTROLLERS)
    return on.cluster


def test_controllers_are_started_together_and_one_must_lead() -> None:
    """They answer first, and then elect."""
    on = arena()
    cluster = cluster_of(on)
    injection = ADDED.inject(on)
    assert all(cluster.is_running(node) for node in CONTROLLERS)
    assert injection.confirm() is None
    cluster.active = CONTROLLERS[1]
    assert "node 4 started 3.9.2 migrating" in (injection.confirm() or "")
    assert injection.releases == dict.fromkeys(CONTROLLERS, "3.9.2 migrating")


def test_a_controller_that_does_not_come_ends_the_schedule() -> None:
    """A migration without its controllers has no further step."""
    on = arena()
    cluster = cluster_of(on)
    injection = ADDED.inject(on)
    cluster.crash(CONTROLLERS[0])
    with pytest.raises(NodeLostError, match="node 4 ended by itself"):
        injection.confirm()
    with pytest.raises(NodeLostError, match="node 4 did not come back in time"):
        injection.late()
    injection.heal()
    assert not cluster.is_running(CONTROLLERS[0]), "what it left behind is evidence"


def test_the_copy_is_seen_once_a_controller_says_so() -> None:
    """It names a release of its own then."""
    on = arena()
    injection = MetadataCopied("3.9.2 copied").inject(on)
    assert injection.confirm() is None
    cluster_of(on).releases[BrokerId(3)] = "3.9.2 copied"
    assert injection.confirm() == "node 3 says that it has copied the metadata"


def test_each_transactional_id_of_each_phase_is_new() -> None:
    """The names begin with the run; the proof names the ids and their blocks."""
    on = arena()
    assert isinstance(on.admin, FakeAdmin)
    first, second = (TakeProducerIds(phase, 3).inject(on) for phase in ("before", "after"))
    assert first.confirm() == "3 producer ids from 0 to 2000, of 3 blocks"
    assert second.confirm() == "3 producer ids from 3000 to 5000, of 3 blocks"
    assert len(set(on.admin.initialised)) == 6


def test_coordinators_that_give_no_id_are_an_error() -> None:
    """It is none of the claim: nothing was tried."""
    on = arena()
    assert isinstance(on.admin, FakeAdmin)
    on.admin.changes = False
    with pytest.raises(InjectionError, match="no producer id"):
        TakeProducerIds("before", 1).inject(on)


def test_zookeeper_is_stopped_cleanly() -> None:
    """It stays down."""
    on = arena()
    injection = StopZooKeeper().inject(on)
    injection.heal()
    assert injection.confirm() == "its process has ended"
    assert ZOOKEEPER in cluster_of(on).stopped_cleanly


def test_a_roll_may_be_for_some_nodes_only() -> None:
    """Controllers of the same cluster, which would go first, are left alone."""
    on = arena()
    cluster_of(on).releases[CONTROLLERS[0]] = "3.9.2 migrating"
    injection = RollNext("3.9.2 KRaft", nodes=(1, 2, 3)).inject(on)
    assert set(injection.releases) <= {1, 2, 3}
