"""Faults of the network: cut links, isolated brokers, isolated clients, degraded links, lost responses.

A link is named by the side that opens the connection. Followers fetch from their leader, so cutting *follower →
leader* stops replication, and cutting leader → follower changes nothing at all; such a fault is refused when the
schedule is built. A cut is visible to both ends (connections are closed, new ones refused); lost responses are not:
requests still arrive and are executed, and the client never learns of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from chaos.arena import Arena
from chaos.clients import SyncPoint
from chaos.cluster import BrokerId, Link, LinkMesh, Site, TopicPartition
from chaos.errors import InjectionError
from chaos.faults.fault import Injection, names
from chaos.targets import LeaderOf, Target

#: How long a producer may take to begin its next operation: the one in flight, slow brokers included.
SYNC_S = 20.0


@dataclass(frozen=True, slots=True)
class CutFollowers:
    """Cut every follower of a partition from its leader: the in-sync set shrinks to the leader, nobody is elected.

    A partition on which nothing is written never leaves the in-sync set, so the workload must write to it.
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
        (leader,) = LeaderOf(self.topic, self.partition).resolve(arena)
        followers = [broker for broker in arena.cluster.view().partitions[at].replicas if broker != leader]
        links = tuple(Link(source=str(follower), target=leader) for follower in followers)
        arena.cluster.links.cut(*links)

        def confirm() -> str | None:
            seen = arena.cluster.view().partitions[at]
            if seen.leader == leader and seen.in_sync == (leader,):
                return f"in-sync replicas of {self.topic}-{self.partition} shrank to the leader {leader}, which stayed"
            return None

        return Injection(
            target=f"{names((leader,))} from followers {followers}",
            confirm=confirm,
            heal=lambda: arena.cluster.links.restore(*links),
        )


@dataclass(frozen=True, slots=True)
class CutLeaderFromFollowers:
    """Leader → follower. Refused: followers open the connections that replicate, so nothing would happen."""

    topic: str
    partition: int

    def describe(self) -> str:
        """The fault and its target in words."""
        return f"leader of {self.topic}-{self.partition} cut towards its followers"

    def futility(self) -> str | None:
        """Always futile."""
        return "followers fetch from the leader; cutting the links that a leader opens to its followers changes nothing"

    def inject(self, arena: Arena) -> Injection:
        """Never reached through a schedule; raises InjectionError."""
        raise InjectionError(f"{self.describe()} has no effect on {arena.cluster.brokers}: {self.futility()}")


