"""Restarts without another release: the order of a control, and what careless operators do."""

from __future__ import annotations

from collections import Counter

import pytest

from chaos.cluster import BrokerId, Site
from chaos.errors import NodeLostError
from chaos.operations import restarting
from chaos.operations.restarting import HastyRestart, RestartAllAtOnce, RestartNext
from chaos.operations.rolling import require_running
from tests.support.fake_cluster import BROKERS, FakeCluster, arena


def test_each_round_restarts_every_node_once_and_the_controller_last() -> None:
    """Broker 1 is the controller; a kill and a stop take the same turn."""
    on, restarts, order = arena(), Counter[BrokerId](), []
    for number in range(6):
        done = RestartNext(restarts, by_kill=number == 1).inject(on)
        order += list(done.releases)
        assert done.confirm() is not None
    assert order == [2, 3, 1, 2, 3, 1]
    cluster = on.cluster
    assert isinstance(cluster, FakeCluster)
    assert cluster.installed() == dict.fromkeys(BROKERS, "4.1.2")


def test_a_restart_is_not_proven_while_the_node_is_down() -> None:
    """The proof is the node that has joined, not the command that started it."""
    on = arena()
    done = RestartNext(Counter()).inject(on)
    (node,) = map(BrokerId, done.releases)
    on.cluster.crash(node)
    with pytest.raises(NodeLostError, match=f"node {node} ended by itself"):
        done.confirm()
    done.heal()
    assert not on.cluster.is_running(node), "a lost node stays as it is"


def test_a_node_that_ends_by_itself_later_is_lost_too() -> None:
    """Its log is that of its last start, and it has one release."""
    on = arena()
    require_running(on)
    on.cluster.crash(BrokerId(2))
    on.cluster.logs[BrokerId(2)] = "ERROR old\nINFO Kafka version: 4.1.2\nERROR new"  # type: ignore[attr-defined]
    with pytest.raises(NodeLostError, match=r"node 2 ended by itself with 4\.1\.2") as lost:
        require_running(on)
    found = lost.value.lost
    assert (found.before, found.release, found.exit_status, found.had_joined) == ("4.1.2", "4.1.2", 1, True)
    assert found.log == "ERROR new"


def test_a_hasty_restart_slows_followers_down_before_it_kills_their_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    """In that time the leader acknowledges alone; the links are whole again when the node starts."""
    on, slow = arena(), []
    monkeypatch.setattr(restarting.time, "sleep", lambda _: slow.append(dict(on.cluster.links.slow)))  # type: ignore[attr-defined]
    done = HastyRestart("billing-events", 0).inject(on)
    assert [(str(link), latency) for link, latency in slow[0].items()] == [("2→1", 400), ("3→1", 400)]
    assert on.cluster.links.is_healed()
    assert done.releases == {1: "4.1.2"}
    assert done.confirm() is not None


def test_all_nodes_at_once_are_proven_by_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """No answer reaches the clients before the end; a node that ends again keeps the restart unproven."""
    on, mute = arena(), []
    monkeypatch.setattr(restarting.time, "sleep", lambda _: mute.append(set(on.cluster.links.mute)))  # type: ignore[attr-defined]
    done = RestartAllAtOnce(Site("app")).inject(on)
    assert sorted(map(str, mute[0])) == ["app→1", "app→2", "app→3"]
    assert on.cluster.links.is_healed()
    assert set(done.releases) == set(BROKERS)
    assert str(done.confirm()).count("has joined again") == 3
    on.cluster.crash(BrokerId(2))
    with pytest.raises(NodeLostError, match="node 2 ended by itself"):
        done.confirm()
    with pytest.raises(NodeLostError, match="node 2 ended by itself"):
        done.late()


def test_a_node_that_does_not_come_back_in_time_is_lost() -> None:
    """It runs and does not answer, so the rest of the schedule makes no sense."""
    on = arena(reacts=False)
    done = RestartNext(Counter()).inject(on)
    assert done.confirm() is None
    with pytest.raises(NodeLostError, match="did not come back in time"):
        done.late()
