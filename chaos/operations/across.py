"""Clients across an operation: a zombie from before it comes back after it; producers speak what it brought.

A zombie is a producer that stands still, as `chaos.faults.zombies` explains. Here it stops before an operation of the
cluster, with an open transaction, and its successor starts after it. The zombie began under the old feature levels and
asks for its commit under the new ones, and it must still be fenced.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from chaos.arena import Arena, admin_of
from chaos.clients import PRODUCER, SyncPoint
from chaos.cluster import Site
from chaos.errors import InjectionError
from chaos.faults.clients import SUCCESSION_S
from chaos.faults.fault import Fault, HeldAt, HoldsClients, Injection
from chaos.faults.zombies import SYNC_S, fenced_after, producer_at
from wire.errors import WireError

#: An operation on a feature level shows at every broker within milliseconds; this is for a machine in distress.
SHOWS_WITHIN_S = 20.0
LOOK_EVERY_S = 0.1
#: A producer also raises its epoch once when it recovers from an error (KIP-360).
RISES = 2


@dataclass(frozen=True, slots=True)
class ZombieAcross:
    """Pause a producer with an open transaction, perform an operation, let a successor take over, continue the zombie."""

    operation: Fault
    site: Site
    successor_site: Site

    def describe(self) -> str:
        """The operation and its zombie in words."""
        return (
            f"{self.operation.describe()}, across which a producer at {self.site} is paused, then succeeded and resumed"
        )

    def futility(self) -> str | None:
        """That of the operation."""
        return self.operation.futility()

    @property
    def holds(self) -> tuple[HeldAt, ...]:
        """The zombie, and the clients that the operation holds."""
        inner = self.operation.holds if isinstance(self.operation, HoldsClients) else ()
        return ((PRODUCER, SyncPoint.BEFORE_COMMIT), *inner)

    def inject(self, arena: Arena) -> Injection:
        """Hold, stop, operate, succeed, continue, release."""
        zombie = producer_at(arena, self.site)
        arena.clients.hold(SyncPoint.BEFORE_COMMIT, processes=(zombie,), timeout_s=SYNC_S)
        arena.clients.pause(zombie)
        try:
            done = self.operation.inject(arena)
            proof = self._shown(done)
            successor = arena.clients.succeed(zombie, site=self.successor_site, timeout_s=SUCCESSION_S)
        finally:
            arena.clients.resume(zombie)
            arena.clients.release((zombie,))

        def confirm() -> str | None:
            fenced = fenced_after(arena, zombie, successor)
            return None if fenced is None else f"{proof}; {fenced}"

        return Injection(
            target=f"{done.target}, process {zombie.process}",
            confirm=confirm,
            heal=done.heal,
            processes=(zombie.process,),
            releases=done.releases,
            levels=done.levels,
            lasts=False,
        )

    def _shown(self, done: Injection) -> str:
        began = time.monotonic()
        while (proof := done.confirm()) is None:
            if time.monotonic() - began > SHOWS_WITHIN_S:
                raise InjectionError(f"{self.operation.describe()} did not show within {SHOWS_WITHIN_S:g} s")
            time.sleep(LOOK_EVERY_S)
        return proof


@dataclass(frozen=True, slots=True)
class SpokenSecondProtocol:
    """Wait until producers raise their epoch with each transaction, as only those do that speak TV2 (KIP-890).

    A live producer learns of transaction.version 2 only from a new connection, and some libraries never speak TV2. Without
    this proof a run at level 2 may have tried nothing but the first protocol.
    """

    def describe(self) -> str:
        """The observation in words."""
        return "look for producers that raise their epoch with each transaction"

    def futility(self) -> str | None:
        """An epoch that rises always shows."""
        return None

    def inject(self, arena: Arena) -> Injection:
        """Ask the coordinators for the epochs now; `confirm` looks for ids whose process and producer id stayed."""
        before, processes = epochs(arena), living(arena)
        if not before:
            raise InjectionError("no coordinator says which epochs producers have")

        def confirm() -> str | None:
            now, same = epochs(arena), living(arena)
            risen = [
                name
                for name, (producer, epoch) in now.items()
                if name in before
                and before[name][0] == producer
                and epoch >= before[name][1] + RISES
                and processes.get(name) == same.get(name)
            ]
            return f"{len(risen)} of {len(now)} producers have raised their epoch: they speak TV2" if risen else None

        return Injection(target="transactional producers", confirm=confirm, heal=lambda: None, lasts=False)


def epochs(arena: Arena) -> Mapping[str, tuple[int, int]]:
    """The producer id and epoch of every transactional id, as its coordinator knows them; empty when one is silent."""
    try:
        found = admin_of(arena).describe_transactions(arena.clients.transactional_ids)
    except WireError:
        return {}
    return {name: (int(state["ProducerId"]), int(state["ProducerEpoch"])) for name, state in found.items()}


def living(arena: Arena) -> Mapping[str, int]:
    """The process that uses each transactional id; the newest of several."""
    return {each.transactional_id: each.process for each in arena.clients.alive() if each.transactional_id is not None}
