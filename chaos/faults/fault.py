"""The Protocol of a fault: a frozen value that can be injected, proves that it took hold, and heals.

`inject` returns at once with an `Injection`. The nemesis asks it for proof until there is one or the step's bound has
passed, and heals it on every path. A proof is an observation through the witness listener. That the call of the fault
returned is no proof: a cut without any effect has tested nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from chaos.arena import Arena
from chaos.clients import SyncPoint
from wire.values import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """A fault in force. `confirm` gives a sentence as soon as there is proof; `heal` may be called more than once.

    `processes` are the clients that it strikes directly; for a pass they or their successors must work again.
    `partitions` are those that it aims at; records of other partitions prove nothing about it. An operation of an upgrade
    also says which release each node has once it is confirmed, and which feature levels are final then. An operation does
    not last: it is over once it is confirmed. `late` is called when there was no proof in time; it raises NodeLostError
    where the rest of the schedule makes no sense then. `met` is the number of records of an open transaction that it struck,
    None where nothing shows that.
    """

    target: str
    confirm: Callable[[], str | None]
    heal: Callable[[], None]
    processes: tuple[int, ...] = ()
    partitions: tuple[TopicPartition, ...] = ()
    releases: Mapping[int, str] = field(default_factory=dict)
    levels: Mapping[str, int] = field(default_factory=dict)
    lasts: bool = True
    met: int | None = None
    late: Callable[[], None] = lambda: None


class Fault(Protocol):
    """One thing that goes wrong."""

    def describe(self) -> str:
        """The fault and its target in words."""

    def futility(self) -> str | None:
        """Why this fault could never show an effect, None when it can; asked when a schedule is built."""

    def inject(self, arena: Arena) -> Injection:
        """Inject it now; raises chaos.errors and leaves nothing behind when it cannot."""


#: (role, sync point): a client of the role is held there.
HeldAt = tuple[str, SyncPoint]


@runtime_checkable
class HoldsClients(Protocol):
    """A fault that holds clients in the middle of an operation; libraries differ in where that is possible."""

    @property
    def holds(self) -> tuple[HeldAt, ...]:
        """Roles and sync points at which it holds clients."""


def names(brokers: tuple[int, ...]) -> str:
    """Brokers as shown to people: `broker 2` or `brokers 1, 3`."""
    return ("broker " if len(brokers) == 1 else "brokers ") + ", ".join(str(broker) for broker in brokers)
