"""The moves of a walk, and how a seed becomes a list of them.

A move says what is asked in relative terms (the epoch that the instance was told, the sequence that comes next), so that
a list still means something when some of its moves are left out. `plan` draws the moves before anything is asked, and
lets the model answer meanwhile: the same seed gives the same moves, whatever a broker answers later.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, NamedTuple

from suites.explorer.state import NO_EPOCH, REMEMBERED, Kind, Phase, Rules, State
from suites.explorer.walk import ModelAnswerer, Walk, step
from suites.protocol.generations import Generation

#: Rival instances of the transactional id; one more takes over at the end.
INSTANCES = 3
#: A walk is short enough to be read and long enough for two or three transactions.
MOVES_LEAST, MOVES_MOST = 8, 18
#: The transaction timeout of most walks, and of those in which one is waited for.
LONG_MS, SHORT_MS = 60_000, 2_000
SHORT_SHARE = 0.04
#: transaction.max.timeout.ms of brokers that were told nothing.
TIMEOUT_MOST_MS = 900_000
TRIES = 40


class Epoch(StrEnum):
    """An epoch, from what the instance was told."""

    TOLD = "told"
    STALE = "told - 1"
    FUTURE = "told + 1"
    NONE = "none"


class Sequence(StrEnum):
    """A sequence, from what the leader knows."""

    NEXT = "next"
    AGAIN = "again"
    GAP = "gap"
    LONGER = "same first, longer"
    OLD = "long ago"
    LAST = "highest"


class Send(StrEnum):
    """Whether a request is sent as it is made, kept for later, or sent again on another connection."""

    NOW = "now"
    HOLD = "hold"
    REPLAY = "replay"


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One move. `of` is the move whose bytes are sent again; `back` counts remembered batches from the newest.

    `hurried` moves do not wait until the transaction before is complete.
    """

    number: int
    kind: Kind
    who: int = 0
    epoch: Epoch = Epoch.TOLD
    foreign: bool = False
    place: int = 0
    sequence: Sequence = Sequence.NEXT
    back: int = 1
    count: int = 1
    commit: bool = True
    send: Send = Send.NOW
    of: int = -1
    hurried: bool = False

    def plain(self) -> dict[str, Any]:
        """The move as JSON."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


#: The numbers that a move may have: there are so many instances (the owner is -1), partitions and remembered batches.
_NUMBERS: Mapping[str, range] = {
    "number": range(10_000),
    "who": range(-1, INSTANCES + 1),
    "place": range(len(State().places)),
    "back": range(1, REMEMBERED + 1),
    "count": range(1, 101),
    "of": range(-1, 10_000),
}
_KINDS: Mapping[str, Callable[[Any], Any]] = {"kind": Kind, "epoch": Epoch, "sequence": Sequence, "send": Send}


def move_of(body: Mapping[str, Any]) -> Move:
    """A move from JSON; raises what a body that is none raises (TypeError, ValueError)."""
    for name, value in body.items():
        if name in _NUMBERS and (type(value) is not int or value not in _NUMBERS[name]):
            within = _NUMBERS[name]
            raise ValueError(f"{name} {value!r} is none of {within.start}..{within.stop - 1}")
        if name in ("foreign", "commit", "hurried") and not isinstance(value, bool):
            raise ValueError(f"{name} {value!r} is neither true nor false")
    move = Move(**{name: _KINDS[name](value) if name in _KINDS else value for name, value in body.items()})
    if move.kind in (Kind.LOOK, Kind.EXPIRE) and move.send is not Send.NOW:
        raise ValueError(f"a {move.kind} has no bytes to {move.send}")
    return move


class Plan(NamedTuple):
    """The moves of a seed."""

    seed: int
    generation: Generation
    timeout_ms: int
    moves: tuple[Move, ...]

    def check(self) -> None:
        """Raises ValueError for moves that are not in order, and for a timeout that no broker takes."""
        numbers = [each.number for each in self.moves]
        if numbers != sorted(set(numbers)):
            raise ValueError("the numbers of its moves do not rise")
        if not 0 < self.timeout_ms <= TIMEOUT_MOST_MS:
            raise ValueError(f"timeout_ms {self.timeout_ms} is none of 1..{TIMEOUT_MOST_MS}")


def plan(seed: int, rules: Rules) -> Plan:
    """The walk of a seed in a generation."""
    drawn = random.Random(f"{seed} {rules.generation}")
    short = drawn.random() < SHORT_SHARE
    walk, answers = Walk(rules), ModelAnswerer(rules)
    moves: list[Move] = []
    for _ in range(drawn.randint(MOVES_LEAST, MOVES_MOST)):
        moves.append(_possible(drawn, walk, moves, short=short))
        step(walk, moves[-1], answers)
    moves += epilogue(len(moves), commit=drawn.random() < 0.5, tv2=rules.tv2)
    return Plan(seed, rules.generation, SHORT_MS if short else LONG_MS, tuple(moves))


def _possible(drawn: random.Random, walk: Walk, before: list[Move], *, short: bool) -> Move:
    """A move that means something now; a look when none turns up."""
    for _ in range(TRIES):
        move = _drawn(drawn, walk, before, short=short)
        if walk.resolve(move) is not None:
            return move
    return Move(number=len(before), kind=Kind.LOOK)


#: How often each kind is drawn while a transaction is open, and while none is, by generation.
_OPEN: Mapping[Kind, float] = {
    Kind.PRODUCE: 6,
    Kind.COMMIT_OFFSET: 2,
    Kind.ADD: 2,
    Kind.ADD_OFFSETS: 1,
    Kind.END: 4,
    Kind.INIT: 2,
    Kind.LOOK: 0.7,
}
_CLOSED: Mapping[Generation, Mapping[Kind, float]] = {
    Generation.TV1: {
        **_OPEN,
        Kind.PRODUCE: 1.5,
        Kind.COMMIT_OFFSET: 1,
        Kind.ADD: 5,
        Kind.ADD_OFFSETS: 2,
        Kind.END: 1.5,
    },
    Generation.TV2: {**_OPEN, Kind.PRODUCE: 5, Kind.ADD: 0.5, Kind.ADD_OFFSETS: 0.5, Kind.END: 2},
}
_ABSENT: Mapping[Kind, float] = {Kind.INIT: 12, Kind.PRODUCE: 1, Kind.ADD: 1, Kind.END: 1, Kind.COMMIT_OFFSET: 1}
REPLAYS, HOLDS, EXPIRIES, HURRIED, FOREIGN = 2.5, 0.07, 4.0, 0.25, 0.03


def _drawn(drawn: random.Random, walk: Walk, before: list[Move], *, short: bool) -> Move:
    phase, number = walk.state.phase, len(before)
    weights = dict(_OPEN if phase is Phase.ONGOING else _CLOSED[walk.rules.generation])
    if phase is Phase.ABSENT:
        weights = dict(_ABSENT)
    if short and phase is Phase.ONGOING:
        weights[Kind.EXPIRE] = EXPIRIES
    sent = [each.number for each in before if each.number in walk.frames]
    if sent and drawn.random() < REPLAYS / (REPLAYS + sum(weights.values())):
        of = drawn.choice(sent)
        return Move(number=number, kind=before[of].kind, who=before[of].who, send=Send.REPLAY, of=of)
    kind = drawn.choices(list(weights), list(weights.values()))[0]
    owners = [who for who, epoch in enumerate(walk.told[:INSTANCES]) if epoch == walk.state.epoch != NO_EPOCH]
    who = owners[0] if owners and drawn.random() < 0.65 else drawn.randrange(INSTANCES)
    holds = kind in (Kind.PRODUCE, Kind.END, Kind.ADD, Kind.COMMIT_OFFSET) and drawn.random() < HOLDS
    return Move(
        number=number,
        kind=kind,
        who=who,
        epoch=_epoch(drawn, kind, owner=who in owners),
        foreign=drawn.random() < FOREIGN,
        place=drawn.choice((0, 0, 1)),
        sequence=drawn.choices(list(Sequence), (70, 12, 8, 5, 3, 2))[0],
        back=drawn.choice((1, 1, 2, 3, 4, 5)),
        count=drawn.choice((1, 1, 2)),
        commit=drawn.random() < 0.6,
        send=Send.HOLD if holds else Send.NOW,
        hurried=drawn.random() < HURRIED,
    )


def _epoch(drawn: random.Random, kind: Kind, *, owner: bool) -> Epoch:
    if kind is Kind.INIT:
        return drawn.choices(list(Epoch), (30, 10, 10, 50))[0]
    return drawn.choices(list(Epoch)[:3], (90, 5, 5) if owner else (80, 5, 15))[0]


def epilogue(number: int, *, commit: bool, tv2: bool) -> list[Move]:
    """The lawful end: the owner ends, an instance takes over, writes to both partitions, commits, and all is looked at.

    Who owns the id is found out when it is asked, and is instance -1 here.
    """
    successor = INSTANCES
    kinds: list[dict[str, Any]] = [
        {"kind": Kind.END, "who": -1, "commit": commit},
        {"kind": Kind.LOOK},
        {"kind": Kind.INIT, "who": successor, "epoch": Epoch.NONE},
    ]
    for place in (0, 1):
        kinds += [] if tv2 else [{"kind": Kind.ADD, "who": successor, "place": place}]
        kinds += [{"kind": Kind.PRODUCE, "who": successor, "place": place}]
    kinds += [] if tv2 else [{"kind": Kind.ADD_OFFSETS, "who": successor}]
    kinds += [
        {"kind": Kind.COMMIT_OFFSET, "who": successor},
        {"kind": Kind.END, "who": successor},
        {"kind": Kind.LOOK},
    ]
    return [Move(number=number + index, **each) for index, each in enumerate(kinds)]
