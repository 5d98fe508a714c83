"""Zombies: a producer comes back after a successor has taken over its transactional id.

Every zombie fault has the same steps:

1. The zombie is held with an open transaction whose records are acknowledged.
2. Its process is stopped or its site is cut, for as long as the schedule says: longer than its transaction timeout,
   where the claim needs that.
3. A successor with the same transactional id initialises elsewhere. The coordinator aborts the open transaction and
   raises the epoch.
4. The zombie comes back and tries to commit.

The proof is that a broker answered one of its requests with a fencing error after the successor's initialisation
(KIP-98, KIP-447, KIP-588). That it came back is no proof.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from chaos.arena import Arena
from chaos.clients import PRODUCER, ClientProcess, Succession, SyncPoint
from chaos.cluster import Link, Site
from chaos.errors import UnresolvedTargetError
from chaos.faults.clients import SUCCESSION_S
from chaos.faults.fault import HeldAt, Injection
from verification.vocabulary.history import FENCING_CODES, FENCING_NAMES

#: The bound for the zombie to reach its commit: one transaction of the workload, slow brokers included.
SYNC_S = 20.0


@dataclass(frozen=True, slots=True)
class PausedZombie:
    """Stop a producer's process past its transaction timeout, let a successor take over, continue it.

    The zombie runs at `site`, its successor starts at `successor_site`. `past_s` is the transaction timeout that the pause
    must outlive. The successor does not wait for it, the zombie does.
    """

    site: Site
    successor_site: Site
    past_s: float = 0.0

    def describe(self) -> str:
        """The fault and its target in words."""
        return f"producer on {self.site} paused in a transaction, replaced by one on {self.successor_site}, resumed"

    def futility(self) -> str | None:
        """Two instances of one id always show."""
        return None

    @property
    def holds(self) -> tuple[HeldAt, ...]:
        """A producer holds before its commit, transaction open."""
        return ((PRODUCER, SyncPoint.BEFORE_COMMIT),)

    def inject(self, arena: Arena) -> Injection:
        """Hold, stop, succeed, continue, release."""
        zombie = producer_at(arena, self.site)
        arena.clients.hold(SyncPoint.BEFORE_COMMIT, processes=(zombie,), timeout_s=SYNC_S)
        arena.clients.pause(zombie)
        try:
            paused = time.monotonic()
            successor = arena.clients.succeed(zombie, site=self.successor_site, timeout_s=SUCCESSION_S)
            outlive(paused, self.past_s)
        finally:
            arena.clients.resume(zombie)
            arena.clients.release((zombie,))
        return Injection(
            target=f"process {zombie.process}",
            confirm=lambda: fenced_after(arena, zombie, successor),
            heal=lambda: None,
            processes=(zombie.process,),
        )


@dataclass(frozen=True, slots=True)
class PartitionedZombie:
    """Cut a producer's site from all brokers, let a successor take over elsewhere, restore the site.

    `past_s` is the transaction timeout that the cut must outlive. The zombie asks for its commit all that time, and not
    before its successor works: where a successor took 16 s to start, the commit had ended without an answer before the
    site was restored, and the zombie asked no broker again.
    """

    site: Site
    successor_site: Site
    past_s: float = 0.0

    def describe(self) -> str:
        """The fault and its target in words."""
        return (
            f"producer on {self.site} cut off in a transaction, replaced by one on {self.successor_site}, "
            "connected again"
        )

    def futility(self) -> str | None:
        """Cutting the successor's own site would only delay it."""
        return "zombie and successor share a site" if self.site == self.successor_site else None

    @property
    def holds(self) -> tuple[HeldAt, ...]:
        """As the paused one."""
        return ((PRODUCER, SyncPoint.BEFORE_COMMIT),)

    def inject(self, arena: Arena) -> Injection:
        """Hold, cut, succeed, let it try to commit, restore."""
        zombie = producer_at(arena, self.site)
        links = tuple(Link(source=str(self.site), target=broker) for broker in arena.cluster.brokers)
        arena.clients.hold(SyncPoint.BEFORE_COMMIT, processes=(zombie,), timeout_s=SYNC_S)
        try:
            arena.cluster.links.cut(*links)
            successor = arena.clients.succeed(zombie, site=self.successor_site, timeout_s=SUCCESSION_S)
            released = time.monotonic()
            arena.clients.release((zombie,))
            outlive(released, self.past_s)
        finally:
            arena.clients.release((zombie,))
            arena.cluster.links.restore(*links)
        return Injection(
            target=f"process {zombie.process}",
            confirm=lambda: fenced_after(arena, zombie, successor),
            heal=lambda: arena.cluster.links.restore(*links),
            processes=(zombie.process,),
        )


def outlive(since_s: float, past_s: float) -> None:
    """Sleep until `past_s` seconds after `since_s` (CLOCK_MONOTONIC): the transaction timeout is a matter of time only."""
    time.sleep(max(0.0, past_s - (time.monotonic() - since_s)))


def producer_at(arena: Arena, site: Site) -> ClientProcess:
    """The oldest transactional producer at a site."""
    for process in arena.clients.alive("producer"):
        if process.site == site and process.transactional_id is not None:
            return process
    raise UnresolvedTargetError(f"no transactional producer runs at site {site}")


def fenced_after(arena: Arena, zombie: ClientProcess, successor: Succession) -> str | None:
    """Proof that a broker fenced the zombie after the successor was initialised."""
    for answer in arena.clients.answers(zombie):
        if answer.at_ns > successor.initialised_ns and (answer.code in FENCING_CODES or answer.name in FENCING_NAMES):
            after_s = (answer.at_ns - successor.initialised_ns) / 1e9
            return (
                f"operation {answer.operation} was answered {answer.name} {after_s:.1f} s after the successor's start"
            )
    return None
