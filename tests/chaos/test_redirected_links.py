"""Links of a real Toxiproxy server that lead through frame-aware links, and the fault that leads them there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
import requests

from chaos.arena import Arena
from chaos.clients import ClientProcess, SyncPoint
from chaos.cluster import BrokerId, Link, Site
from chaos.errors import FutileFaultError, InjectionError, LinkError, UnresolvedTargetError
from chaos.faults import late_duplicate
from chaos.faults.fault import Injection
from chaos.faults.frames import TamperFrames
from chaos.faults.late_duplicate import LateDuplicate
from chaos.frames import Delay, Duplicate, FrameFilter, FrameLinks, Hold, Respond
from chaos.link_targets import BetweenBrokers, FromSite
from chaos.links import ToxiproxyMesh
from chaos.routes import Endpoint, Route
from chaos.schedule import Step
from chaos.targets import AllBrokers, Controller, LeaderOf, TransactionCoordinatorOf
from fixtures.clusters.network.toxiproxy_server import start_toxiproxy
from fixtures.processes.keeper import Keeper
from fixtures.tools.toxiproxy_build import fetch_toxiproxy
from tests.chaos.test_links import PATIENCE_S, ended, free_endpoint, refuses
from tests.support.fake_cluster import FakeCluster, arena
from tests.support.servers.frame_broker import FrameBroker, client, end_txn, frame_broker, heartbeat, produce
from tests.support.wire_definitions import definitions
from wire.deadline import Deadline
from wire.errors import DeadlineError, DisconnectedError
from wire.values import TopicPartition

SITE = Link(source="app", target=BrokerId(1))
PEER = Link(source="2", target=BrokerId(1))
LEADER = LeaderOf("billing-events", 0)


@pytest.fixture(scope="module")
def keeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keeper]:
    with Keeper(tmp_path_factory.mktemp("ledgers")) as kept:
        yield kept


@pytest.fixture(scope="module")
def broker() -> Iterator[FrameBroker]:
    with frame_broker() as broker:
        yield broker


@pytest.fixture(scope="module")
def shared(keeper: Keeper, broker: FrameBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToxiproxyMesh]:
    api = free_endpoint()
    start_toxiproxy(keeper, fetch_toxiproxy(), api, tmp_path_factory.mktemp("toxiproxy"))
    routes = {link: Route(listen=free_endpoint(), upstream=broker.at) for link in (SITE, PEER)}
    with closing(ToxiproxyMesh(api, routes)) as mesh:
        mesh.create()
        yield mesh


@pytest.fixture
def mesh(shared: ToxiproxyMesh, broker: FrameBroker) -> Iterator[ToxiproxyMesh]:
    broker.received.clear()
    yield shared
    shared.heal()


@pytest.fixture
def links(mesh: ToxiproxyMesh) -> Iterator[FrameLinks]:
    with FrameLinks(definitions()) as links:
        yield links


def code(mesh: ToxiproxyMesh, link: Link = SITE) -> int:
    """The code that a new connection through a link gets for the end of its transaction."""
    with client(mesh.routes[link].listen) as one:
        told = one.receive(one.send(end_txn()))["ErrorCode"]
        assert isinstance(told, int)
        return told


def led(mesh: ToxiproxyMesh, links: FrameLinks) -> None:
    """Lead the site's link through a frame-aware one that answers 51."""
    at = links.open(str(SITE), mesh.destination(SITE))
    links.add(FrameFilter(api="EndTxn"), Respond(error_code=51))
    mesh.redirect(SITE, at)


def test_a_redirected_link_leads_elsewhere_until_it_is_direct(mesh: ToxiproxyMesh, links: FrameLinks) -> None:
    """Earlier connections end, the other link is left alone, and the mesh is not healed in between."""
    with client(mesh.routes[SITE].listen) as old:
        old.receive(old.send(heartbeat()))
        led(mesh, links)
        assert ended(old._socket)
    assert (code(mesh), code(mesh, PEER)) == (51, 0)
    assert not mesh.is_healed()
    mesh.direct(SITE, PEER)
    mesh.direct(SITE)
    assert code(mesh) == 0
    assert mesh.is_healed()


def test_cutting_and_degrading_a_redirected_link_leaves_it_redirected(mesh: ToxiproxyMesh, links: FrameLinks) -> None:
    """The link is cut and slow as any other; restoring it opens it, and it still leads elsewhere."""
    led(mesh, links)
    mesh.cut(SITE)
    assert refuses(mesh, SITE)
    mesh.restore(SITE)
    mesh.degrade(SITE, latency_ms=100)
    began = time.monotonic()
    assert code(mesh) == 51
    assert time.monotonic() - began >= 0.2
    mesh.restore(SITE)
    assert code(mesh) == 51
    assert not mesh.is_healed()


