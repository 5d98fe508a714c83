"""Faults between clients and brokers: a site that is cut off, lost responses, slow links.

Both ends see a cut: connections are closed, new ones refused. The client does not see that responses are lost: requests
still arrive and are carried out. A slow link loses nothing; it tests how a client behaves under delay.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from chaos.arena import Arena
from chaos.clients import COPIER, POINTS_OF_COPIERS, PRODUCER, SyncPoint
from chaos.cluster import Link, Site
from chaos.errors import InjectionError
from chaos.faults.fault import HeldAt, Injection, names
from chaos.targets import LeaderOf, Target
from wire.values import TopicPartition

#: How long a client may take to begin its next operation: the one in flight, slow brokers included.
SYNC_S = 20.0
#: A leader under load answers within a second; without an answer in five there is nothing to compare with.
ANSWERED_WITHIN_S = 5.0
LOOK_EVERY_S = 0.2
#: The padding that measures a rate takes a quarter of a second each way, which nothing else on a healthy link does. It is
#: at most 256 kB, the size of an answer of some thousand lines.
PADDED_S = 0.25
PADDING_MAX_KB = 256
#: The quickest of three round trips counts: a single one may have met a pause of the broker.
BASELINE_TRIPS = 3


@dataclass(frozen=True, slots=True)
class CutSite:
    """Cut a client site from the brokers that have a role, or from all of them when `target` is None.

    The proof is that the site's links refuse connections while the witness listener still reaches the same brokers. So a
    cut client is not confused with a dead broker. With `held`, the site's transactional clients are held at that point
    before the cut and released after it. It then strikes them in the middle of a transaction.
    """

    site: Site
    target: Target | None = None
    held: SyncPoint | None = None

    def describe(self) -> str:
        """The fault and its target in words."""
        whom = "all brokers" if self.target is None else "the " + self.target.describe()
        when = "" if self.held is None else f" while its clients are at {self.held.value}"
        return f"site {self.site} cut from {whom}{when}"

    def futility(self) -> str | None:
        """A cut site always shows."""
        return None

    @property
    def holds(self) -> tuple[HeldAt, ...]:
        """Its point, if there is one; only copiers have offsets to send."""
        if self.held is None:
            return ()
        return ((COPIER if self.held in POINTS_OF_COPIERS else PRODUCER, self.held),)

    def inject(self, arena: Arena) -> Injection:
        """Cut site → broker."""
        brokers = arena.cluster.brokers if self.target is None else self.target.resolve(arena)
        links = tuple(Link(source=str(self.site), target=broker) for broker in brokers)
        struck = tuple(each for each in arena.clients.alive() if each.site == self.site and each.transactional_id)
        if self.held is not None:
            arena.clients.hold(self.held, processes=struck, timeout_s=SYNC_S)
        try:
            arena.cluster.links.cut(*links)
        finally:
            if self.held is not None:
                arena.clients.release(struck)

        def confirm() -> str | None:
            open_links = [str(link) for link in links if arena.cluster.accepts(link)]
            alive = set(brokers) <= arena.cluster.view().alive
            return None if open_links or not alive else f"{self.site} is refused by {names(brokers)}; they are alive"

        return Injection(
            target=f"{self.site} from {names(brokers)}",
            confirm=confirm,
            heal=lambda: arena.cluster.links.restore(*links),
            processes=tuple(each.process for each in struck),
        )


@dataclass(frozen=True, slots=True)
class LoseResponses:
    """Let a site's requests to the leader of a partition through and drop the responses.

    The site's producers are held before they send, the responses are cut off, and only then do they send. The proof is
    that the partition's high watermark rises while no response can pass. So the leader carried out requests that their
    senders must repeat. Healing closes the connections, as a real network loss ends in a reconnect.
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

    @property
    def holds(self) -> tuple[HeldAt, ...]:
        """The site's producers, before they send."""
        return ((PRODUCER, SyncPoint.BEFORE_PRODUCE),)

    def inject(self, arena: Arena) -> Injection:
        """Drop the downstream of site → leader."""
        at = arena.partition(self.topic, self.partition)
        (leader,) = LeaderOf(self.topic, self.partition).resolve(arena)
        link = Link(source=str(self.site), target=leader)
        senders = tuple(each for each in arena.clients.alive("producer") if each.site == self.site)
        arena.clients.hold(SyncPoint.BEFORE_PRODUCE, processes=senders, timeout_s=SYNC_S)
        try:
            arena.cluster.links.drop_responses(link)
            before = _known_high_watermark(arena, at)
        except BaseException:
            arena.cluster.links.restore(link)
            raise
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
            processes=tuple(each.process for each in senders),
        )


