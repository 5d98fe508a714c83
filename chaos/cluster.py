"""Protocols of a cluster and its links, as faults see them.

Faults know a cluster only through these Protocols. So the same fault runs against brokers that are local processes or
containers, and unit tests run it on a fake. Leaders, in-sync replicas, controller and coordinators are observed through
the witness listener, which no fault ever cuts. An observer behind a cut link would only report that it sees nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NewType, Protocol

from chaos.routes import Endpoint
from wire.values import TopicPartition

BrokerId = NewType("BrokerId", int)
Site = NewType("Site", str)

#: ZooKeeper, where a cluster has it; no broker has this id.
ZOOKEEPER = BrokerId(0)
#: The topic whose leaders coordinate consumer groups.
GROUPS_TOPIC = "__consumer_offsets"


class Plane(StrEnum):
    """The listener that a broker-to-broker link carries."""

    DATA = "data"
    RAFT = "raft"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Link:
    """A directed path, named by the side that opens the connection.

    `source` is a broker id (as text) or a client site; `target` is the broker that accepts. Cutting a link cuts the
    connections that the source opens, in both directions of bytes. A follower fetches from its leader, so replication
    needs the link *follower → leader*.
    """

    source: str
    target: BrokerId
    plane: Plane = Plane.DATA

    def __str__(self) -> str:
        return f"{self.source}→{self.target}" + ("" if self.plane is Plane.DATA else "/raft")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView:
    """A partition as the witness listener shows it. `leader` is None when the partition has none."""

    leader: BrokerId | None
    leader_epoch: int
    replicas: tuple[BrokerId, ...]
    in_sync: tuple[BrokerId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The ends of a partition as its leader states them; both offsets are −1 when it did not answer.

    `leader` comes from the metadata, also when it does not answer: `NO_LEADER` when there is none, `UNSEEN` when the
    metadata does not know the partition.
    """

    leader: int
    high_watermark: int
    last_stable_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """One observation of the cluster's roles at `taken_ns` (CLOCK_MONOTONIC)."""

    taken_ns: int
    alive: frozenset[BrokerId]
    controller: BrokerId | None
    controller_epoch: int
    partitions: dict[TopicPartition, PartitionView]


class LinkMesh(Protocol):
    """All links of one cluster; every change is undone by `heal`."""

    def links(self) -> tuple[Link, ...]:
        """Every link that exists, sorted."""

    def cut(self, *links: Link) -> None:
        """Close the links and refuse new connections through them."""

    def restore(self, *links: Link) -> None:
        """Open exactly these links again and remove their toxics."""

    def degrade(self, link: Link, *, latency_ms: int = 0, jitter_ms: int = 0, rate_kb_s: int | None = None) -> None:
        """Delay and throttle a link in both directions."""

    def drop_responses(self, *links: Link) -> None:
        """Let requests through and drop every byte of their responses; the connection stays open."""

    def destination(self, link: Link) -> Endpoint:
        """Where a link leads when it is healed."""

    def redirect(self, link: Link, to: Endpoint) -> None:
        """Let a link lead to another address of this machine; closes its connections. Raises InjectionError."""

    def direct(self, *links: Link) -> None:
        """Let exactly these links lead to their first destinations; closes the connections of redirected ones."""

    def heal(self) -> None:
        """Open every link, remove every toxic and undo every redirection, whatever happened before."""

    def is_healed(self) -> bool:
        """Whether the proxy server itself says that every link is open, direct and free of toxics."""


class Cluster(Protocol):
    """A running cluster, as faults see it."""

    @property
    def brokers(self) -> tuple[BrokerId, ...]:
        """All brokers of the cluster, running or not."""

    @property
    def sites(self) -> tuple[Site, ...]:
        """The client sites that have a listener and links of their own."""

    @property
    def links(self) -> LinkMesh:
        """The links between all nodes and sites."""

    def crash(self, *brokers: BrokerId) -> None:
        """SIGKILL to all of them at once; returns when their processes are gone."""

    def stop(self, broker: BrokerId) -> None:
        """SIGTERM and wait for a clean exit."""

    def pause(self, broker: BrokerId) -> None:
        """SIGSTOP: connections stay open and silent."""

    def resume(self, broker: BrokerId) -> None:
        """SIGCONT."""

    def start(self, broker: BrokerId) -> None:
        """Start a broker that is not running, on its old data and its old addresses. Does not wait for it to join."""

    def is_running(self, broker: BrokerId) -> bool:
        """Whether the broker's process exists (paused counts as running)."""

    def exit_status(self, broker: BrokerId) -> int | None:
        """The exit status of a broker's last process, negative for a signal; None while it runs."""

    def install(self, node: BrokerId, release: str) -> None:
        """Let a node run another release from its next start on, on its old data and addresses.

        Raises InjectionError for a release whose programs were not prepared.
        """

    def installed(self) -> dict[BrokerId, str]:
        """The release of every node, dedicated controllers included: the one that it runs, or will run once started."""

    def reported_release(self, node: BrokerId) -> str | None:
        """The release that the node itself named last when it started; None while it has named none."""

    def answers(self, node: BrokerId) -> bool:
        """Whether a node takes requests: a broker at its witness listener, a voter of the quorum DescribeQuorum too."""

    def log_tail(self, node: BrokerId, lines_max: int = 30) -> str:
        """The last lines of a node's log."""

    def view(self) -> ClusterView:
        """Observe leaders, in-sync replicas and the active controller through the witness listener."""

    def positions(self, partitions: tuple[TopicPartition, ...]) -> dict[TopicPartition, Position]:
        """High watermark and last stable offset of each partition, from its leader."""

    def accepts(self, link: Link) -> bool:
        """Whether a connection through a client site's link is accepted right now."""

    def round_trip_ms(self, link: Link, *, padding_kb: int = 0) -> float:
        """Milliseconds from a request through a client site's link to its response; infinite when there is none.

        Both carry at least `padding_kb` more, so that the rate of a link shows.
        """

    def transaction_coordinator(self, transactional_id: str) -> BrokerId | None:
        """The coordinator of a transactional id, None while there is none."""

    def group_coordinator(self, group: str) -> BrokerId | None:
        """The coordinator of a consumer group, None while there is none."""

    def loading_coordinators(self, view: ClusterView) -> list[str]:
        """The partitions of the two internal topics whose coordinator is not ready, each with the reason."""


class DatabaseServer(Protocol):
    """The database server of a pipeline, as faults see it."""

    @property
    def is_running(self) -> bool:
        """Whether the server's process exists."""

    def crash(self) -> None:
        """SIGKILL the server; returns when it is gone. Raises InjectionError for a server that is not ours."""

    def start_again(self) -> None:
        """Start it on its data unless it runs, and wait until it answers."""
