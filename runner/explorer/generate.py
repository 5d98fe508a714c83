"""Generates the moves of a walk from a seed; the weights say how often each kind of move is drawn.

All moves are drawn before a broker is asked. Meanwhile the model answers them, so that the same seed always gives the
same moves, whatever a broker answers later.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from runner.explorer.moves import INSTANCES, LONG_MS, SHORT_MS, Epoch, Move, Send, SequenceChoice, WalkPlan
from runner.explorer.walk import ModelBroker, Walk, step
from verification.specification.state import NO_EPOCH, RequestKind, Rules, TransactionPhase
from wire.transaction_versions import TransactionVersion

#: Moves of a walk: few enough to be read, and enough for two or three transactions.
MOVES_LEAST, MOVES_MOST = 8, 18
#: The share of walks in which a transaction timeout is waited for.
SHORT_SHARE = 0.04
#: The most moves that are drawn for one that means something in the current state.
TRIES = 40


def plan(seed: int, rules: Rules) -> WalkPlan:
    """The moves of a seed, for the version of transactional requests that the rules name."""
    drawn = random.Random(f"{seed} {rules.generation}")
    short = drawn.random() < SHORT_SHARE
    walk, answers = Walk(rules), ModelBroker(rules)
    moves: list[Move] = []
    for _ in range(drawn.randint(MOVES_LEAST, MOVES_MOST)):
        moves.append(_possible(drawn, walk, moves, short=short))
        step(walk, moves[-1], answers)
    moves += epilogue(len(moves), commit=drawn.random() < 0.5, tv2=rules.tv2)
    return WalkPlan(seed, rules.generation, SHORT_MS if short else LONG_MS, tuple(moves))


def _possible(drawn: random.Random, walk: Walk, before: list[Move], *, short: bool) -> Move:
    """A move that means something in the current state; a look when none is drawn."""
    for _ in range(TRIES):
        move = _drawn(drawn, walk, before, short=short)
        if walk.resolve(move) is not None:
            return move
    return Move(number=len(before), kind=RequestKind.LOOK)


#: How often each kind is drawn: while a transaction is open, while none is, and before the id is initialised.
_OPEN: Mapping[RequestKind, float] = {
    RequestKind.PRODUCE: 6,
    RequestKind.COMMIT_OFFSET: 2,
    RequestKind.ADD: 2,
    RequestKind.ADD_OFFSETS: 1,
    RequestKind.END: 4,
    RequestKind.INIT: 2,
    RequestKind.LOOK: 0.7,
}
_CLOSED: Mapping[TransactionVersion, Mapping[RequestKind, float]] = {
    TransactionVersion.TV1: {
        **_OPEN,
        RequestKind.PRODUCE: 1.5,
        RequestKind.COMMIT_OFFSET: 1,
        RequestKind.ADD: 5,
        RequestKind.ADD_OFFSETS: 2,
        RequestKind.END: 1.5,
    },
    TransactionVersion.TV2: {
        **_OPEN,
        RequestKind.PRODUCE: 5,
        RequestKind.ADD: 0.5,
        RequestKind.ADD_OFFSETS: 0.5,
        RequestKind.END: 2,
    },
}
_ABSENT: Mapping[RequestKind, float] = {
    RequestKind.INIT: 12,
    RequestKind.PRODUCE: 1,
    RequestKind.ADD: 1,
    RequestKind.END: 1,
    RequestKind.COMMIT_OFFSET: 1,
}
REPLAYS, HOLDS, EXPIRIES, HURRIED, FOREIGN = 2.5, 0.07, 4.0, 0.25, 0.03


def _drawn(drawn: random.Random, walk: Walk, before: list[Move], *, short: bool) -> Move:
    phase, number = walk.state.phase, len(before)
    weights = dict(_OPEN if phase is TransactionPhase.ONGOING else _CLOSED[walk.rules.generation])
    if phase is TransactionPhase.ABSENT:
        weights = dict(_ABSENT)
    if short and phase is TransactionPhase.ONGOING:
        weights[RequestKind.EXPIRE] = EXPIRIES
    sent = [each.number for each in before if each.number in walk.frames]
    if sent and drawn.random() < REPLAYS / (REPLAYS + sum(weights.values())):
        of = drawn.choice(sent)
        return Move(number=number, kind=before[of].kind, who=before[of].who, send=Send.REPLAY, of=of)
    kind = drawn.choices(list(weights), list(weights.values()))[0]
    owners = [who for who, epoch in enumerate(walk.epochs[:INSTANCES]) if epoch == walk.state.epoch != NO_EPOCH]
    who = owners[0] if owners and drawn.random() < 0.65 else drawn.randrange(INSTANCES)
    holds = (
        kind in (RequestKind.PRODUCE, RequestKind.END, RequestKind.ADD, RequestKind.COMMIT_OFFSET)
        and drawn.random() < HOLDS
    )
    return Move(
        number=number,
        kind=kind,
        who=who,
        epoch=_epoch(drawn, kind, owner=who in owners),
        foreign=drawn.random() < FOREIGN,
        place=drawn.choice((0, 0, 1)),
        sequence=drawn.choices(list(SequenceChoice), (70, 12, 8, 5, 3, 2))[0],
        back=drawn.choice((1, 1, 2, 3, 4, 5)),
        count=drawn.choice((1, 1, 2)),
        commit=drawn.random() < 0.6,
        send=Send.HOLD if holds else Send.NOW,
        hurried=drawn.random() < HURRIED,
    )


def _epoch(drawn: random.Random, kind: RequestKind, *, owner: bool) -> Epoch:
    if kind is RequestKind.INIT:
        return drawn.choices(list(Epoch), (30, 10, 10, 50))[0]
    return drawn.choices(list(Epoch)[:3], (90, 5, 5) if owner else (80, 5, 15))[0]


def epilogue(number: int, *, commit: bool, tv2: bool) -> list[Move]:
    """The orderly end of a walk, with a look at everything.

    The owner ends its transaction. A new instance takes over, writes to both partitions and commits. Instance -1 stands
    for the owner, which is known only when its move is made.
    """
    successor = INSTANCES
    kinds: list[dict[str, Any]] = [
        {"kind": RequestKind.END, "who": -1, "commit": commit},
        {"kind": RequestKind.LOOK},
        {"kind": RequestKind.INIT, "who": successor, "epoch": Epoch.NONE},
    ]
    for place in (0, 1):
        kinds += [] if tv2 else [{"kind": RequestKind.ADD, "who": successor, "place": place}]
        kinds += [{"kind": RequestKind.PRODUCE, "who": successor, "place": place}]
    kinds += [] if tv2 else [{"kind": RequestKind.ADD_OFFSETS, "who": successor}]
    kinds += [
        {"kind": RequestKind.COMMIT_OFFSET, "who": successor},
        {"kind": RequestKind.END, "who": successor},
        {"kind": RequestKind.LOOK},
    ]
    return [Move(number=number + index, **each) for index, each in enumerate(kinds)]