@dataclass(frozen=True, slots=True)
class DegradeSite:
    """Delay and throttle a site's links to every broker.

    The proof is a round trip of the site on each link, compared with the quickest of some before. It must be longer by
    the least delay both ways and, where a rate is given, by the time of the request's padding one way. The answer is
    padded too, which leaves room for chance.
    """

    site: Site
    latency_ms: int = 0
    jitter_ms: int = 0
    rate_kb_s: int | None = None

    def describe(self) -> str:
        """The fault and its target in words."""
        rate = "" if self.rate_kb_s is None else f", {self.rate_kb_s} kB/s"
        return f"site {self.site} degraded: {self.latency_ms} ms ± {self.jitter_ms} ms each way{rate}"

    def futility(self) -> str | None:
        """Without delay or rate nothing would be degraded, and a delay that may be zero can never be shown."""
        if self.latency_ms <= 0 and self.rate_kb_s is None:
            return "neither latency nor rate is given"
        if self.jitter_ms > 0 and self.jitter_ms >= self.latency_ms:
            return "a jitter as large as the latency leaves no delay that could be measured"
        if self.rate_kb_s is not None and self.rate_kb_s <= 0:
            return "a rate of 0 is a cut"
        return None

    @property
    def padding_kb(self) -> int:
        """The padding that measures the rate; 0 without one."""
        return 0 if self.rate_kb_s is None else min(max(math.ceil(self.rate_kb_s * PADDED_S), 1), PADDING_MAX_KB)

    @property
    def longer_ms(self) -> float:
        """The least number of milliseconds by which a round trip must be longer."""
        padded_ms = 0.0 if self.rate_kb_s is None else 1000 * self.padding_kb / self.rate_kb_s
        return 2.0 * (self.latency_ms - self.jitter_ms) + padded_ms

    def inject(self, arena: Arena) -> Injection:
        """Degrade both directions of every link of the site."""
        mesh = arena.cluster.links
        links = tuple(Link(source=str(self.site), target=broker) for broker in arena.cluster.brokers)
        before = [min(self._trip(arena, link) for _ in range(BASELINE_TRIPS)) for link in links]
        if not all(math.isfinite(each) for each in before):
            raise InjectionError(f"a broker does not answer site {self.site} before anything is degraded: {before} ms")
        try:
            for link in links:
                mesh.degrade(link, latency_ms=self.latency_ms, jitter_ms=self.jitter_ms, rate_kb_s=self.rate_kb_s)
        except BaseException:
            mesh.restore(*links)
            raise

        def confirm() -> str | None:
            slow = [self._trip(arena, link) for link in links]
            enough = all(now >= was + self.longer_ms for was, now in zip(before, slow, strict=True))
            if not enough or not all(math.isfinite(each) for each in slow):
                return None
            padding = f" with {self.padding_kb} kB each way" if self.padding_kb else ""
            return f"round trips{padding} {[round(each) for each in slow]} ms, before {[round(each) for each in before]} ms"

        return Injection(target=str(self.site), confirm=confirm, heal=lambda: mesh.restore(*links))

    def _trip(self, arena: Arena, link: Link) -> float:
        return arena.cluster.round_trip_ms(link, padding_kb=self.padding_kb)


def _high_watermark(arena: Arena, at: TopicPartition) -> int:
    return arena.cluster.positions((at,))[at].high_watermark


def _known_high_watermark(arena: Arena, at: TopicPartition) -> int:
    """The high watermark from the leader. Raises InjectionError without one: any later one would then count as a rise."""
    deadline = time.monotonic() + ANSWERED_WITHIN_S
    while (found := _high_watermark(arena, at)) < 0:
        if time.monotonic() > deadline:
            raise InjectionError(f"no leader gave the high watermark of {at} within {ANSWERED_WITHIN_S:g} s")
        time.sleep(LOOK_EVERY_S)
    return found
