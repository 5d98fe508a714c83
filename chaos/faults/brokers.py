"""Faults of brokers: crash, stop, pause.

A crash is SIGKILL: nothing is flushed, connections are refused at once. A stop is SIGTERM: leadership is handed over
first. A pause is SIGSTOP: connections stay open and silent, as during a long garbage collection or with a stalled disk.
All heal by bringing the same broker back on its data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from chaos.arena import Arena
from chaos.cluster import BrokerId, Cluster
from chaos.faults.fault import Injection, names
from chaos.targets import Target


@dataclass(frozen=True, slots=True)
class CrashBroker:
    """SIGKILL the brokers that have a role; heal by starting them again."""

    target: Target

    def describe(self) -> str:
        """The fault and its target in words."""
        return f"crash (SIGKILL) of the {self.target.describe()}"

    def futility(self) -> str | None:
        """A crash always shows."""
        return None

    def inject(self, arena: Arena) -> Injection:
        """Kill all of them at once, then return."""
        return _strike(arena, self.target, lambda brokers: arena.cluster.crash(*brokers), _start_again)


@dataclass(frozen=True, slots=True)
class StopBroker:
    """SIGTERM the brokers that have a role and wait for their clean exit; heal by starting them again."""

    target: Target

    def describe(self) -> str:
        """The fault and its target in words."""
        return f"clean stop (SIGTERM) of the {self.target.describe()}"

    def futility(self) -> str | None:
        """A stop always shows."""
        return None

    def inject(self, arena: Arena) -> Injection:
        """Stop all of them, then return."""
        return _strike(arena, self.target, _each(arena.cluster.stop), _start_again)


@dataclass(frozen=True, slots=True)
class PauseBroker:
    """SIGSTOP the brokers that have a role; heal by SIGCONT.

    To move a role the pause must outlive `broker.session.timeout.ms`; the proof is that the role has moved.
    """

    target: Target

    def describe(self) -> str:
        """The fault and its target in words."""
        return f"pause (SIGSTOP) of the {self.target.describe()}"

    def futility(self) -> str | None:
        """A pause shows once it outlives the broker's session."""
        return None

    def inject(self, arena: Arena) -> Injection:
        """Pause all of them, then return."""
        return _strike(arena, self.target, _each(arena.cluster.pause), _resume)


def _each(strike: Callable[[BrokerId], None]) -> Callable[[tuple[BrokerId, ...]], None]:
    def one_after_the_other(brokers: tuple[BrokerId, ...]) -> None:
        for broker in brokers:
            strike(broker)

    return one_after_the_other


def _strike(
    arena: Arena,
    target: Target,
    strike: Callable[[tuple[BrokerId, ...]], None],
    undo: Callable[[Cluster, BrokerId], None],
) -> Injection:
    brokers = target.resolve(arena)

    def heal() -> None:
        for broker in brokers:
            undo(arena.cluster, broker)

    try:
        strike(brokers)
    except BaseException:
        heal()
        raise
    return Injection(target=names(brokers), confirm=lambda: target.left(arena, brokers), heal=heal)


def _start_again(cluster: Cluster, broker: BrokerId) -> None:
    if not cluster.is_running(broker):
        cluster.start(broker)


def _resume(cluster: Cluster, broker: BrokerId) -> None:
    cluster.resume(broker)
