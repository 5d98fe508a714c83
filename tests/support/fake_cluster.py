"""A fake cluster and fake clients that only record calls, for testing faults without brokers.

The fake shows the effects that confirm a fault. A leader that is killed, paused or isolated loses its leadership at
the next look. Followers that are cut leave the in-sync set. A node of a release that `refuses` ends with those words.
A zombie's commit is fenced once it has a successor. Where a link is redirected, a client ends producer 0's
transaction at once. With `reacts` off no fault ever takes hold.
"""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from chaos.arena import Arena
from chaos.clients import ClientProcess, FailedResponse, Succession, SyncPoint
from chaos.cluster import GROUPS_TOPIC, BrokerId, ClusterView, Link, PartitionView, Plane, Position, Site
from chaos.routes import Endpoint
from tests.support.wire_definitions import definitions
from verification.vocabulary import transaction_log
from wire.errors import DeadlineError
from wire.request import Request
from wire.values import Features, Producer, TopicPartition

BILLING = TopicPartition(topic="r-billing-events", partition=0)
TRANSACTION_LOG = TopicPartition(topic=transaction_log.TOPIC, partition=0)
BROKERS = (BrokerId(1), BrokerId(2), BrokerId(3))
SITES = (Site("app"), Site("zombie"))


@cache
def silent_broker() -> socket.socket:
    """A socket that accepts connections and answers nothing; one for all tests, as long as the process lives."""
    return socket.create_server(("127.0.0.1", 0), backlog=1000)


@dataclass
class FakeMesh:
    """Remembers the links that are cut, mute, slow or redirected."""

    reacts: bool = True
    led: dict[Link, Endpoint] = field(default_factory=dict)
    cut_links: set[Link] = field(default_factory=set)
    mute: set[Link] = field(default_factory=set)
    slow: dict[Link, int] = field(default_factory=dict)
    narrow: dict[Link, int] = field(default_factory=dict)

    def links(self) -> tuple[Link, ...]:
        peers = [
            Link(source=str(i), target=j, plane=plane) for i in BROKERS for j in BROKERS if i != j for plane in Plane
        ]
        return tuple(sorted(peers + [Link(source=site, target=broker) for site in SITES for broker in BROKERS]))

    def cut(self, *links: Link) -> None:
        self.cut_links.update(links)

    def restore(self, *links: Link) -> None:
        for link in links:
            self.cut_links.discard(link)
            self.mute.discard(link)
            self.slow.pop(link, None)
            self.narrow.pop(link, None)

    def degrade(self, link: Link, *, latency_ms: int = 0, jitter_ms: int = 0, rate_kb_s: int | None = None) -> None:
        self.slow[link] = latency_ms - jitter_ms
        if rate_kb_s is not None:
            self.narrow[link] = rate_kb_s

    def drop_responses(self, *links: Link) -> None:
        self.mute.update(links)

    def destination(self, link: Link) -> Endpoint:
        host, port = silent_broker().getsockname()[:2]
        return Endpoint(host=host, port=port)

    def redirect(self, link: Link, to: Endpoint) -> None:
        self.led[link] = to
        if self.reacts:
            body = {"TransactionalId": "r-0", "ProducerId": 17, "ProducerEpoch": 0, "Committed": True}
            with socket.create_connection((to.host, to.port), timeout=20) as client:
                client.sendall(Request.of(definitions(), "EndTxn", 4, body).frame)
                client.recv(1)

    def direct(self, *links: Link) -> None:
        for link in links:
            self.led.pop(link, None)

    def heal(self) -> None:
        self.restore(*self.links())
        self.led.clear()

    def is_healed(self) -> bool:
        return not (self.cut_links or self.mute or self.slow or self.narrow or self.led)


