"""Faults of clients: SIGKILL at a known point of an operation.

A client that dies between two steps of an operation is the most common cause of duplicates and of open transactions.
Which of the two it causes depends on the point. The sync points of the driver protocol make that point certain.
"""

from __future__ import annotations

from dataclasses import dataclass

from chaos.arena import Arena
from chaos.clients import ClientProcess, SyncPoint
from chaos.errors import UnresolvedTargetError
from chaos.faults.fault import HeldAt, Injection

#: One operation of a slow workload on a busy machine, rebalances included.
SYNC_S = 30.0
#: A successor of a producer waits for the abort of the old one's transaction, at worst for an election of its coordinator
#: (session 3 s); that of a copier for the dead member's session (6 s) and one rebalance. Before that its process starts:
#: where two clusters more ran on two processors, a Java client took 17 s for it, and 20 s in all were not enough.
SUCCESSION_S = 60.0


@dataclass(frozen=True, slots=True)
class KillClient:
    """Kill a client in the middle of an operation; `replaced` starts a successor when healing.

    The proof is that it was held at the point, with its work begun, when it was killed.
    """

    role: str
    at: SyncPoint
    replaced: bool = True

    def describe(self) -> str:
        """The fault and its target in words."""
        after = "succeeded by a new instance" if self.replaced else "it has no successor"
        return f"{self.role} killed (SIGKILL) at {self.at.value}; {after}"

    def futility(self) -> str | None:
        """A killed client always shows."""
        return None

    @property
    def holds(self) -> tuple[HeldAt, ...]:
        """Its point."""
        return ((self.role, self.at),)

    def inject(self, arena: Arena) -> Injection:
        """Hold one client of the role at the point and kill it there."""
        victim = oldest(arena, self.role)
        arena.clients.hold(self.at, processes=(victim,), timeout_s=SYNC_S)
        return killed(arena, victim, replaced=self.replaced, proof=f"process {victim.process} died at {self.at.value}")


def killed(arena: Arena, victim: ClientProcess, *, replaced: bool, proof: str) -> Injection:
    """Kill a client (SIGKILL); it is confirmed by `proof` when it is gone, and healed by a successor if it has one."""
    arena.clients.kill(victim)
    healed: list[ClientProcess] = []

    def heal() -> None:
        if replaced and not healed:
            healed.append(arena.clients.succeed(victim, site=victim.site, timeout_s=SUCCESSION_S).successor)

    def confirm() -> str | None:
        return proof if all(each.process != victim.process for each in arena.clients.alive()) else None

    return Injection(target=f"process {victim.process}", confirm=confirm, heal=heal, processes=(victim.process,))


def oldest(arena: Arena, role: str) -> ClientProcess:
    """The oldest running process of a role."""
    alive = arena.clients.alive(role)
    if not alive:
        raise UnresolvedTargetError(f"no {role} is running")
    return alive[0]
