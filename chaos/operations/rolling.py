"""Rolls nodes to another release, as an operator upgrades a cluster or rolls an upgrade back.

A node stops (SIGTERM with controlled shutdown, or SIGKILL), changes its release, and starts on its old data and addresses.
The proof is that it named the other release when it started, is unfenced and takes requests again; a dedicated controller
answers DescribeQuorum itself. The next node must wait until all replicas are in sync (`Step.once_whole`).

The order is that of Kafka's upgrade notes: dedicated controllers first, then brokers; the active controller last of its
kind, because each stop of it costs an election.

A node that ends by itself or does not come back in time ends the schedule: a cluster that lacks a node can lose no other.
"""

from __future__ import annotations

from dataclasses import dataclass

from chaos.arena import Arena
from chaos.cluster import BrokerId
from chaos.errors import NodeLostError, UnresolvedTargetError
from chaos.faults.fault import Injection


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

        def start() -> None:
            if not cluster.is_running(node):
                cluster.start(node)

        cluster.install(node, self.release)
        start()
        return Injection(
            target=f"node {node}, {before} → {self.release}",
            confirm=lambda: joined(arena, node, self.release),
            heal=start,
            releases={node: self.release},
            lasts=False,
            late=lambda: lose(arena, node, self.release),
        )


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


def joined(arena: Arena, node: BrokerId, release: str) -> str | None:
    """A sentence that proves that a node has come back with a release, None while it has not.

    Raises NodeLostError when its process has ended.
    """
    cluster = arena.cluster
    if not cluster.is_running(node):
        lose(arena, node, release, how="ended by itself")
    if cluster.reported_release(node) != release or not cluster.answers(node):
        return None
    if node in cluster.brokers and node not in cluster.view().alive:
        return None
    return f"node {node} started {release} and has joined again"


def lose(arena: Arena, node: BrokerId, release: str, *, how: str = "did not come back in time") -> None:
    """Raise NodeLostError with the end of the node's log."""
    raise NodeLostError(f"node {node} {how} with {release}. The end of its log:\n{arena.cluster.log_tail(node)}")
