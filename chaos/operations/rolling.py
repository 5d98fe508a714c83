"""Rolls nodes to another release, as an operator upgrades a cluster or rolls an upgrade back.

A node stops (SIGTERM with controlled shutdown, or SIGKILL), changes its release, and starts on its old data and addresses.
The proof is that it named the other release when it started, is unfenced and takes requests again; a dedicated controller
answers DescribeQuorum itself. The next node must wait until all replicas are in sync (`Step.once_whole`).

The order is that of Kafka's upgrade notes: dedicated controllers first, then brokers; the active controller last of its
kind, because each stop of it costs an election.

A node that ends by itself or does not come back in time ends the schedule: a cluster that lacks a node can lose no other.
That holds for every node, also for one that is not rolled at the time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from chaos.arena import Arena
from chaos.cluster import BrokerId
from chaos.errors import NodeLostError, UnresolvedTargetError
from chaos.faults.fault import Injection
from verification.vocabulary.history import LostNode

#: The reason of an end stands before the stack traces of all threads that come with it; with those it is some 100 lines.
LAST_LINES = 300
#: A node writes it once in each start.
NAMED = "Kafka version: "


@dataclass(frozen=True, slots=True)
class RollNext:
    """Roll the next node that does not run `release` yet; with `by_kill` it is killed and not stopped.

    Where there are `nodes`, only these.
    """

    release: str
    by_kill: bool = False
    nodes: tuple[int, ...] = ()

    def describe(self) -> str:
        """The operation in words."""
        return f"roll of the next node to {self.release}{' by SIGKILL' if self.by_kill else ''}"

    def futility(self) -> str | None:
        """A roll always shows."""
        return None

    def inject(self, arena: Arena) -> Injection:
        """Stop the node, change its release and start it."""
        cluster, node = arena.cluster, next_node(arena, self.release, self.nodes)
        before = cluster.installed()[node]
        (cluster.crash if self.by_kill else cluster.stop)(node)
        cluster.install(node, self.release)
        back = NodeReturn.of(arena, node, before)
        back.start()
        return Injection(
            target=f"node {node}, {before} → {self.release}",
            confirm=back.joined,
            heal=back.start,
            releases={node: self.release},
            lasts=False,
            late=back.late,
        )


@dataclass(slots=True, kw_only=True)
class NodeReturn:
    """A node that is down and has to come back with the release that it has now.

    `before` is the release that ran on its data before. `said` is the last line of its log until now.
    """

    arena: Arena
    node: BrokerId
    before: str
    release: str
    said: str
    lost: bool = False

    @classmethod
    def of(cls, arena: Arena, node: BrokerId, before: str) -> NodeReturn:
        """The return of a node that is down."""
        cluster = arena.cluster
        return cls(
            arena=arena, node=node, before=before, release=cluster.installed()[node], said=cluster.log_tail(node, 1)
        )

    def start(self) -> None:
        """Start the node, unless it runs. One that is lost stays down: what it left behind is evidence."""
        if not self.lost and not self.arena.cluster.is_running(self.node):
            self.arena.cluster.start(self.node)

    def joined(self) -> str | None:
        """A sentence that proves that the node has come back, None while it has not.

        Raises NodeLostError when its process has ended.
        """
        cluster = self.arena.cluster
        if not cluster.is_running(self.node):
            raise self._lost("ended by itself")
        if cluster.reported_release(self.node) != self.release or not cluster.answers(self.node):
            return None
        if self.node in cluster.brokers and self.node not in cluster.view().alive:
            return None
        return f"node {self.node} started {self.release} and has joined again"

    def late(self) -> None:
        """Give the node up: raise NodeLostError, and end its process, so that it does not come back meanwhile."""
        error = self._lost("did not come back in time")
        if self.arena.cluster.is_running(self.node):
            self.arena.cluster.crash(self.node)
        raise error

    def lost_later(self) -> NodeLostError:
        """The error of a node that had come back, and was seen not to run any more."""
        return self._lost("ended by itself", had_joined=True)

    def _lost(self, how: str, *, had_joined: bool = False) -> NodeLostError:
        cluster, self.lost = self.arena.cluster, True
        lines = cluster.log_tail(self.node, LAST_LINES).splitlines()
        # It names its version when it starts, early in its log.
        first = [(had_joined and NAMED in line) or line == self.said for line in lines]
        began = max((number for number, is_first in enumerate(first, start=1) if is_first), default=0)
        return NodeLostError(
            f"node {self.node} {how} with {self.release}. The end of its log:\n{cluster.log_tail(self.node)}",
            LostNode(
                node=self.node,
                before=self.before,
                release=self.release,
                at_ns=time.monotonic_ns(),
                exit_status=cluster.exit_status(self.node),
                log="\n".join(lines[began:]),
                had_joined=had_joined,
            ),
        )


def require_running(arena: Arena) -> None:
    """Raise NodeLostError for a node that is down. Asked when no step has one down."""
    for node, release in arena.cluster.installed().items():
        if not arena.cluster.is_running(node):
            back = NodeReturn(arena=arena, node=node, before=release, release=release, said="")
            raise back.lost_later()


def next_node(arena: Arena, release: str, nodes: tuple[int, ...] = ()) -> BrokerId:
    """The node to be rolled next. Raises UnresolvedTargetError when every node has the release."""
    installed = arena.cluster.installed()
    waiting = [node for node in installed if installed[node] != release and (not nodes or node in nodes)]
    if not waiting:
        raise UnresolvedTargetError(f"every node has {release} already")
    return first_of(arena, waiting)


def first_of(arena: Arena, nodes: list[BrokerId]) -> BrokerId:
    """The node that an operator stops first: a dedicated controller before a broker, the active controller last."""
    controller, brokers = arena.cluster.view().controller, arena.cluster.brokers
    return min(nodes, key=lambda node: (node in brokers, node == controller, node))
