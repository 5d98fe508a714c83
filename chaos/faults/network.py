"""Faults of the network between brokers: cut followers, isolated brokers.

A link is named by the side that opens the connection. Followers fetch from their leader, so cutting *follower →
leader* stops replication. Cutting leader → follower changes nothing, so no fault does it.
"""

from __future__ import annotations

from dataclasses import dataclass

from chaos.arena import Arena
from chaos.cluster import BrokerId, Link, LinkMesh
from chaos.errors import InjectionError
from chaos.faults.fault import Injection, names
from chaos.targets import Target, aimed_at, leader_and_followers, leads_alone


@dataclass(frozen=True, slots=True)
class CutFollowers:
    """Cut every follower of a partition from its leader: the in-sync set shrinks to the leader, without an election.

    The in-sync set shrinks only while records are written, so the workload must write to the partition.
    """

    topic: str
    partition: int

    def describe(self) -> str:
        """The fault and its target in words."""
        return f"all followers of {self.topic}-{self.partition} cut from their leader"

    def futility(self) -> str | None:
        """It shows as soon as something is written."""
        return None

    def inject(self, arena: Arena) -> Injection:
        """Cut follower → leader on the data plane."""
        at = arena.partition(self.topic, self.partition)
        leader, followers = leader_and_followers(arena, self.topic, self.partition)
        links = tuple(Link(source=str(follower), target=leader) for follower in followers)
        arena.cluster.links.cut(*links)

        def confirm() -> str | None:
            if not leads_alone(arena, at, leader):
                return None
            return f"in-sync replicas of {self.topic}-{self.partition} shrank to the leader {leader}, which stayed"

        return Injection(
            target=f"{names((leader,))} from followers {list(followers)}",
            confirm=confirm,
            heal=lambda: arena.cluster.links.restore(*links),
            partitions=(at,),
        )


@dataclass(frozen=True, slots=True)
class IsolateBrokers:
    """Cut the brokers that have a role from all other brokers, data and raft, in both directions.

    Clients and the witness listener still reach them: an isolated leader goes on answering clients with old metadata.
    The proof is that the role has left them and that every client site can still connect to them. With one broker of
    three this is also the minority cut from the majority. Where commands of the user cut a broker off, clients have no
    site, and the commands decide whether clients reach it.
    """

    target: Target

    def describe(self) -> str:
        """The fault and its target in words."""
        return f"the {self.target.describe()} cut from all its peers and the controllers"

    def futility(self) -> str | None:
        """An isolated broker loses its session."""
        return None

    def inject(self, arena: Arena) -> Injection:
        """Cut every link between the inside and the outside."""
        inside = self.target.resolve(arena)
        links = crossing(arena.cluster.links, inside)
        if not links:
            raise InjectionError(f"{names(inside)} cannot be isolated: no link leads to another broker")
        arena.cluster.links.cut(*links)
        ways = tuple(Link(source=str(site), target=broker) for site in arena.cluster.sites for broker in inside)

        def confirm() -> str | None:
            left = self.target.left(arena, inside)
            if left is None or not all(arena.cluster.accepts(way) for way in ways):
                return None
            return (
                f"{left}; {names(inside)} can still be reached from {', '.join(arena.cluster.sites)}" if ways else left
            )

        return Injection(
            target=names(inside),
            confirm=confirm,
            heal=lambda: arena.cluster.links.restore(*links),
            partitions=aimed_at(self.target, arena),
        )


def crossing(mesh: LinkMesh, inside: tuple[BrokerId, ...]) -> tuple[Link, ...]:
    """The broker-to-broker links, of both planes, with exactly one end inside."""
    ids = {str(broker) for broker in inside}
    return tuple(
        link for link in mesh.links() if link.source.isdigit() and (link.source in ids) != (str(link.target) in ids)
    )