@dataclass
class FakeCluster:
    """Three brokers; broker 1 leads everything, coordinates everything and is the controller, until it cannot.

    Partitions that are `placed` stay where they are.
    """

    reacts: bool = True
    links: FakeMesh = field(default_factory=FakeMesh)
    dead: set[BrokerId] = field(default_factory=set)
    stopped_cleanly: set[BrokerId] = field(default_factory=set)
    paused: set[BrokerId] = field(default_factory=set)
    brokers: tuple[BrokerId, ...] = BROKERS
    sites: tuple[Site, ...] = SITES
    written: int = 0
    usual_ms: float = 3.0
    unreachable: set[Link] = field(default_factory=set)
    single_replica: bool = False
    logs: dict[BrokerId, str] = field(default_factory=dict)
    refuses: dict[str, str] = field(default_factory=dict)
    active: BrokerId | None = None
    releases: dict[BrokerId, str] = field(default_factory=lambda: dict.fromkeys(BROKERS, "4.1.2"))
    placed: dict[TopicPartition, PartitionView] = field(default_factory=dict)
    loading: list[str] = field(default_factory=list)

    def crash(self, *brokers: BrokerId) -> None:
        self.dead.update(brokers)

    def stop(self, broker: BrokerId) -> None:
        self.dead.add(broker)
        self.stopped_cleanly.add(broker)

    def pause(self, broker: BrokerId) -> None:
        self.paused.add(broker)

    def resume(self, broker: BrokerId) -> None:
        self.paused.discard(broker)

    def start(self, broker: BrokerId) -> None:
        words = self.refuses.get(self.releases[broker])
        if words is None:
            self.dead.discard(broker)
        else:
            self.logs[broker] = words

    def is_running(self, broker: BrokerId) -> bool:
        return broker not in self.dead

    def exit_status(self, broker: BrokerId) -> int | None:
        return 1 if broker in self.dead else None

    def install(self, node: BrokerId, release: str) -> None:
        self.releases[node] = release

    def installed(self) -> dict[BrokerId, str]:
        return dict(self.releases)

    def reported_release(self, node: BrokerId) -> str | None:
        return self.releases[node] if self.reacts and node not in self.dead else None

    def answers(self, node: BrokerId) -> bool:
        return self.reacts and node not in self.dead

    def log_tail(self, node: BrokerId, lines_max: int = 30) -> str:
        return "\n".join(self.logs.get(node, "").splitlines()[-lines_max:])

    def _fit(self) -> list[BrokerId]:
        if not self.reacts:
            return list(BROKERS)
        isolated = {
            broker
            for broker in BROKERS
            if all(
                link in self.links.cut_links
                for link in self.links.links()
                if link.source.isdigit() and str(broker) in (link.source, str(link.target))
            )
        }
        return [each for each in BROKERS if each not in self.dead | self.paused | isolated]

    def _holder(self) -> BrokerId | None:
        return next(iter(self._fit()), None)

    def view(self) -> ClusterView:
        fit = self._fit()
        leader = fit[0] if fit else None
        cut_off = {int(link.source) for link in self.links.cut_links if link.source.isdigit() and link.target == leader}
        in_sync = tuple(each for each in fit if not (self.reacts and each in cut_off))
        replicas = BROKERS
        if self.single_replica:
            replicas, in_sync = (BROKERS[0],), tuple(each for each in fit if each == BROKERS[0])
            leader = BROKERS[0] if in_sync else None
        seen = PartitionView(leader=leader, leader_epoch=0, replicas=replicas, in_sync=in_sync)
        return ClusterView(
            taken_ns=0,
            alive=frozenset(fit),
            controller=self.active or self._holder(),
            controller_epoch=1,
            partitions={BILLING: seen} | self.placed,
        )

    def positions(self, partitions: tuple[TopicPartition, ...]) -> dict[TopicPartition, Position]:
        self.written += 10 if self.reacts else 0
        position = Position(leader=1, high_watermark=self.written, last_stable_offset=self.written)
        return dict.fromkeys(partitions, position)

    def accepts(self, link: Link) -> bool:
        return link not in self.links.cut_links

    def round_trip_ms(self, link: Link, *, padding_kb: int = 0) -> float:
        if link in self.unreachable:
            return math.inf
        rate = self.links.narrow.get(link)
        slower = 2.0 * self.links.slow.get(link, 0) + (0.0 if rate is None else 2_000 * padding_kb / rate)
        return self.usual_ms + (slower if self.reacts else 0.0)

    def transaction_coordinator(self, transactional_id: str) -> BrokerId | None:
        if TRANSACTION_LOG in self.placed:
            return self.placed[TRANSACTION_LOG].leader
        return BROKERS[1] if self.single_replica else self._holder()

    def group_coordinator(self, group: str) -> BrokerId | None:
        at = TopicPartition(topic=GROUPS_TOPIC, partition=0)
        return self.placed[at].leader if at in self.placed else self._holder()

    def loading_coordinators(self, view: ClusterView) -> list[str]:
        return list(self.loading)


