"""Restarts nodes on the release that they have, in the order of an upgrade: what an upgrade costs without the new release.

Also two careless ways to do it, for controls: a node is killed while its followers are behind, and all nodes at once.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field

from chaos.arena import Arena
from chaos.cluster import BrokerId, Link, Site
from chaos.faults.fault import Injection, names
from chaos.operations.rolling import NodeReturn
from chaos.targets import leader_and_followers

#: Followers fetch every 0.8 s over links with this latency. They stay in sync for 3 s (replica.lag.time.max.ms).
BEHIND_MS = 400
#: The leader acknowledges records that followers have not fetched yet; so long the link is slow before it is killed.
BEHIND_FOR_S = 1.5
#: Requests reach a node in milliseconds; for so long no answer arrives before it is killed.
UNANSWERED_FOR_S = 0.5


@dataclass(frozen=True, slots=True)
class RestartNext:
    """Restart the node that was restarted least often, the active controller last of equals.

    `restarts` counts by node; all steps of a schedule share it, so that each round restarts every node once.
    """

    restarts: Counter[BrokerId] = field(compare=False)
    by_kill: bool = False

    def describe(self) -> str:
        """The operation in words."""
        return f"restart of the next node on its own release{' by SIGKILL' if self.by_kill else ''}"

    def futility(self) -> str | None:
        """A restart always shows."""
        return None

    def inject(self, arena: Arena) -> Injection:
        """Stop the node and start it."""
        cluster = arena.cluster
        installed, controller = cluster.installed(), cluster.view().controller
        node = min(installed, key=lambda each: (self.restarts[each], each in cluster.brokers, each == controller, each))
        self.restarts[node] += 1
        (cluster.crash if self.by_kill else cluster.stop)(node)
        return _started(arena, (node,))


@dataclass(frozen=True, slots=True)
class HastyRestart:
    """Kill the leader of a partition while its followers are behind, and start it, as one does who waits for nothing.

    A leader that acknowledges alone (`acks=1`) then has records that no other broker has.
    """

    topic: str
    partition: int

    def describe(self) -> str:
        """The operation and its target in words."""
        return f"restart by SIGKILL of the leader of {self.topic}-{self.partition} while its followers are behind"

    def futility(self) -> str | None:
        """A restart always shows."""
        return None

    def inject(self, arena: Arena) -> Injection:
        """Slow the followers' links down, let the leader acknowledge alone, kill it, and start it."""
        cluster = arena.cluster
        leader, followers = leader_and_followers(arena, self.topic, self.partition)
        links = tuple(Link(source=str(follower), target=leader) for follower in followers)
        try:
            for link in links:
                cluster.links.degrade(link, latency_ms=BEHIND_MS)
            time.sleep(BEHIND_FOR_S)
            cluster.crash(leader)
        finally:
            cluster.links.restore(*links)
        return _started(arena, (leader,))


@dataclass(frozen=True, slots=True)
class RestartAllAtOnce:
    """Kill every node at once and start them again; the network goes first, so that answers to `site` are lost.

    What nodes wrote in that time was not answered, so writers send it again.
    """

    site: Site

    def describe(self) -> str:
        """The operation in words."""
        return f"restart of all nodes at once by SIGKILL, whose last answers do not reach {self.site}"

    def futility(self) -> str | None:
        """A restart always shows."""
        return None

    def inject(self, arena: Arena) -> Injection:
        """Lose responses, kill all, start all."""
        cluster = arena.cluster
        nodes = tuple(sorted(cluster.installed()))
        links = tuple(Link(source=self.site, target=broker) for broker in cluster.brokers)
        try:
            cluster.links.drop_responses(*links)
            time.sleep(UNANSWERED_FOR_S)
            cluster.crash(*nodes)
        finally:
            cluster.links.restore(*links)
        return _started(arena, nodes)


def _started(arena: Arena, nodes: tuple[BrokerId, ...]) -> Injection:
    """Start nodes that were ended; the proof is that all have joined again."""
    installed = arena.cluster.installed()
    returns = [NodeReturn.of(arena, node, before=installed[node]) for node in nodes]

    def start() -> None:
        for each in returns:
            each.start()

    start()

    def confirm() -> str | None:
        proofs = [each.joined() for each in returns]
        return "; ".join(filter(None, proofs)) if all(proofs) else None

    def late() -> None:
        for each in returns:
            if each.joined() is None:
                each.late()

    return Injection(
        target=", ".join(f"node {node}, {installed[node]}" for node in nodes) if len(nodes) == 1 else names(nodes),
        confirm=confirm,
        heal=start,
        releases={node: installed[node] for node in nodes},
        lasts=False,
        late=late,
    )
