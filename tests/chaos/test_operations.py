"""Operations of an upgrade prove what they did, end as errors where the cluster disobeys, and leave nothing behind."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from chaos.arena import Arena
from chaos.clients import ClientProcess
from chaos.cluster import BrokerId, Site
from chaos.errors import InjectionError, NodeLostError, UnresolvedTargetError
from chaos.nemesis import Nemesis
from chaos.operations import feature_levels
from chaos.operations.across import SpokenSecondProtocol, ZombieAcross
from chaos.operations.feature_levels import LevelChange, SetFeatureLevel
from chaos.operations.refusals import RefusedFeatureLevel, RefusedRoll
from chaos.operations.rolling import RollNext
from chaos.schedule import Step
from tests.support.fake_cluster import BROKERS, FakeAdmin, FakeClients, FakeCluster, arena
from verification.vocabulary.history import FaultRecord

OLD, NEW = "4.1.2", "4.3.1"
WORDS = "but this controller only supports versions"
SAYS = f"[2026] ERROR Tried to apply FeatureLevelRecord(featureLevel=30), {WORDS} 7-27\nmore"
APP = Site("app")


def cluster_of(on: Arena) -> FakeCluster:
    """The fake cluster of an arena."""
    assert isinstance(on.cluster, FakeCluster)
    return on.cluster


def admin_of(on: Arena) -> FakeAdmin:
    """The fake administrator of an arena."""
    assert isinstance(on.admin, FakeAdmin)
    return on.admin


def rolled(on: Arena, release: str) -> list[int]:
    """The nodes in the order in which they are rolled to a release."""
    order: list[int] = []
    while True:
        try:
            injection = RollNext(release).inject(on)
        except UnresolvedTargetError:
            return order
        assert injection.confirm() == f"node {next(iter(injection.releases))} started {release} and has joined again"
        order += list(injection.releases)


def test_dedicated_controllers_are_rolled_first_and_the_active_one_last() -> None:
    """Nodes 4 to 6 are controllers and 5 is the active one; then come the brokers by id."""
    on = arena()
    cluster_of(on).releases |= {BrokerId(node): OLD for node in (4, 5, 6)}
    cluster_of(on).active = BrokerId(5)
    assert rolled(on, NEW) == [4, 6, 5, 1, 2, 3]


def test_of_combined_nodes_the_active_controller_is_rolled_last() -> None:
    """Broker 2 is the active controller."""
    on = arena()
    cluster_of(on).active = BrokerId(2)
    assert rolled(on, NEW) == [1, 3, 2]
    assert cluster_of(on).stopped_cleanly == set(BROKERS)


def test_a_node_that_takes_no_requests_has_not_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that was killed and is back within its session was never fenced, so its answer is the proof."""
    monkeypatch.setattr(FakeCluster, "answers", lambda *_: False)
    assert RollNext(NEW, by_kill=True).inject(arena()).confirm() is None


def performed(on: Arena, *steps: Step) -> list[FaultRecord]:
    """The records of these steps, also where one of them ends the schedule."""
    records: list[FaultRecord] = []
    nemesis = Nemesis(arena=on, record=records.append, tell=lambda _: None, wait=lambda _: None)
    nemesis.run(steps)
    return records


def lost(on: Arena, *steps: Step) -> list[FaultRecord]:
    """The records of steps, one of which must end the schedule."""
    records: list[FaultRecord] = []
    nemesis = Nemesis(arena=on, record=records.append, tell=lambda _: None, wait=lambda _: None)
    with pytest.raises(NodeLostError):
        nemesis.run(steps)
    return records


def test_a_node_that_ends_by_itself_ends_the_schedule_with_its_log() -> None:
    """The node could not run the new release; no other node is stopped."""
    on = arena()
    cluster_of(on).refuses = {NEW: "fatal: no such class"}
    (record,) = lost(on, Step(fault=RollNext(NEW), hold_s=0), Step(fault=RollNext(NEW), hold_s=0))
    assert record.error == (
        "NodeLostError: node 2 ended by itself with 4.3.1. The end of its log:\nfatal: no such class"
    )
    assert record.confirmed_ns is None
    assert cluster_of(on).dead == {2}
    assert record.lost is not None
    told = (record.lost.node, record.lost.before, record.lost.release, record.lost.exit_status, record.lost.log)
    assert told == (2, OLD, NEW, 1, "fatal: no such class")


def test_a_lost_node_has_the_log_of_its_last_start() -> None:
    """A log goes on over all starts, and an error of an earlier one explains nothing."""
    on = arena()
    before = "java.net.BindException: Address already in use\nshut down"
    cluster_of(on).logs = dict.fromkeys(BROKERS, before)
    cluster_of(on).refuses = {NEW: f"{before}\nfatal: no such class"}
    (record,) = lost(on, Step(fault=RollNext(NEW), hold_s=0))
    assert record.lost is not None
    assert record.lost.log == "fatal: no such class"