@dataclass(frozen=True, slots=True)
class IsolateBrokers:
    """Cut the brokers that hold a role from all other brokers, data and raft, in both directions.

    Clients and the witness still reach them: an isolated leader keeps answering those who have not heard. With one
    broker of three this is also the minority cut from the majority.
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
        return Injection(
            target=names(inside),
            confirm=lambda: self.target.left(arena, inside),
            heal=lambda: arena.cluster.links.restore(*links),
        )


@dataclass(frozen=True, slots=True)
class CutSite:
    """Cut a client site from the brokers that hold a role, or from all of them when `target` is None.

    The proof is that the site's links refuse connections while the witness still reaches the same brokers, which
    separates the client's blindness from the broker's death.
    """

    site: Site
    target: Target | None = None

    def describe(self) -> str:
        """The fault and its target in words."""
        return f"site {self.site} cut from {'all brokers' if self.target is None else 'the ' + self.target.describe()}"

    def futility(self) -> str | None:
        """A cut site always shows."""
        return None

    def inject(self, arena: Arena) -> Injection:
        """Cut site → broker."""
        brokers = arena.cluster.brokers if self.target is None else self.target.resolve(arena)
        links = tuple(Link(source=str(self.site), target=broker) for broker in brokers)
        arena.cluster.links.cut(*links)

        def confirm() -> str | None:
            open_links = [str(link) for link in links if arena.cluster.accepts(link)]
            alive = set(brokers) <= arena.cluster.view().alive
            return None if open_links or not alive else f"{self.site} is refused by {names(brokers)}; they are alive"

        return Injection(
            target=f"{self.site} from {names(brokers)}",
            confirm=confirm,
            heal=lambda: arena.cluster.links.restore(*links),
        )


@dataclass(frozen=True, slots=True)
class LoseResponses:
    """Let a site's requests to the leader of a partition through and swallow the responses.

    The site's producers are held before they send, the responses are cut off, and only then do they send. The proof is
    that the partition's high watermark rises while no response can pass: requests were executed whose senders will have
    to ask again. Healing closes the connections, as a real network loss ends in a reconnect.
    """

    site: Site
    topic: str
    partition: int

    def describe(self) -> str:
        """The fault and its target in words."""
        return f"responses of the leader of {self.topic}-{self.partition} to site {self.site} lost"

    def futility(self) -> str | None:
        """It shows once something is written."""
        return None

    def inject(self, arena: Arena) -> Injection:
        """Swallow the downstream of site → leader."""
        at = arena.partition(self.topic, self.partition)
        (leader,) = LeaderOf(self.topic, self.partition).resolve(arena)
        link = Link(source=str(self.site), target=leader)
        senders = tuple(each for each in arena.clients.alive("producer") if each.site == self.site)
        arena.clients.hold(SyncPoint.BEFORE_PRODUCE, processes=senders, timeout_s=SYNC_S)
        try:
            arena.cluster.links.drop_responses(link)
            before = _high_watermark(arena, at)
        finally:
            arena.clients.release(senders)

        def confirm() -> str | None:
            now = _high_watermark(arena, at)
            if now <= before:
                return None
            return f"high watermark of {self.topic}-{self.partition} rose {before} → {now} without a response"

        return Injection(
            target=f"{self.site} from {names((leader,))}",
            confirm=confirm,
            heal=lambda: arena.cluster.links.restore(link),
        )


@dataclass(frozen=True, slots=True)
class DegradeSite:
    """Delay and throttle a site's links to every broker. The proof is the round trip as the site would see it."""

    site: Site
    latency_ms: int = 0
    jitter_ms: int = 0
    rate_kb_s: int | None = None

    def describe(self) -> str:
        """The fault and its target in words."""
        rate = "" if self.rate_kb_s is None else f", {self.rate_kb_s} kB/s"
        return f"site {self.site} degraded: {self.latency_ms} ms ± {self.jitter_ms} ms each way{rate}"

    def futility(self) -> str | None:
        """Without delay or limit nothing would be degraded."""
        if self.latency_ms <= 0 and self.rate_kb_s is None:
            return "neither latency nor rate is given"
        return None

    def inject(self, arena: Arena) -> Injection:
        """Degrade both directions of every link of the site."""
        mesh = arena.cluster.links
        links = tuple(Link(source=str(self.site), target=broker) for broker in arena.cluster.brokers)
        try:
            for link in links:
                mesh.degrade(link, latency_ms=self.latency_ms, jitter_ms=self.jitter_ms, rate_kb_s=self.rate_kb_s)
        except BaseException:
            mesh.restore(*links)
            raise

        def confirm() -> str | None:
            slow = [arena.cluster.round_trip_ms(link) for link in links]
            floor_ms = max(2 * self.latency_ms - 2 * self.jitter_ms, 0)
            return f"round trips {[round(each) for each in slow]} ms" if min(slow) >= floor_ms else None

        return Injection(target=str(self.site), confirm=confirm, heal=lambda: mesh.restore(*links))


def crossing(mesh: LinkMesh, inside: tuple[BrokerId, ...]) -> tuple[Link, ...]:
    """The broker-to-broker links, of both planes, with exactly one end inside."""
    ids = {str(broker) for broker in inside}
    return tuple(
        link for link in mesh.links() if link.source.isdigit() and (link.source in ids) != (str(link.target) in ids)
    )


def _high_watermark(arena: Arena, at: TopicPartition) -> int:
    return arena.cluster.positions((at,))[at].high_watermark
