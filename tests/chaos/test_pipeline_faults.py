"""Instances of a pipeline are killed and stopped while they work, and the proof says on how much."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from chaos.clients import ClientProcess
from chaos.cluster import Position, Site
from chaos.errors import InjectionError
from chaos.faults.open_work import LOOK_EVERY_S, ONCE_MORE_AFTER_S, OWN_AFTER_S
from chaos.faults.pipelines import CutInstance, KillInstance
from chaos.nemesis import Nemesis
from chaos.schedule import Step
from tests.support.fake_cluster import FakeClients, FakeCluster, arena
from wire.values import TopicPartition


def showing(looks: Iterator[tuple[int, int]]) -> Callable[..., dict[TopicPartition, Position]]:
    """Positions whose last stable offset and high watermark are those of the next look."""

    def positions(_: FakeCluster, places: tuple[TopicPartition, ...]) -> dict[TopicPartition, Position]:
        stable, high = next(looks)
        return dict.fromkeys(places, Position(leader=1, high_watermark=high, last_stable_offset=stable))

    return positions


def test_an_instance_is_killed_in_a_transaction_that_it_began_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kill waits for the end of the transaction before, for the next one, and for as long as its schedule says."""
    slept: list[float] = []
    monkeypatch.setattr("chaos.faults.pipelines.time.sleep", slept.append)
    looks = iter([(5, 9), (5, 9), (8, 12), (10, 10), (10, 12), *[(10, 40)] * 3])
    monkeypatch.setattr(FakeCluster, "positions", showing(looks))
    injection = KillInstance("billing-events", 1, worked_s=2).inject(arena())
    assert slept == [*[LOOK_EVERY_S] * 4, 2, OWN_AFTER_S]
    assert "30 records of billing-events had waited" in str(injection.confirm())


def test_an_instance_that_works_on_nothing_is_not_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill that met no transaction would be no attack."""
    monkeypatch.setattr("chaos.faults.open_work.WORK_WITHIN_S", 0.0)
    with pytest.raises(InjectionError, match="no transaction of the pipeline ended"):
        KillInstance("billing-events", 1, worked_s=2).inject(arena())


def test_another_instance_is_stopped_while_the_open_transaction_is_not_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Records that are decided while an instance is stopped are not its own. Those that wait a second later are."""
    slept: list[float] = []
    monkeypatch.setattr("chaos.faults.pipelines.time.sleep", slept.append)
    # Open, stopped, a second later; twice.
    looks = iter([(5, 9), (5, 9), (10, 12), (10, 12), (10, 14), (10, 17)])
    monkeypatch.setattr(FakeCluster, "positions", showing(looks))
    on = arena()
    assert isinstance(on.clients, FakeClients)
    on.clients.living.append(ClientProcess(process=4, role="pipeline", site=Site("app"), transactional_id=None))
    injection = KillInstance("billing-events", 1).inject(on)
    assert slept == [OWN_AFTER_S] * 2
    assert injection.processes == (4,)
    assert injection.met == 7
    assert "7 records of billing-events had waited" in str(injection.confirm())
    assert isinstance(on.clients, FakeClients)
    assert not on.clients.stopped


def test_a_kill_shows_when_others_have_done_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """More must be decided than the abort of the open transaction; the record of the step says how much that was."""
    monkeypatch.setattr("chaos.faults.pipelines.time.sleep", lambda _: None)
    looks = iter([(5, 9), (5, 9), (5, 9), (10, 10), (11, 11)])
    monkeypatch.setattr(FakeCluster, "positions", showing(looks))
    step = Step(fault=KillInstance("billing-events", 1, until_others=True), hold_s=0)
    (record,) = Nemesis(arena=arena(), record=lambda _: None, tell=lambda _: None, wait=lambda _: None).run((step,))
    assert (record.met, next(looks, None)) == (4, None)
    assert record.confirmed_ns is not None


def test_the_instance_at_a_site_is_cut_off_in_its_transaction_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not stopped once its site is cut; the cut counts when others wrote more than the abort of that transaction."""
    monkeypatch.setattr("chaos.faults.pipelines.time.sleep", lambda _: None)
    looks = iter([(5, 9), (5, 9), (5, 9), (10, 10), (11, 11)])
    monkeypatch.setattr(FakeCluster, "positions", showing(looks))
    on = arena()
    assert isinstance(on.cluster, FakeCluster)
    assert isinstance(on.clients, FakeClients)
    on.clients.living.insert(0, replace(on.clients.living[-1], process=4, site=Site("zombie")))
    injection = CutInstance(Site("app"), "billing-events", 1).inject(on)
    assert (injection.processes, injection.met) == ((3,), 4)
    assert not on.clients.stopped
    assert injection.confirm() is None
    assert "others have written" in str(injection.confirm())
    injection.heal()
    assert on.cluster.links.is_healed()


def test_a_single_instance_is_stopped_at_another_moment_of_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The open transactions are those of others at first; the wait before the next attempt is longer each time."""
    slept: list[float] = []
    monkeypatch.setattr("chaos.faults.open_work.time.sleep", slept.append)
    # Open, stopped, a second later; three times.
    looks = iter([(5, 9), (5, 9), (10, 12), (10, 12), (10, 14), (14, 17), *[(14, 19)] * 3])
    monkeypatch.setattr(FakeCluster, "positions", showing(looks))
    assert CutInstance(Site("app"), "billing-events", 1).inject(arena()).met == 5
    assert slept == [OWN_AFTER_S, ONCE_MORE_AFTER_S, OWN_AFTER_S, 2 * ONCE_MORE_AFTER_S, OWN_AFTER_S]


def test_records_that_a_killed_instance_left_open_are_not_met_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind them everything waits. Once they are decided, the next kill says again how many it met."""
    monkeypatch.setattr("chaos.faults.pipelines.time.sleep", lambda _: None)
    looks = iter([*[(5, 9)] * 3, *[(5, 14)] * 3, *[(15, 18)] * 3])
    monkeypatch.setattr(FakeCluster, "positions", showing(looks))
    on = arena()
    assert isinstance(on.clients, FakeClients)
    on.clients.living += [replace(on.clients.living[-1], process=each) for each in (4, 5)]
    assert [KillInstance("billing-events", 1).inject(on).met for _ in range(3)] == [4, None, 3]


def test_a_kill_without_outputs_to_look_at_says_nothing_about_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have met work or not."""
    monkeypatch.setattr("chaos.faults.pipelines.time.sleep", lambda _: None)
    assert KillInstance("billing-events", 0).inject(arena()).met is None