def test_a_node_that_does_not_come_back_in_time_ends_the_schedule_with_its_log() -> None:
    """Its process runs, but it never joins."""
    on = arena(reacts=False)
    cluster_of(on).logs = dict.fromkeys(BROKERS, "waiting for the quorum")
    (record,) = lost(on, Step(fault=RollNext(NEW), hold_s=0, confirm_within_s=0.01))
    assert (record.error or "").endswith(
        "did not come back in time with 4.3.1. The end of its log:\nwaiting for the quorum"
    )
    assert record.lost is not None
    assert record.lost.exit_status is None
    assert cluster_of(on).dead == {record.lost.node}, "it must not come back while the evidence is taken"


def test_an_old_release_refuses_and_the_node_comes_back_with_its_own() -> None:
    """The proof has the line of the log that says why, and the release that the node runs again."""
    on = arena()
    cluster_of(on).refuses = {OLD: SAYS}
    cluster_of(on).releases = dict.fromkeys(BROKERS, NEW)
    (record,) = performed(on, Step(fault=RefusedRoll(OLD, (WORDS,)), hold_s=0))
    assert record.error is None
    assert WORDS in (record.proof or "")
    assert (record.proof or "").endswith("node 2 started 4.3.1 and has joined again")
    assert record.releases == {"2": NEW}
    assert cluster_of(on).releases == dict.fromkeys(BROKERS, NEW)
    assert not cluster_of(on).dead


def test_a_broker_that_goes_on_running_must_be_kept_out_by_the_controller() -> None:
    """Its log says so, and it is not among the brokers; then it is stopped and runs its own release again."""
    on = arena()
    cluster = cluster_of(on)
    cluster.releases = dict.fromkeys(BROKERS, NEW)
    injection = RefusedRoll(OLD, (WORDS,), kept_out=("the controller returned error",)).inject(on)
    assert injection.confirm() is None
    said = "Unable to register: the controller returned error X\n"
    cluster.paused.add(2)
    cluster.logs = {2: 2 * said}
    assert injection.confirm() is None, "it may be let in the next time"
    cluster.paused.discard(2)
    cluster.logs = {2: 3 * said}
    assert injection.confirm() is None, "it is among the brokers"
    cluster.paused.add(2)
    injection.confirm()
    assert cluster.releases[2] == NEW, "the refusal was seen"
    cluster.paused.discard(2)
    said = injection.confirm() or ""
    assert re.match(r"node 2 was kept out [0-9.]+ s after its start with 4\.1\.2: 'Unable to register", said)
    assert cluster.releases == dict.fromkeys(BROKERS, NEW)


def test_a_node_that_is_lost_after_it_refused_had_the_release_that_refused_before() -> None:
    """It was started with its own release on the data that the old one may have touched."""
    on = arena()
    cluster_of(on).refuses = {OLD: SAYS, NEW: "fatal: metadata is damaged"}
    cluster_of(on).releases = dict.fromkeys(BROKERS, NEW)
    (record,) = lost(on, Step(fault=RefusedRoll(OLD, (WORDS,)), hold_s=0))
    assert record.lost is not None
    assert (record.lost.before, record.lost.release) == (OLD, NEW)


@pytest.mark.parametrize(
    ("refuses", "error"),
    [
        ({}, "InjectionError: node 2 did not refuse 4.1.2 in time. Its log:\njoined"),
        ({OLD: "OutOfMemory"}, "InjectionError: node 2 ended with 4.1.2 for another reason:\nOutOfMemory"),
    ],
)
def test_an_old_release_that_does_not_refuse_is_an_error(refuses: dict[str, str], error: str) -> None:
    """It joined, or it ended for another reason; either way the node runs its own release in the end."""
    on = arena()
    cluster_of(on).refuses = refuses
    cluster_of(on).logs = dict.fromkeys(BROKERS, "joined")
    cluster_of(on).releases = dict.fromkeys(BROKERS, NEW)
    (record,) = performed(on, Step(fault=RefusedRoll(OLD, (WORDS,)), hold_s=0, confirm_within_s=0.01))
    assert record.error == error
    assert record.confirmed_ns is None
    assert cluster_of(on).releases == dict.fromkeys(BROKERS, NEW)
    assert not cluster_of(on).dead


def test_a_refusal_counts_only_while_the_other_brokers_serve() -> None:
    """With a second broker down there is no proof yet."""
    on = arena()
    cluster_of(on).refuses = {OLD: SAYS}
    cluster_of(on).releases = dict.fromkeys(BROKERS, NEW)
    injection = RefusedRoll(OLD, (WORDS,)).inject(on)
    cluster_of(on).dead.add(BROKERS[2])
    assert injection.confirm() is None
    cluster_of(on).dead.discard(BROKERS[2])
    assert injection.confirm() is not None


def test_a_level_is_proven_by_every_broker() -> None:
    """A level that was accepted and does not show is no proof."""
    on = arena()
    injection = SetFeatureLevel("transaction.version", 2).inject(on)
    assert injection.confirm() == "every broker answers transaction.version 2"
    assert injection.levels == {"transaction.version": 2}
    assert SetFeatureLevel("transaction.version", 0, LevelChange.SAFE_DOWNGRADE).inject(on).confirm() is not None
    admin_of(on).changes = False
    assert SetFeatureLevel("transaction.version", 1).inject(on).confirm() is None


