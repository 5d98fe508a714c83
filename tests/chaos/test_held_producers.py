"""The nemesis holds every producer before a fault, also where one of them retires meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from chaos import nemesis
from chaos.arena import Arena
from chaos.clients import ClientProcess, SyncPoint
from chaos.errors import SyncPointError
from chaos.faults.brokers import CrashBroker
from chaos.faults.fault import Injection
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
    running = Nemesis(
        arena=replace(arena(), clients=clients),
        record=lambda _: None,
        tell=lambda _: held.append(dict(clients.held)),
        wait=lambda _: None,
    )
    (record,) = running.run((step,))
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


class BusyClients(FakeClients):
    """Its second producer waits for a broker, and reaches no sync point."""

    def hold(self, point: SyncPoint, *, processes: tuple[ClientProcess, ...], timeout_s: float) -> None:
        """Refuse a hold of that one."""
        if any(each.process == 1 for each in processes):
            raise SyncPointError("r-1 did not reach before-commit within 5.0 s")
        super().hold(point, processes=processes, timeout_s=timeout_s)


def test_one_producer_waits_and_the_others_go_on() -> None:
    """It is another one at each step; one that waits for a broker already is passed over, and does not end the step."""
    clients = BusyClients()
    held: list[set[int]] = []
    step = Step(fault=CrashBroker(AllBrokers()), after_s=0, hold_s=0, while_held=SyncPoint.BEFORE_COMMIT, holding=1)
    running = Nemesis(
        arena=replace(arena(), clients=clients),
        record=lambda _: held.append(set()),
        tell=lambda _: held[-1].update(clients.held),
        wait=lambda _: None,
    )
    held.append(set())
    records = running.run((step, step))
    assert [each.error for each in records] == [None, None]
    assert held == [{0}, {0}, set()]
    assert [each.held for each in records] == [(0,), (0,)]
    assert clients.held == {}
    assert "while 1 of the producers waits before commit" in step.describe()
    assert not clients.dismissed


def test_one_of_those_that_wait_leaves() -> None:
    """The one that was held ends without a successor, and the others stay."""
    clients = BusyClients()
    step = Step(fault=CrashBroker(AllBrokers()), hold_s=0, while_held=SyncPoint.BEFORE_COMMIT, holding=1, leaving=1)
    on = replace(arena(), clients=clients)
    Nemesis(arena=on, record=lambda _: None, tell=lambda _: None, wait=lambda _: None).run((step,))
    assert clients.dismissed == {0}


def test_a_producer_that_waits_alone_is_let_go_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its transaction must not time out, however long the step takes to show."""
    monkeypatch.setattr(nemesis, "HOLD_SOME_S", 0.05)
    clients = FakeClients()
    seen: list[bool] = []

    def shown() -> str | None:
        seen.append(bool(clients.held))
        return None if clients.held else "shown"

    step = Step(fault=Passing(confirm=shown), hold_s=0, while_held=SyncPoint.BEFORE_COMMIT, holding=1)
    on = replace(arena(), clients=clients)
    (record,) = Nemesis(arena=on, record=lambda _: None, tell=lambda _: None, wait=time.sleep).run((step,))
    assert (record.proof, seen[0], seen[-1]) == ("shown", True, False)


@dataclass(frozen=True)
class Passing:
    """An operation: it shows at once, and nothing stands once it is confirmed."""

    lasts: bool = True
    confirm: Callable[[], str | None] = lambda: "done"

    def describe(self) -> str:
        """In words."""
        return "a change"

    def futility(self) -> str | None:
        """It always shows."""
        return None

    def inject(self, on: Arena) -> Injection:
        """Change nothing."""
        return Injection(target="x", confirm=self.confirm, heal=lambda: None, lasts=self.lasts)


@pytest.mark.parametrize("lasts", [True, False])
def test_an_operation_is_over_once_it_is_confirmed(lasts: bool) -> None:
    """A fault stands until it is healed, after its time; an operation has that time behind it."""
    waited: list[float] = []
    running = Nemesis(arena=arena(), record=lambda _: None, tell=lambda _: None, wait=waited.append)
    (record,) = running.run((Step(fault=Passing(lasts), hold_s=3.0),))
    assert waited == [3.0]
    assert (record.healed_ns == record.confirmed_ns) is not lasts