@dataclass
class FakeClients:
    """One producer per site, a copier, and an instance of a pipeline; remembers the faults of each."""

    reacts: bool = True
    living: list[ClientProcess] = field(
        default_factory=lambda: [
            ClientProcess(process=0, role="producer", site=Site("app"), transactional_id="r-0"),
            ClientProcess(process=1, role="producer", site=Site("zombie"), transactional_id="r-1"),
            ClientProcess(process=2, role="copier", site=Site("app"), transactional_id="r-2"),
            ClientProcess(process=3, role="pipeline", site=Site("app"), transactional_id=None),
        ]
    )
    held: dict[int, SyncPoint] = field(default_factory=dict)
    asked_for_deciding: int = 0
    stopped: set[int] = field(default_factory=set)
    succeeded: set[int] = field(default_factory=set)
    dismissed: set[int] = field(default_factory=set)
    killed: list[int] = field(default_factory=list)

    @property
    def transactional_ids(self) -> tuple[str, ...]:
        return ("r-0", "r-1", "r-2")

    def alive(self, role: str | None = None) -> tuple[ClientProcess, ...]:
        return tuple(each for each in self.living if role in (None, each.role))

    def hold(self, point: SyncPoint, *, processes: tuple[ClientProcess, ...], timeout_s: float) -> None:
        self.held.update({each.process: point for each in processes})

    def release(self, processes: tuple[ClientProcess, ...]) -> None:
        for each in processes:
            self.held.pop(each.process, None)

    def await_deciding(self, processes: tuple[ClientProcess, ...], *, timeout_s: float) -> bool:
        self.asked_for_deciding += 1
        end_s = time.monotonic() + timeout_s
        while self.held and time.monotonic() < end_s:
            time.sleep(0.001)
        return not self.held

    def dismiss(self, processes: tuple[ClientProcess, ...]) -> None:
        self.dismissed.update(each.process for each in processes)

    def pause(self, process: ClientProcess) -> None:
        self.stopped.add(process.process)

    def resume(self, process: ClientProcess) -> None:
        self.stopped.discard(process.process)

    def kill(self, process: ClientProcess) -> None:
        self.killed.append(process.process)
        self.stopped.discard(process.process)
        self.living.remove(process)
        self.held.pop(process.process, None)

    def kill_part(self, process: ClientProcess, program: str) -> int | None:
        return process.process if program == "worker" else None

    def succeed(self, process: ClientProcess, *, site: Site, timeout_s: float, release: str = "") -> Succession:
        successor = replace(process, process=10 + process.process, site=site)
        self.living.append(successor)
        self.succeeded.add(process.process)
        return Succession(successor=successor, initialised_ns=1_000, producer_id=7, producer_epoch=2)

    def answers(self, process: ClientProcess) -> tuple[FailedResponse, ...]:
        if not self.reacts or process.process not in self.succeeded:
            return ()
        return (FailedResponse(at_ns=2_000_001_000, operation=3, code=90, name="PRODUCER_FENCED", reason="fenced"),)


@dataclass
class FakeAdmin:
    """Feature levels, the same at every broker, epochs of producers, and producer ids, each of another block.

    It raises levels up to 30, and lowers all but metadata.version, as a controller of 4.3 does. `open_in` are the topics in
    which transactions are open, each with its coordinator; the id of a transaction is that of its coordinator.
    """

    levels: dict[str, int] = field(default_factory=dict)
    epochs: dict[str, int] = field(default_factory=dict)
    rise: int = 0
    says: str = ""
    changes: bool = True
    initialised: list[str] = field(default_factory=list)
    open_in: Callable[[], list[tuple[str, int | None]]] = list

    def list_transactions(self, states: tuple[str, ...], deadline: object = None) -> dict[str, dict[str, Any]]:
        if not self.changes:
            raise DeadlineError("no coordinator")
        return {f"at-{broker}": {"Coordinator": broker} for _, broker in self.open_in()}

    def init_producer_id(self, transactional_id: str, *, deadline: None = None) -> Producer:
        if not self.changes:
            raise DeadlineError("no coordinator")
        self.initialised.append(transactional_id)
        return Producer(id=1_000 * (len(self.initialised) - 1), epoch=0)

    def features(self, broker: int) -> Features:
        return Features(finalized={name: level for name, level in self.levels.items() if level}, supported={})

    def until(self, what: str, ask: Callable[[None], Any]) -> Any:
        return ask(None)

    def call(self, api: str, body: dict[str, Any], *, broker: int | None = None, deadline: None = None) -> Any:
        (asked,) = body["FeatureUpdates"]
        name, level, lowers = asked["Feature"], asked["MaxVersionLevel"], asked["UpgradeType"] > 1
        if self.says or level > 30 or (name == "metadata.version" and lowers):
            return {"ErrorCode": 95, "ErrorMessage": self.says or "Local controller 1 only supports versions 7-30"}
        if self.changes:
            self.levels[name] = level
        return {"ErrorCode": 0, "ErrorMessage": None}

    def describe_transactions(self, ids: tuple[str, ...], deadline: object = None) -> dict[str, dict[str, Any]]:
        found = {name: {"ProducerId": 7, "ProducerEpoch": epoch} for name, epoch in self.epochs.items()}
        self.epochs = {name: epoch + self.rise for name, epoch in self.epochs.items()}
        opened = {f"at-{broker}": {"Topics": [{"Topic": topic}]} for topic, broker in self.open_in()}
        return found | {name: opened[name] for name in ids if name in opened}


class FakeDatabase:
    """A database server that runs or not."""

    def __init__(self) -> None:
        self.is_running = True

    def crash(self) -> None:
        self.is_running = False

    def start_again(self) -> None:
        self.is_running = True


def arena(*, reacts: bool = True, single_replica: bool = False) -> Arena:
    """An arena of fakes."""
    cluster = FakeCluster(reacts=reacts, links=FakeMesh(reacts=reacts), single_replica=single_replica)
    return Arena(
        cluster=cluster,
        clients=FakeClients(reacts=reacts),
        topics={"billing-events": BILLING.topic},
        group="r-copiers",
        definitions=definitions(),
        admin=FakeAdmin(open_in=lambda: [(BILLING.topic, cluster.transaction_coordinator("any"))]),  # type: ignore[arg-type]
        database=FakeDatabase(),
        peer=FakeCluster(),
    )