def test_a_level_that_is_refused_is_an_error() -> None:
    """The error has code and message."""
    with pytest.raises(InjectionError, match=r"was refused: INVALID_UPDATE_VERSION \(95\): Local controller 1 only"):
        SetFeatureLevel("metadata.version", 31).inject(arena())


def test_a_controller_that_does_not_know_the_voters_yet_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It knows them after a while; one that never does refuses the level."""
    on = arena()
    admin_of(on).says = "Invalid upgrade of kraft.version because not all of the voters support it"

    def learn(_: float) -> None:
        admin_of(on).says = ""

    with monkeypatch.context() as patched:
        patched.setattr(feature_levels, "VOTERS_KNOWN_WITHIN_S", 0.0)
        with pytest.raises(InjectionError, match="not all of the voters support it"):
            SetFeatureLevel("kraft.version", 1).inject(on)
    monkeypatch.setattr(feature_levels.time, "sleep", learn)
    assert SetFeatureLevel("kraft.version", 1).inject(on).confirm() == "every broker answers kraft.version 1"


ABOVE = RefusedFeatureLevel("metadata.version", 31, LevelChange.UPGRADE, "only supports versions")


def test_a_refused_level_is_proven_by_its_words_and_by_unchanged_levels() -> None:
    """Every broker answers what it answered before."""
    on = arena()
    admin_of(on).levels = {"metadata.version": 30}
    injection = ABOVE.inject(on)
    assert (injection.confirm() or "").startswith("INVALID_UPDATE_VERSION (95): Local controller 1 only supports")
    assert injection.levels == {}
    admin_of(on).levels["group.version"] = 1
    assert injection.confirm() is None


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (replace(ABOVE, level=30), "metadata.version 30 was given, although it must be refused"),
        (replace(ABOVE, text="other words"), "was refused in other words"),
    ],
)
def test_a_level_that_is_given_or_refused_in_other_words_is_an_error(fault: RefusedFeatureLevel, error: str) -> None:
    """Both say that the brokers do otherwise than documented."""
    with pytest.raises(InjectionError, match=error):
        fault.inject(arena())


def test_a_zombie_from_before_a_flip_is_fenced_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The producer stands still with an open transaction while the level changes; its successor starts after that."""
    on = arena()
    clients = on.clients
    assert isinstance(clients, FakeClients)
    seen: list[tuple[bool, dict[str, int]]] = []
    succeed = clients.succeed

    def watched(process: ClientProcess, **rest: object) -> object:
        seen.append((process.process in clients.stopped, dict(admin_of(on).levels)))
        return succeed(process, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(clients, "succeed", watched)
    injection = ZombieAcross(SetFeatureLevel("transaction.version", 2), site=APP, successor_site=APP).inject(on)
    assert seen == [(True, {"transaction.version": 2})]
    assert (injection.confirm() or "").startswith(
        "every broker answers transaction.version 2; operation 3 was answered"
    )
    assert (injection.levels, injection.processes) == ({"transaction.version": 2}, (0,))
    assert not clients.stopped
    assert not clients.held


def test_a_zombie_is_let_go_when_the_operation_fails() -> None:
    """A level that is refused ends the step, and the producer goes on."""
    on = arena()
    assert isinstance(on.clients, FakeClients)
    with pytest.raises(InjectionError):
        ZombieAcross(SetFeatureLevel("metadata.version", 31), site=APP, successor_site=APP).inject(on)
    assert not on.clients.stopped
    assert not on.clients.held
    assert not on.clients.succeeded


@pytest.mark.parametrize(
    ("rise", "proof"), [(2, "2 of 2 producers have raised their epoch: they speak TV2"), (0, None)]
)
def test_producers_speak_the_second_protocol_when_epochs_rise(rise: int, proof: str | None) -> None:
    """Two transactions raise the epoch twice; a first-protocol producer keeps it."""
    on = arena()
    admin_of(on).epochs, admin_of(on).rise = {"r-0": 3, "r-1": 0}, rise
    assert SpokenSecondProtocol().inject(on).confirm() == proof


def _successor(on: Arena) -> None:
    assert isinstance(on.clients, FakeClients)
    on.clients.living = [replace(each, process=20 + each.process) for each in on.clients.living]


def _silence(on: Arena) -> None:
    admin_of(on).epochs = {}


@pytest.mark.parametrize("change", [_successor, _silence])
def test_an_epoch_proves_nothing_of_a_successor_or_without_an_answer(change: Callable[[Arena], None]) -> None:
    """A successor raises the epoch under either protocol."""
    on = arena()
    admin_of(on).epochs, admin_of(on).rise = {"r-0": 3}, 2
    injection = SpokenSecondProtocol().inject(on)
    change(on)
    assert injection.confirm() is None
