"""Every fault applies, proves that it took hold, and heals; on a cluster that does not react it proves nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules

import pytest

import chaos.faults
from chaos.clients import ClientProcess, SyncPoint
from chaos.cluster import BrokerId, Site
from chaos.errors import FutileFaultError, InjectionError
from chaos.faults import zombies
from chaos.faults.brokers import CrashBroker, PauseBroker, StopBroker
from chaos.faults.clients import KillClient
from chaos.faults.compound import ElectUncleanly, IsolateThenCrashLeader
from chaos.faults.databases import CrashDatabase
from chaos.faults.fault import Fault, HoldsClients
from chaos.faults.frames import TamperFrames
from chaos.faults.late_duplicate import LateDuplicate
from chaos.faults.network import CutFollowers, IsolateBrokers
from chaos.faults.pipelines import CrashPeer, CutInstance, KillInstance, KillPart, PauseInstance
from chaos.faults.sites import CutSite, DegradeSite, LoseResponses
from chaos.faults.watching import WatchOthers
from chaos.faults.zombies import PartitionedZombie, PausedZombie
from chaos.frames import Cut, FrameFilter, Respond
from chaos.link_targets import BetweenBrokers, FromSite
from chaos.nemesis import LOOK_EVERY_S, Nemesis
from chaos.schedule import Step, duration_s
from chaos.targets import (
    AllBrokers,
    Controller,
    CoordinatorOfOpenTransaction,
    FollowerOf,
    GroupCoordinator,
    LeaderOf,
    TransactionCoordinatorOf,
)
from tests.support.fake_cluster import FakeClients, FakeCluster, arena
from verification.coverage import coverage
from verification.vocabulary.history import FaultRecord
from wire.codes import ErrorCode

LEADER = LeaderOf("billing-events", 0)
APP = Site("app")
ZOMBIE = Site("zombie")

EFFECTIVE: list[Fault] = [
    CrashBroker(LEADER),
    CrashBroker(AllBrokers()),
    CrashBroker(TransactionCoordinatorOf(0)),
    CrashBroker(CoordinatorOfOpenTransaction("billing-events")),
    StopBroker(Controller()),
    PauseBroker(LEADER),
    CutFollowers("billing-events", 0),
    IsolateBrokers(LEADER),
    CutSite(APP),
    CutSite(APP, GroupCoordinator()),
    CutSite(APP, held=SyncPoint.BEFORE_OFFSETS),
    CrashBroker(FollowerOf("billing-events", 0)),
    DegradeSite(APP, latency_ms=50, jitter_ms=10),
    DegradeSite(APP, rate_kb_s=128),
    LoseResponses(APP, "billing-events", 0),
    PausedZombie(site=ZOMBIE, successor_site=APP),
    PartitionedZombie(site=ZOMBIE, successor_site=APP),
    KillClient("copier", SyncPoint.BEFORE_COMMIT),
    KillInstance("billing-events", 1),
    KillPart("worker"),
    PauseInstance("billing-events", 1),
    CutInstance(APP, "billing-events", 1),
    CrashDatabase(),
    CrashPeer(),
    IsolateThenCrashLeader("billing-events", 0),
    ElectUncleanly("billing-events", 0),
    TamperFrames(
        on=FromSite(APP, TransactionCoordinatorOf(0)),
        frames=FrameFilter(api="EndTxn"),
        producer=0,
        action=Respond(error_code=14),
    ),
    TamperFrames(on=BetweenBrokers(AllBrokers(), LEADER), frames=FrameFilter(api="EndTxn"), action=Cut()),
]


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake cluster has no open transaction, so a wait for one shows nothing."""
    monkeypatch.setattr("chaos.faults.open_work.OPEN_WITHIN_S", 0.0)
    monkeypatch.setattr("chaos.faults.pipelines.WORK_WITHIN_S", 0.0)
    monkeypatch.setattr("chaos.faults.open_work.OWN_AFTER_S", 0.01)


def healed(cluster: FakeCluster, clients: FakeClients) -> bool:
    return (
        cluster.links.is_healed()
        and not cluster.dead
        and not cluster.paused
        and not clients.held
        and not clients.stopped
    )


@dataclass
class Book:
    """The records and messages of a nemesis; `nemesis` makes one that writes into it."""

    records: list[FaultRecord] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    def nemesis(self, in_arena: object, *, interrupt_after: int | None = None) -> Nemesis:
        """A nemesis that does not sleep; after so many waits it is interrupted."""
        calls = 0

        def wait(seconds: float) -> None:
            nonlocal calls
            calls += 1
            if interrupt_after is not None and calls > interrupt_after:
                raise KeyboardInterrupt

        return Nemesis(arena=in_arena, record=self.records.append, tell=self.told.append, wait=wait)  # type: ignore[arg-type]


