"""The proof that each fault needs, and the state that the nemesis needs before it calls a fault healed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chaos.clients import ClientProcess, Succession, SyncPoint
from chaos.cluster import BrokerId, Link, Position, Site
from chaos.errors import FutileFaultError, InjectionError
from chaos.faults import sites
from chaos.faults.brokers import CrashBroker
from chaos.faults.clients import KillClient
from chaos.faults.compound import ElectUncleanly
from chaos.faults.databases import CrashDatabase
from chaos.faults.fault import Fault
from chaos.faults.network import IsolateBrokers
from chaos.faults.pipelines import CrashPeer
from chaos.faults.sites import CutSite, DegradeSite, LoseResponses
from chaos.faults.zombies import PartitionedZombie, PausedZombie
from chaos.nemesis import Nemesis
from chaos.schedule import Step
from chaos.targets import FollowerOf, LeaderOf, TransactionCoordinatorOf
from tests.support.fake_cluster import FakeClients, FakeCluster, arena
from tests.verification.test_coverage import evidence
from verification.coverage import coverage
from verification.vocabulary.history import FaultRecord
from wire.values import TopicPartition

LEADER = LeaderOf("billing-events", 0)
APP, ZOMBIE = Site("app"), Site("zombie")


def applied(fault: Fault, on: object, *, step: Step | None = None, **more: object) -> FaultRecord:
    """The nemesis's record of one step, without waiting."""
    nemesis = Nemesis(
        arena=on,  # type: ignore[arg-type]
        record=lambda _: None,
        tell=lambda _: None,
        wait=lambda _: None,
        **more,  # type: ignore[arg-type]
    )
    (record,) = nemesis.run((step or Step(fault=fault, hold_s=0),))
    return record


def test_a_database_that_crashed_is_started_again() -> None:
    """The proof is that its process is gone; a pipeline without a database has none to crash."""
    on = arena()
    record = applied(CrashDatabase(), on)
    assert (record.proof, record.target) == ("the process of the database server is gone", "database server")
    assert record.healed_ns is not None
    assert on.database is not None
    assert on.database.is_running
    assert applied(CrashDatabase(), replace(on, database=None)).error == (
        "UnresolvedTargetError: the pipeline of this run has no database"
    )


