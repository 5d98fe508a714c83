"""Performs planned moves, and shrinks them to the fewest that still show a signature."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from runner.explorer.finding import Nature
from runner.explorer.moves import Move, WalkPlan
from runner.explorer.walk import Answerer, Walk, step
from verification.specification.coordinator import visible
from verification.specification.state import ModelAnswer, ModelRequest, ModelState, RequestKind, Rules

#: Whether moves show the signature that is looked for.
Shows = Callable[[Sequence[Move]], bool]
#: A walk has about 25 moves; taking them away one by one, twice, is within these bounds.
TRIALS_MOST, SHRINK_WITHIN_S = 120, 90.0


def perform(moves: Sequence[Move], rules: Rules, answerer: Answerer) -> Walk:
    """Make the moves, up to the first finding."""
    walk = Walk(rules)
    for move in moves:
        walk.reached = move.number
        step(walk, move, answerer)
        if walk.finding is not None:
            if walk.finding.nature not in (Nature.SILENT, Nature.VISIBLE):
                look = Move(number=move.number + 1, kind=RequestKind.LOOK)
                walk.aftermath = differing(walk.state, answerer.ask(look, ModelRequest(kind=RequestKind.LOOK)))
            break
    return walk


def differing(state: ModelState, answer: ModelAnswer) -> tuple[str, ...]:
    """The visible things that are not as if the wrong answer had never been given."""
    if answer.seen is None:
        return ("nothing could be looked at",)
    seen, expected = answer.seen, visible(state)
    return tuple(
        f"{name} is {seen.get(name)}, was to be {value}" for name, value in expected.items() if seen.get(name) != value
    )


def shrunk(moves: Sequence[Move], shows: Shows) -> tuple[Move, ...]:
    """The fewest moves found that still show the signature: chunks are left out as long as the rest shows it.

    Bounded in trials and in time. Moves that are left when a bound is reached have shown the signature too.
    """
    kept, trials, end_s = tuple(moves), 0, time.monotonic() + SHRINK_WITHIN_S
    size = max(len(kept) // 2, 1)
    while size >= 1:
        start, removed = 0, False
        while start < len(kept):
            if trials >= TRIALS_MOST or time.monotonic() > end_s:
                return kept
            fewer = kept[:start] + kept[start + size :]
            trials += 1
            if shows(fewer):
                kept, removed = fewer, True
            else:
                start += size
        if size == 1 and not removed:
            break
        size = max(size // 2, 1)
    return kept


def cut(plan: WalkPlan, walk: Walk, signature: str) -> tuple[Move, ...]:
    """The moves up to the one that showed the signature."""
    if walk.finding is not None and walk.finding.signature == signature:
        # Not the last move that was made: a stuck transaction is found by the wait before the next move.
        last = walk.reached
    else:
        last = next(each.move.number for each in walk.steps if each.known == signature)
    return tuple(move for move in plan.moves if move.number <= last)