def faults() -> set[type]:
    """Every class below `chaos/faults` that can be injected."""
    modules = [import_module(f"chaos.faults.{each.name}") for each in iter_modules(chaos.faults.__path__)]
    classes = {value for module in modules for value in vars(module).values() if isinstance(value, type)}
    return {each for each in classes if hasattr(each, "inject") and not getattr(each, "_is_protocol", False)}


def test_every_fault_is_tried() -> None:
    """All but the futile one, `LateDuplicate`, which needs real links, and `WatchOthers`, which strikes nothing."""
    tried = {type(fault) for fault in EFFECTIVE} | {LateDuplicate, WatchOthers}
    assert tried == faults()


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("fault", EFFECTIVE, ids=lambda fault: type(fault).__name__)
def test_a_fault_is_confirmed_by_an_observation_and_heals(fault: Fault) -> None:
    """On a cluster that reacts, a fault proves itself and leaves nothing behind."""
    on = arena()
    injection = fault.inject(on)

    proof = injection.confirm()

    assert proof, "no proof although the cluster reacted"
    injection.heal()
    injection.heal()
    assert isinstance(on.cluster, FakeCluster)
    assert isinstance(on.clients, FakeClients)
    assert healed(on.cluster, on.clients)


#: The end of a process, or a refused connection, is a proof without any reaction of the cluster.
ENDED = (CutSite, KillClient, KillInstance, KillPart, CrashBroker, CrashDatabase, CrashPeer)
UNNOTICED = [fault for fault in EFFECTIVE if not isinstance(fault, ENDED)]


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("fault", EFFECTIVE, ids=lambda fault: type(fault).__name__)
def test_a_fault_names_its_holds(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client without that sync point must never be asked for it: such a scenario does not apply to its library."""
    held: set[tuple[str, SyncPoint]] = set()

    def hold(clients: FakeClients, point: SyncPoint, *, processes: tuple[ClientProcess, ...], timeout_s: float) -> None:
        held.update((each.role, point) for each in processes)

    monkeypatch.setattr(FakeClients, "hold", hold)
    fault.inject(arena()).heal()
    named = set(Step(fault=fault).holds)
    assert isinstance(fault, HoldsClients) or not named
    # The clients of this site are of all roles, and only copiers reach the point.
    assert named == ({each for each in held if each[0] == "copier"} if isinstance(fault, CutSite) else held)


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("fault", UNNOTICED, ids=lambda fault: type(fault).__name__)
def test_a_fault_without_effect_is_not_confirmed(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that returned is no proof: without an effect there is no confirmation."""
    monkeypatch.setattr("chaos.faults.compound.ELECTION_WITHIN_S", 0.0)
    injection = fault.inject(arena(reacts=False))
    assert injection.confirm() is None
    injection.heal()


def test_a_crashed_leader_that_keeps_its_role_is_not_confirmed() -> None:
    """The process being gone does not prove that leadership moved."""
    assert CrashBroker(LEADER).inject(arena(reacts=False)).confirm() is None


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("fault", EFFECTIVE, ids=lambda fault: type(fault).__name__)
def test_the_nemesis_heals_when_interrupted(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while a fault is in force leaves a healed cluster and free clients."""
    monkeypatch.setattr("chaos.faults.compound.ELECTION_WITHIN_S", 0.0)
    on = arena(reacts=False)
    book = Book()
    with pytest.raises(KeyboardInterrupt):
        book.nemesis(on, interrupt_after=0).run((Step(fault=fault),))
    (record,) = book.records
    assert record.healed_ns is not None
    assert record.applied_ns is not None or record.error, "the history must have the fault, or why it was not applied"
    assert isinstance(on.cluster, FakeCluster)
    assert isinstance(on.clients, FakeClients)
    assert healed(on.cluster, on.clients)


def test_the_nemesis_records_proof_and_times_in_order() -> None:
    """A step leaves one record: began, applied, confirmed and healed in this order, with the proof."""
    book = Book()
    (record,) = book.nemesis(arena()).run((Step(fault=CrashBroker(LEADER), after_s=0, hold_s=0),))
    assert book.records == [record]
    assert record.proof == "leader of billing-events-0 moved 1 → 2"
    assert record.applied_ns is not None
    assert record.confirmed_ns is not None
    assert record.healed_ns is not None
    assert record.began_ns <= record.applied_ns <= record.confirmed_ns <= record.healed_ns


def test_a_fault_stands_until_enough_operations_met_it() -> None:
    """Operations that were under way when it struck have met it; those that ended before have not."""
    begun, looks = 7, 0

    def wait(seconds: float) -> None:
        nonlocal begun, looks
        if seconds == LOOK_EVERY_S:
            begun, looks = begun + 1, looks + 1

    nemesis = Nemesis(
        arena=arena(),  # type: ignore[arg-type]
        record=lambda _: None,
        tell=lambda _: None,
        wait=wait,
        attempted=lambda: begun,
        ended=lambda: 4,
        meets=10,
    )
    nemesis.run((Step(fault=CrashBroker(LEADER), after_s=0, hold_s=0),))
    assert looks == 7, "three operations were under way, seven more had to be begun"


def test_an_operation_that_is_reported_late_has_not_met_the_fault() -> None:
    """An operation that ended before the fault does not count, also when it is reported while the fault takes hold."""
    cluster_at = arena()
    looks = 0

    def wait(seconds: float) -> None:
        nonlocal looks
        looks += seconds == LOOK_EVERY_S

    struck: list[str] = []
    nemesis = Nemesis(
        arena=cluster_at,  # type: ignore[arg-type]
        record=lambda _: None,
        tell=struck.append,
        wait=wait,
        attempted=lambda: 7 + looks,
        ended=lambda: 5 if struck else 4,
        meets=10,
    )
    nemesis.run((Step(fault=CrashBroker(LEADER), after_s=0, hold_s=0),))
    assert looks == 8, "two operations were under way, eight more had to be begun"


def test_a_fault_that_cannot_be_applied_is_recorded_with_its_error() -> None:
    """A role that no broker has is no error of the harness: the step is recorded, unconfirmed."""
    book = Book()
    (record,) = book.nemesis(arena()).run((Step(fault=KillClient("observer", SyncPoint.BEFORE_COMMIT)),))
    assert record.error == "UnresolvedTargetError: no observer is running"
    assert record.confirmed_ns is None


def test_a_futile_fault_is_refused_when_the_schedule_is_built() -> None:
    """It changes nothing, so surviving it would prove nothing."""
    with pytest.raises(FutileFaultError, match="neither latency nor rate"):
        Step(fault=DegradeSite(APP))
    with pytest.raises(FutileFaultError, match="share a site"):
        Step(fault=PartitionedZombie(site=APP, successor_site=APP))
    with pytest.raises(FutileFaultError, match="negative time"):
        Step(fault=CrashBroker(LEADER), after_s=-1)


def test_producers_wait_at_the_sync_point_until_the_fault_is_confirmed() -> None:
    """`while_held` holds every transactional producer before the fault and releases it afterwards."""
    on = arena()
    assert isinstance(on.clients, FakeClients)
    held: list[dict[int, SyncPoint]] = []
    clients = on.clients

    def tell(text: str) -> None:
        held.append(dict(clients.held))

    step = Step(fault=CrashBroker(LEADER), after_s=0, hold_s=0, while_held=SyncPoint.BEFORE_COMMIT)
    Nemesis(arena=on, record=lambda _: None, tell=tell, wait=lambda _: None).run((step,))
    assert held[0] == {0: SyncPoint.BEFORE_COMMIT, 1: SyncPoint.BEFORE_COMMIT}
    assert held[1] == {}
    assert clients.held == {}


def test_a_schedule_lasts_at_least_its_steps() -> None:
    """The least time of a schedule is the sum of its waits and holds."""
    schedule = (Step(fault=CrashBroker(LEADER), after_s=3, hold_s=5), Step(fault=PauseBroker(LEADER), hold_s=4))
    assert duration_s(schedule) == 12
    assert schedule[0].describe() == ("after 3 s: crash (SIGKILL) of the leader of billing-events-0, for 5 s")


def test_nemesis_and_judge_mean_the_same_by_fencing() -> None:
    """A zombie whose answer confirms the fault also counts for the floor, or the run could never be conclusive."""
    assert zombies.FENCING_CODES is coverage.FENCING_CODES
    assert zombies.FENCING_NAMES is coverage.FENCING_NAMES
    assert {int(ErrorCode.INVALID_PRODUCER_EPOCH), int(ErrorCode.PRODUCER_FENCED)} <= coverage.FENCING_CODES


def test_what_a_fault_felled_before_it_failed_is_put_right() -> None:
    """A fault of several parts that fails at a later one leaves links open and brokers running."""
    on = arena()
    cluster = on.cluster
    assert isinstance(cluster, FakeCluster)
    crash, felled = cluster.crash, []

    def crash_one(*brokers: BrokerId) -> None:
        felled.append(brokers[0])
        crash(brokers[0])
        raise InjectionError("the second one will not fall")

    cluster.crash = crash_one  # type: ignore[method-assign]
    book = Book()
    (record,) = book.nemesis(on).run((Step(fault=ElectUncleanly("billing-events", 0), hold_s=0),))
    assert felled, "nothing was felled"
    assert record.error == "InjectionError: the second one will not fall"
    assert isinstance(on.clients, FakeClients)
    assert healed(cluster, on.clients)