def test_a_second_cluster_that_crashed_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one goes on. The record has the records of transactions that were open there."""
    open_there = Position(leader=1, high_watermark=9, last_stable_offset=5)
    monkeypatch.setattr(FakeCluster, "positions", lambda _, places: dict.fromkeys(places, open_there))
    on = arena()
    record, peer = applied(CrashPeer(), on), on.peer
    assert peer is not None
    assert record.proof == f"no broker process is left of {len(peer.brokers)}"
    assert record.met == 4 * len(peer.view().partitions) > 0
    assert record.healed_ns is not None
    assert all(map(peer.is_running, peer.brokers))
    assert (
        applied(CrashPeer(), replace(on, peer=None)).error
        == "UnresolvedTargetError: the pipeline of this run has no second cluster"
    )


def test_a_fault_whose_heal_fails_counts_neither_as_confirmed_nor_as_healed() -> None:
    """Without a successor the copier was not replaced: the step counts neither as confirmed nor as healed."""
    on = arena()
    clients = on.clients
    assert isinstance(clients, FakeClients)

    def succeed(process: ClientProcess, *, site: Site, timeout_s: float, release: str = "") -> Succession:
        raise InjectionError(f"no successor of process {process.process} was initialised")

    clients.succeed = succeed  # type: ignore[method-assign]
    record = applied(KillClient("copier", SyncPoint.BEFORE_COMMIT), on)
    assert record.confirmed_ns is not None
    assert record.error == "InjectionError: no successor of process 2 was initialised"
    assert record.healed_ns is None
    run = evidence(record)
    assert (coverage.faults_confirmed(run), coverage.ok_after(run)) == (0, 0)


def test_what_could_not_be_applied_is_healed_once_nothing_of_it_is_left() -> None:
    """A fault is healed when the cluster shows it, not when healing was tried."""
    on = arena()
    cluster = on.cluster
    assert isinstance(cluster, FakeCluster)

    def crash(*brokers: BrokerId) -> None:
        cluster.dead.update(brokers)
        raise InjectionError("the brokers stopped, and then the call failed")

    cluster.crash = crash  # type: ignore[method-assign]
    assert applied(ElectUncleanly("billing-events", 0), on).healed_ns is not None

    def start(broker: BrokerId) -> None:
        raise InjectionError(f"broker {broker} does not start")

    cluster.start = start  # type: ignore[method-assign]
    assert applied(ElectUncleanly("billing-events", 0), on).healed_ns is None


def test_a_link_that_was_slow_before_does_not_prove_that_it_was_slowed() -> None:
    """The proof compares with the round trips before; a broker that answers no request proves nothing."""
    fault = DegradeSite(APP, latency_ms=50, jitter_ms=10)
    for usual_ms, reacts, proven in ((500.0, False, False), (500.0, True, True), (2.0, True, True)):
        on = arena(reacts=reacts)
        assert isinstance(on.cluster, FakeCluster)
        on.cluster.usual_ms = usual_ms
        assert (fault.inject(on).confirm() is not None) is proven


def test_a_broker_that_cannot_be_reached_proves_no_delay() -> None:
    """A silent broker before the fault makes it impossible; one afterwards is no proof."""
    on = arena()
    assert isinstance(on.cluster, FakeCluster)
    lost = Link(source="app", target=BrokerId(2))
    injection = DegradeSite(APP, latency_ms=50).inject(on)
    on.cluster.unreachable.add(lost)
    assert injection.confirm() is None
    with pytest.raises(InjectionError, match="does not answer site app before anything is degraded"):
        DegradeSite(APP, latency_ms=50).inject(on)


def test_a_rate_is_measured_by_what_it_lets_through() -> None:
    """The padding takes a quarter of a second at the rate; with a delay the proof needs both."""
    assert DegradeSite(APP, rate_kb_s=128).padding_kb == 32
    assert DegradeSite(APP, rate_kb_s=128).longer_ms == 250
    assert DegradeSite(APP, rate_kb_s=128, latency_ms=150, jitter_ms=100).longer_ms == 350
    on = arena()
    assert isinstance(on.cluster, FakeCluster)
    injection = DegradeSite(APP, rate_kb_s=128, latency_ms=150, jitter_ms=100).inject(on)
    on.cluster.links.narrow.clear()
    assert injection.confirm() is None


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (DegradeSite(APP, latency_ms=50, jitter_ms=50), "no delay that could be measured"),
        (DegradeSite(APP, rate_kb_s=0), "a cut"),
    ],
)
def test_what_could_never_be_measured_is_refused(fault: DegradeSite, why: str) -> None:
    """A fault whose proof would hold without it must not be planned."""
    with pytest.raises(FutileFaultError, match=why):
        Step(fault=fault)


def test_an_unknown_end_is_no_ground_for_lost_responses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every high watermark is above −1: without a first one the fault is refused, and its link is open again."""
    monkeypatch.setattr(sites, "ANSWERED_WITHIN_S", 0.0)
    monkeypatch.setattr(sites, "LOOK_EVERY_S", 0.0)
    on = arena()
    cluster = on.cluster
    assert isinstance(cluster, FakeCluster)

    def silent(partitions: tuple[TopicPartition, ...]) -> dict[TopicPartition, Position]:
        return dict.fromkeys(partitions, Position(leader=1, high_watermark=-1, last_stable_offset=-1))

    cluster.positions = silent  # type: ignore[method-assign]
    with pytest.raises(InjectionError, match="no leader gave the high watermark of"):
        LoseResponses(APP, "billing-events", 0).inject(on)
    assert cluster.links.is_healed()
    assert not on.clients.held  # type: ignore[attr-defined]


def test_the_coordinator_asked_about_is_always_that_of_the_same_id() -> None:
    """When the first producer has ended, another id's coordinator must not prove that the role has moved."""
    on = arena()
    cluster, clients = on.cluster, on.clients
    assert isinstance(cluster, FakeCluster)
    assert isinstance(clients, FakeClients)
    homes = {"r-0": BrokerId(1), "r-1": BrokerId(3), "r-2": BrokerId(3)}
    cluster.transaction_coordinator = homes.get  # type: ignore[method-assign]
    target = TransactionCoordinatorOf(0)
    struck = target.resolve(on)
    clients.kill(clients.living[0])
    assert target.left(on, struck) is None
    homes["r-0"] = BrokerId(2)
    assert target.left(on, struck) == "transaction coordinator moved 1 → 2"


def test_a_follower_is_struck_and_the_leader_spared() -> None:
    """The role resolves to an in-sync replica that does not lead, and has left it when it left the in-sync set."""
    on = arena()
    target = FollowerOf("billing-events", 0)
    assert target.resolve(on) == (3,)
    assert target.left(on, (BrokerId(3),)) is None
    injection = CrashBroker(target).inject(on)
    assert injection.confirm() == "in-sync replicas of billing-events-0 are [1, 2], without [3]"


def test_an_isolated_broker_must_still_be_reached_by_clients() -> None:
    """Otherwise no client could have received the records of the old leader alone, and the claim was not tried."""
    on = arena()
    injection = IsolateBrokers(LEADER).inject(on)
    proof = injection.confirm()
    assert proof is not None
    assert "broker 1 can still be reached from app, zombie" in proof
    on.cluster.links.cut(Link(source="app", target=BrokerId(1)))
    assert injection.confirm() is None


