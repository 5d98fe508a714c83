"""The nemesis holds every producer before a fault, also where one of them retires meanwhile."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chaos.clients import ClientProcess, SyncPoint
from chaos.errors import SyncPointError
from chaos.faults.brokers import CrashBroker
from chaos.nemesis import Nemesis
from chaos.schedule import Step
from chaos.targets import AllBrokers
from tests.support.fake_cluster import FakeClients, arena


class RetiringClients(FakeClients):
    """Its first producer retires while it is to be held, and has a successor at the next look."""

    def hold(self, point: SyncPoint, *, processes: tuple[ClientProcess, ...], timeout_s: float) -> None:
        """Refuse a hold in which a process ends."""
        super().hold(point, processes=processes, timeout_s=timeout_s)
        first = self.living[0]
        if first.process == 0:
            self.living[0] = replace(first, process=10)
            self.held.clear()
            raise SyncPointError("r-0 did not reach before-commit within 30.0 s", hint="ended: r-0")


def test_the_successor_of_a_producer_that_retires_is_held_instead() -> None:
    """A producer whose commit an earlier crash left unanswered retires later, and the step still takes place."""
    clients = RetiringClients()
    held: list[dict[int, SyncPoint]] = []
    step = Step(fault=CrashBroker(AllBrokers()), after_s=0, hold_s=0, while_held=SyncPoint.BEFORE_COMMIT, leaving=1)
    nemesis = Nemesis(
        arena=replace(arena(), clients=clients),
        record=lambda _: None,
        tell=lambda _: held.append(dict(clients.held)),
        wait=lambda _: None,
    )
    (record,) = nemesis.run((step,))
    assert record.error is None
    assert record.confirmed_ns is not None
    assert held[0] == {10: SyncPoint.BEFORE_COMMIT, 1: SyncPoint.BEFORE_COMMIT}
    assert clients.dismissed == {10}
    assert clients.held == {}


def test_producers_that_live_and_do_not_reach_the_sync_point_end_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """The step has an error and no proof; the producers are let go."""

    def hold(self: FakeClients, point: SyncPoint, **_: object) -> None:
        raise SyncPointError("r-0 did not reach before-commit within 30.0 s")

    monkeypatch.setattr(FakeClients, "hold", hold)
    on = arena()
    step = Step(fault=CrashBroker(AllBrokers()), after_s=0, hold_s=0, while_held=SyncPoint.BEFORE_COMMIT)
    (record,) = Nemesis(arena=on, record=lambda _: None, tell=lambda _: None, wait=lambda _: None).run((step,))
    assert (record.error, record.applied_ns) == (
        "SyncPointError: r-0 did not reach before-commit within 30.0 s",
        None,
    )
