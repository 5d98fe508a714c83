"""Roles that depend on more than one partition, group or id of the workload."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chaos.arena import Arena
from chaos.cluster import BrokerId
from chaos.errors import InjectionError, UnresolvedTargetError
from chaos.faults.brokers import CrashBroker
from chaos.targets import AllBrokers, CoordinatorOfOpenTransaction, LeaderAwayFromCoordinators
from tests.support.fake_cluster import BILLING, FakeAdmin, FakeCluster, arena

OPEN_IN = CoordinatorOfOpenTransaction("billing-events")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chaos.targets.OPENED_WITHIN_S", 0.05)


def with_open(*transactions: tuple[str, int]) -> Arena:
    """An arena with these open transactions: topic and coordinator."""
    on = arena()
    assert isinstance(on.admin, FakeAdmin)
    on.admin.open_in = lambda: list(transactions)
    return on


def test_a_broker_that_answers_has_not_ended() -> None:
    """The command to end it did nothing."""
    on = arena()
    assert isinstance(on.cluster, FakeCluster)
    on.cluster.dead.update(on.cluster.brokers)
    assert AllBrokers().left(on, on.cluster.brokers) == "no broker process is left of 3"
    on.cluster.answers = lambda node: node == 2  # type: ignore[method-assign]
    assert AllBrokers().left(on, on.cluster.brokers) is None


def test_a_partition_away_from_the_coordinators_is_chosen() -> None:
    """The target spares the brokers that coordinate the producers."""
    on = arena(single_replica=True)
    target = LeaderAwayFromCoordinators("billing-events")
    assert target.resolve(on) == (1,)
    injection = CrashBroker(target).inject(on)
    assert injection.confirm() == "billing-events-0 has no leader"


def test_a_partition_whose_leader_coordinates_all_producers_is_refused() -> None:
    """When every leader is a coordinator, the target refuses instead of attacking the coordinator."""
    with pytest.raises(UnresolvedTargetError, match="coordinates all producers"):
        LeaderAwayFromCoordinators("billing-events").resolve(arena())


def test_the_coordinator_of_an_open_transaction_is_found() -> None:
    """Of several transactions that are open in the topic that with the lowest id counts, and none of another topic."""
    on = with_open(("of-another-run", 1), (BILLING.topic, 3), (BILLING.topic, 2))
    assert OPEN_IN.resolve(on) == (2,)


@pytest.mark.usefixtures("impatient")
def test_without_an_open_transaction_there_is_no_coordinator_to_aim_at() -> None:
    """A fault must meet a transaction of the pipeline; a transaction of others is none."""
    with pytest.raises(UnresolvedTargetError, match="no transaction was open in billing-events"):
        OPEN_IN.resolve(with_open(("of-another-run", 1)))


@pytest.mark.usefixtures("impatient")
def test_a_coordinator_that_is_silent_is_no_target() -> None:
    """An answer that does not come says nothing about who coordinates."""
    on = with_open((BILLING.topic, 2))
    assert isinstance(on.admin, FakeAdmin)
    on.admin.changes = False
    with pytest.raises(UnresolvedTargetError):
        OPEN_IN.resolve(on)
    assert OPEN_IN.left(on, (BrokerId(2),)) is None


def test_a_coordinator_has_left_once_others_coordinate_all_that_is_open() -> None:
    """No open transaction at all proves nothing, and neither does one that the broker still has."""
    crashed = (BrokerId(2),)
    assert OPEN_IN.left(with_open(), crashed) is None
    assert OPEN_IN.left(with_open((BILLING.topic, 2), (BILLING.topic, 3)), crashed) is None
    assert OPEN_IN.left(with_open((BILLING.topic, 3)), crashed) == (
        "transactions in billing-events are coordinated by [3], and none by [2]"
    )


def test_an_arena_without_an_administrator_is_named() -> None:
    """Only a run has a client that asks brokers."""
    with pytest.raises(InjectionError, match="no client that asks the brokers"):
        OPEN_IN.resolve(replace(arena(), admin=None))