def test_where_clients_have_no_links_the_proof_says_nothing_about_them() -> None:
    """A command of the user cut the broker off."""
    on = arena()
    assert isinstance(on.cluster, FakeCluster)
    on.cluster.sites = ()
    assert IsolateBrokers(LEADER).inject(on).confirm() == "leader of billing-events-0 moved 1 → 2"


def test_a_site_is_cut_off_while_its_clients_are_where_it_says() -> None:
    """They wait at the point when the links are cut, and go on after the cut; clients elsewhere are left alone."""
    on = arena()
    clients, mesh = on.clients, on.cluster.links
    assert isinstance(clients, FakeClients)
    seen: list[dict[int, SyncPoint]] = []
    cut = mesh.cut

    def watched(*links: Link) -> None:
        seen.append(dict(clients.held))
        cut(*links)

    mesh.cut = watched  # type: ignore[method-assign]
    injection = CutSite(ZOMBIE, held=SyncPoint.BEFORE_OFFSETS).inject(on)
    assert seen == [{1: SyncPoint.BEFORE_OFFSETS}]
    assert not clients.held
    assert injection.processes == (1,)


@pytest.mark.parametrize("kind", [PausedZombie, PartitionedZombie])
def test_a_zombie_sleeps_past_its_transaction_timeout(
    kind: type[PausedZombie] | type[PartitionedZombie], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The zombie comes back only when its own transaction has timed out, however soon its successor starts."""
    slept: list[float] = []
    monkeypatch.setattr("chaos.faults.zombies.time.sleep", slept.append)
    injection = kind(site=ZOMBIE, successor_site=APP, past_s=6.0).inject(arena())
    assert sum(slept) == pytest.approx(6.0, abs=0.5)
    assert injection.processes == (1,)


@pytest.mark.parametrize("kind", [PausedZombie, PartitionedZombie])
def test_a_zombie_waits_for_its_successor(kind: type[PausedZombie] | type[PartitionedZombie]) -> None:
    """Its commit has a deadline, which stands still while it is held: a slow start of the successor must not use it up."""
    on = arena()
    clients = on.clients
    assert isinstance(clients, FakeClients)
    seen: list[dict[int, SyncPoint]] = []
    succeed = clients.succeed

    def watched(*of: ClientProcess, **options: Any) -> Succession:
        seen.append(dict(clients.held))
        return succeed(*of, **options)

    clients.succeed = watched  # type: ignore[method-assign]
    kind(site=ZOMBIE, successor_site=APP).inject(on)
    assert seen == [{1: SyncPoint.BEFORE_COMMIT}]
    assert not clients.held


def test_who_is_struck_himself_is_recorded() -> None:
    """Only then the judge can ask whether this client or its successor worked again."""
    assert applied(KillClient("copier", SyncPoint.BEFORE_COMMIT), arena()).processes == (2,)
    assert applied(LoseResponses(APP, "billing-events", 0), arena()).processes == (0,)
    assert applied(CrashBroker(LEADER), arena()).processes == ()


def test_the_next_step_waits_until_the_cluster_is_whole() -> None:
    """A rolling restart stops a broker only when the one before is back: `once_whole` is asked before anything else."""
    on, order = arena(), []
    cluster = on.cluster
    assert isinstance(cluster, FakeCluster)
    cluster.crash = lambda *brokers: order.append(f"crash {brokers[0]}")  # type: ignore[method-assign]
    step = Step(fault=CrashBroker(LEADER), hold_s=0, confirm_within_s=0.01, once_whole=True)
    applied(step.fault, on, step=step, await_whole=lambda: order.append("whole"))
    assert order == ["whole", "crash 1"]
    assert step.describe().startswith("once every replica is in sync: crash")


def test_producers_are_let_go_as_the_fault_strikes() -> None:
    """With `let_go_first` the fault strikes once the last one has requested its commit, while brokers replicate slowly."""
    on = arena()
    cluster, clients = on.cluster, on.clients
    assert isinstance(cluster, FakeCluster)
    assert isinstance(clients, FakeClients)
    held: list[bool] = []
    asked: list[int] = []
    slow: list[int] = []
    crash = cluster.crash

    def watched(*brokers: BrokerId) -> None:
        held.append(bool(clients.held))
        asked.append(clients.asked_for_deciding)
        slow.append(len(cluster.links.slow))
        crash(*brokers)

    cluster.crash = watched  # type: ignore[method-assign]
    for first in (False, True):
        step = Step(fault=CrashBroker(LEADER), hold_s=0, while_held=SyncPoint.BEFORE_COMMIT, let_go_first=first)
        applied(step.fault, on, step=step)
    assert (held, asked, slow) == ([True, False], [0, 1], [0, 6])
    assert cluster.links.is_healed()
    for point in (None, SyncPoint.BEFORE_PRODUCE):
        with pytest.raises(FutileFaultError, match="producers that are not held before a commit"):
            Step(fault=CrashBroker(LEADER), while_held=point, let_go_first=True)
