"""Whether a walk shows again what it showed, by how few moves, and how often these do.

The moves are replayed first. Where every replay shows it, one replay decides whether moves can be left out; where only
some do, a single lucky one would leave moves out that it takes, so that several of several must show it. What is left
is replayed again for its rate. When that is far below the rate of all moves, too much was left out: then all moves stay,
with their own rate. Whatever is stated was seen: the walk that is told is one of those that showed it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runner.explorer.execute import shrunk
from runner.explorer.moves import Move
from runner.explorer.walk import Walk

#: A replay; None for one that was too slow to show anything.
Play = Callable[[Sequence[Move]], Walk | None]
#: How often moves are replayed before they are called fleeting, and the fewest ones to state a rate.
AGAIN_TRIES, RATE_TRIES = 5, 10
#: What shows only sometimes must be shown by so many of so many replays before moves are left out: by chance alone, one
#: that is left with one showing in twenty passes once in seventy times.
RACY_SHOWN, RACY_TRIES = 2, 4
#: The fewest moves must show it at least so often as this share of the rate of all.
SHARE_LEAST = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """How often moves showed a signature; `walk` is the last that did."""

    moves: tuple[Move, ...]
    shown: int
    tries: int
    walk: Walk | None

    @property
    def rate(self) -> float:
        """Showings per replay."""
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
    """Whether so many of so many replays show it; stops when that is decided."""
    shown = 0
    for left in range(tries, 0, -1):
        if shown + left < least:
            return False
        walk = play(moves)
        shown += walk is not None and signature in walk.signatures
        if shown == least:
            return True
    return False
