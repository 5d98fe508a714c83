"""The moves of a walk, as values.

A move names its fields in relative terms, such as the epoch that the instance was given, or the next sequence. So a list
still means something when some of its moves are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, NamedTuple

from verification.specification.state import REMEMBERED, ModelState, RequestKind
from wire.transaction_versions import TransactionVersion

#: Rival instances of the transactional id, and all its producers: the last one takes over at the end of a walk.
INSTANCES = 3
PRODUCERS = INSTANCES + 1
#: The transaction timeout of most walks, and of those that wait for it.
LONG_MS, SHORT_MS = 60_000, 2_000
#: The default of the brokers' transaction.max.timeout.ms.
TIMEOUT_MOST_MS = 900_000


class Epoch(StrEnum):
    """An epoch, relative to the one that the instance was given."""

    TOLD = "told"
    STALE = "told - 1"
    FUTURE = "told + 1"
    NONE = "none"


class SequenceChoice(StrEnum):
    """A sequence, relative to the batches that the leader remembers."""

    NEXT = "next"
    AGAIN = "again"
    GAP = "gap"
    LONGER = "same first, longer"
    OLD = "long ago"
    LAST = "highest"


class Send(StrEnum):
    """Whether a request is sent at once, kept for later, or sent again on another connection."""

    NOW = "now"
    HOLD = "hold"
    REPLAY = "replay"


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One move of instance `who`, or of the owner where that is -1.

    `of` is the move whose bytes are sent again; `back` counts remembered batches from the newest. A `hurried` move does
    not wait until the transaction before it is complete.
    """

    number: int
    kind: RequestKind
    who: int = 0
    epoch: Epoch = Epoch.TOLD
    foreign: bool = False
    place: int = 0
    sequence: SequenceChoice = SequenceChoice.NEXT
    back: int = 1
    count: int = 1
    commit: bool = True
    send: Send = Send.NOW
    of: int = -1
    hurried: bool = False

    def plain(self) -> dict[str, Any]:
        """The move as JSON."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


#: The numbers that a move may have; the owner is instance -1.
_NUMBERS: Mapping[str, range] = {
    "number": range(10_000),
    "who": range(-1, PRODUCERS),
    "place": range(len(ModelState().places)),
    "back": range(1, REMEMBERED + 1),
    "count": range(1, 101),
    "of": range(-1, 10_000),
}
_KINDS: Mapping[str, Callable[[Any], Any]] = {
    "kind": RequestKind,
    "epoch": Epoch,
    "sequence": SequenceChoice,
    "send": Send,
}


def move_of(body: Mapping[str, Any]) -> Move:
    """A move from JSON; raises TypeError or ValueError for a body that is no move."""
    for name, value in body.items():
        if name in _NUMBERS and (type(value) is not int or value not in _NUMBERS[name]):
            within = _NUMBERS[name]
            raise ValueError(f"{name} {value!r} is not in {within.start}..{within.stop - 1}")
        if name in ("foreign", "commit", "hurried") and not isinstance(value, bool):
            raise ValueError(f"{name} {value!r} is neither true nor false")
    move = Move(**{name: _KINDS[name](value) if name in _KINDS else value for name, value in body.items()})
    if move.kind in (RequestKind.LOOK, RequestKind.EXPIRE) and move.send is not Send.NOW:
        raise ValueError(f"a {move.kind} has no bytes to {move.send}")
    return move


class WalkPlan(NamedTuple):
    """The moves of a seed, their transactional requests (TV1 or TV2), and the transaction timeout."""

    seed: int
    generation: TransactionVersion
    timeout_ms: int
    moves: tuple[Move, ...]

    def check(self) -> None:
        """Raises ValueError for moves that are not in order, and for a timeout that no broker takes."""
        numbers = [each.number for each in self.moves]
        if numbers != sorted(set(numbers)):
            raise ValueError("the numbers of its moves do not increase")
        if not 0 < self.timeout_ms <= TIMEOUT_MOST_MS:
            raise ValueError(f"timeout_ms {self.timeout_ms} is not in 1..{TIMEOUT_MOST_MS}")