def test_a_cut_link_stays_cut_when_it_is_led_back(mesh: ToxiproxyMesh, links: FrameLinks) -> None:
    """Two faults on one link heal independently of each other."""
    led(mesh, links)
    mesh.cut(SITE)
    mesh.direct(SITE)
    assert refuses(mesh, SITE)
    mesh.restore(SITE)
    assert mesh.is_healed()


def test_healing_leads_every_link_back_whatever_happened(mesh: ToxiproxyMesh, links: FrameLinks) -> None:
    """Redirected, cut and slow, and its frame-aware link already gone."""
    led(mesh, links)
    mesh.degrade(SITE, latency_ms=5)
    mesh.cut(SITE)
    links.close()
    mesh.heal()
    assert mesh.is_healed()
    assert code(mesh) == 0


def test_healing_brings_back_a_redirected_link_that_the_server_lost(mesh: ToxiproxyMesh, links: FrameLinks) -> None:
    """It is made again and leads to its first destination."""
    led(mesh, links)
    requests.delete(f"http://{mesh.api}/proxies/data-app-1", timeout=PATIENCE_S).raise_for_status()
    with pytest.raises(LinkError, match="lost app→1"):
        mesh.direct(SITE)
    mesh.heal()
    assert code(mesh) == 0


def test_redirections_that_cannot_be_are_refused(mesh: ToxiproxyMesh, links: FrameLinks) -> None:
    """A second redirection of a link, one of an unknown link, and one with a Toxiproxy server in a container."""
    led(mesh, links)
    with pytest.raises(LinkError, match=r"redirected to .* already"):
        mesh.redirect(SITE, free_endpoint())
    with pytest.raises(LinkError, match="no link 9→2"):
        mesh.redirect(Link(source="9", target=BrokerId(2)), free_endpoint())
    for host in ("172.18.0.3", "broker-1"):
        route = Route(listen=free_endpoint(), upstream=Endpoint(host=host, port=9092))
        contained = ToxiproxyMesh(mesh.api, {SITE: route})
        with closing(contained), pytest.raises(InjectionError, match=r"in a container.*local runtime"):
            contained.redirect(SITE, free_endpoint())
    assert code(mesh) == 51


class RealLinks:
    """The fake cluster's roles, all of which broker 1 has, on a real mesh."""

    def __init__(self, mesh: ToxiproxyMesh) -> None:
        self.links, self._roles = mesh, FakeCluster(reacts=False)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._roles, name)


def on_real_links(mesh: ToxiproxyMesh) -> Arena:
    """The fake arena, whose links are real."""
    return replace(arena(), cluster=RealLinks(mesh))


def proven(injection: Injection) -> str:
    """The fault's proof, as soon as there is one."""
    began = time.monotonic()
    while (proof := injection.confirm()) is None:
        assert time.monotonic() - began < PATIENCE_S, "no proof"
        time.sleep(0.01)
    return proof


def test_a_held_request_arrives_after_its_retry(mesh: ToxiproxyMesh, broker: FrameBroker) -> None:
    """Through Toxiproxy and frame-aware link: the client gives up and retries; healing releases the first attempt."""
    first, retry, other = end_txn("r-0"), end_txn("r-0"), end_txn("r-1")
    fault = TamperFrames(
        on=FromSite(Site("app"), LEADER), frames=FrameFilter(api="EndTxn", count=1), producer=0, action=Hold()
    )
    assert fault.describe() == "EndTxn requests at most 1 of producer 0 held, site app → leader of billing-events-0"
    injection = fault.inject(on_real_links(mesh))
    assert injection.target == "app→1"
    assert injection.confirm() is None
    with client(mesh.routes[SITE].listen) as one:
        one.receive(one.send(other))
        pending = one.send(first)
        assert proven(injection).startswith("held 1 EndTxn v4 request on app→1, the first ")
        with pytest.raises(DeadlineError):
            one.receive(pending, Deadline.after(0.1))
    with client(mesh.routes[SITE].listen) as two:
        two.receive(two.send(retry))
    injection.heal()
    assert broker.await_frames(3) == [other.frame, retry.frame, first.frame]
    assert mesh.is_healed()
    injection.heal()


