"""Replays the moves of a walk: whether they show a signature again, the fewest that do, and how often.

All moves are replayed first. Where every replay shows the signature, one replay decides whether moves can be left out.
Where only some do, several replays must show it: a single lucky one would leave out moves that are needed. The fewest
moves are replayed again for their rate. A rate far below that of all moves means that too much was left out; then all
moves stay, with their own rate. The walk that is described is always one that showed the signature.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runner.explorer.execute import shrunk
from runner.explorer.moves import Move
from runner.explorer.walk import Walk

#: A replay; None for one that was too slow to show anything.
Play = Callable[[Sequence[Move]], Walk | None]
#: Replays of all moves before the signature is called flaky, and of the fewest moves to state a rate.
AGAIN_TRIES, RATE_TRIES = 5, 10
#: A signature that shows only sometimes must be shown by so many of so many replays before moves are left out. Moves
#: that show it once in twenty replays pass this by chance once in seventy times.
RACY_SHOWN, RACY_TRIES = 2, 4
#: The least rate of the fewest moves, as a share of the rate of all moves.
SHARE_LEAST = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """How often moves showed a signature; `walk` is the last one that showed it."""

    moves: tuple[Move, ...]
    shown: int
    tries: int
    walk: Walk | None

    @property
    def rate(self) -> float:
        """The share of replays that showed the signature."""
        return self.shown / self.tries


def followed(moves: Sequence[Move], signature: str, play: Play) -> Replayed | None:
    """The fewest moves that show the signature as all of them do; None when no replay of all shows it."""
    first = _replayed(moves, signature, play, AGAIN_TRIES)
    if first.walk is None:
        return None
    sure = first.shown == first.tries

    def shows(chosen: Sequence[Move]) -> bool:
        return _shows(chosen, signature, play, *((1, 1) if sure else (RACY_SHOWN, RACY_TRIES)))

    fewest = shrunk(moves, shows)
    after = _replayed(fewest, signature, play, RATE_TRIES)
    if after.walk is not None and after.rate >= SHARE_LEAST * first.rate:
        return after
    more = _replayed(moves, signature, play, RATE_TRIES)
    return Replayed(
        moves=tuple(moves), shown=first.shown + more.shown, tries=first.tries + more.tries, walk=more.walk or first.walk
    )


def _replayed(moves: Sequence[Move], signature: str, play: Play, tries: int) -> Replayed:
    walks = [play(moves) for _ in range(tries)]
    showing = [each for each in walks if each is not None and signature in each.signatures]
    return Replayed(moves=tuple(moves), shown=len(showing), tries=tries, walk=showing[-1] if showing else None)


def _shows(moves: Sequence[Move], signature: str, play: Play, least: int, tries: int) -> bool:
    """Whether at least `least` of `tries` replays show the signature; stops as soon as that is decided."""
    shown = 0
    for left in range(tries, 0, -1):
        if shown + left < least:
            return False
        walk = play(moves)
        shown += walk is not None and signature in walk.signatures
        if shown == least:
            return True
    return False