def test_a_duplicate_is_proven_by_the_answer_to_its_copy(mesh: ToxiproxyMesh, broker: FrameBroker) -> None:
    """A copy without an answer proves nothing; the codes of the answer are in the proof."""
    fault = TamperFrames(
        on=BetweenBrokers(AllBrokers(), LEADER),
        frames=FrameFilter(partition=TopicPartition(topic="billing-events", partition=3)),
        action=Duplicate(after_s=0.1),
    )
    injection = fault.inject(on_real_links(mesh))
    assert injection.target == "2→1"
    with client(mesh.routes[PEER].listen) as one:
        asked = produce(12, {"Name": "r-billing-events"})
        one.receive(one.send(asked))
        said = proven(injection)
    assert said.startswith("duplicated 1 Produce v12 request on 2→1")
    assert "a copy was answered: error codes (" in said
    assert broker.frames == [asked.frame] * 2
    injection.heal()


def test_a_late_duplicate_arrives_in_the_next_transaction(mesh: ToxiproxyMesh, broker: FrameBroker) -> None:
    """The held request is released only while its producer waits before it writes again; the answer is the proof."""
    on = on_real_links(mesh)
    batch = {"Index": 2, "ErrorCode": 0, "BaseOffset": 41}
    broker.says["Produce"] = {"Responses": [{"Name": "r-billing-events", "PartitionResponses": [batch]}]}
    fault = LateDuplicate(on=FromSite(Site("app"), LEADER))
    assert fault.describe() == (
        "a request of producer 0 held until its next transaction, site app → leader of billing-events-0"
    )
    injection = fault.inject(on)
    assert injection.target == "r-0"
    assert injection.confirm() is None
    first = produce(11, {"Name": "r-billing-events"}, transactional_id="r-0")
    with client(mesh.routes[SITE].listen) as given_up:
        given_up.send(first)
        waiting: list[int] = []
        hold = on.clients.hold

        def held(point: SyncPoint, *, processes: tuple[ClientProcess, ...], timeout_s: float) -> None:
            waiting.append(len(broker.received))
            hold(point, processes=processes, timeout_s=timeout_s)

        on.clients.hold = held  # type: ignore[method-assign]
        said = proven(injection)
    assert waiting == [0]
    assert "held 1 Produce v11 request on app→1" in said
    assert said.endswith("was answered: error codes (0,), base offset 41 on r-billing-events-2")
    assert broker.frames == [first.frame]
    assert on.clients.held == {}  # type: ignore[attr-defined]
    injection.heal()
    assert mesh.is_healed()


def test_a_late_duplicate_needs_a_transactional_producer(mesh: ToxiproxyMesh, monkeypatch: pytest.MonkeyPatch) -> None:
    """A producer that does not run cannot be aimed at, and one before the first is refused when the schedule is built."""
    monkeypatch.setattr(late_duplicate, "SUCCEEDED_WITHIN_S", 0.2)
    with pytest.raises(UnresolvedTargetError, match="no transactional producer 7; 2 are running"):
        LateDuplicate(on=FromSite(Site("app")), producer=7).inject(on_real_links(mesh))
    with pytest.raises(FutileFaultError, match="no producer -1"):
        Step(fault=LateDuplicate(on=FromSite(Site("app")), producer=-1))
    assert mesh.is_healed()


def test_a_fault_that_cannot_be_applied_leaves_nothing(mesh: ToxiproxyMesh) -> None:
    """No broker with the role, no definitions, a link that is redirected already: an error, and the mesh is healed."""
    on, frames = on_real_links(mesh), FrameFilter(api="EndTxn")
    both = BetweenBrokers(Controller(), TransactionCoordinatorOf(0))
    with pytest.raises(UnresolvedTargetError, match="one broker may have both roles now"):
        TamperFrames(on=both, frames=frames, action=Hold()).inject(on)
    fault = TamperFrames(on=FromSite(Site("app")), frames=frames, action=Hold())
    with pytest.raises(InjectionError, match="no message definitions"):
        fault.inject(replace(on, definitions=None))
    with pytest.raises(UnresolvedTargetError, match="no transactional producer 9; there are 3"):
        replace(fault, producer=9).inject(on)
    first = fault.inject(on)
    with pytest.raises(LinkError, match="already"):
        fault.inject(on)
    first.heal()
    assert mesh.is_healed()
    with pytest.raises(DisconnectedError), client(free_endpoint()) as unanswered:
        unanswered.send(heartbeat())


def test_futile_tampering_is_refused_when_the_schedule_is_built() -> None:
    """A selector or action that can do nothing, or two for the same id."""
    site = FromSite(Site("app"))
    for frames, action, producer, message in (
        (FrameFilter(count=0), Hold(), None, "selects no frame"),
        (FrameFilter(), Delay(delay_s=-1), None, "a delay of -1 s"),
        (FrameFilter(transactional_id="x"), Hold(), 0, "one of them is enough"),
    ):
        with pytest.raises(FutileFaultError, match=message):
            Step(fault=TamperFrames(on=site, frames=frames, action=action, producer=producer))
