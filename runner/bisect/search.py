"""Searches an ordered list of builds for the first bad one, as `git bisect` searches commits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class BuildVerdict(StrEnum):
    """The verdict on a build: it showed the violation, it passed often enough, or it could not be decided."""

    GOOD = "good"
    BAD = "bad"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstBad:
    """The builds of which one is the first bad one, by their places; only the last one of them is known to be bad.

    It is a single build unless builds before it could not be decided.
    """

    places: tuple[int, ...]

    @property
    def found(self) -> bool:
        """Whether it is a single build."""
        return len(self.places) == 1


def first_bad(count: int, verdict_of: Callable[[int], BuildVerdict]) -> FirstBad:
    """The first bad one of `count` builds, the first of which is good and the last of which is bad.

    It assumes that all builds after a bad one are bad. A build that cannot be decided is passed over for the one next to
    it.
    """
    good, bad, skipped = 0, count - 1, set[int]()
    while between := [place for place in range(good + 1, bad) if place not in skipped]:
        middle = min(between, key=lambda place: abs(2 * place - good - bad))
        verdict = verdict_of(middle)
        if verdict is BuildVerdict.GOOD:
            good = middle
        elif verdict is BuildVerdict.BAD:
            bad = middle
        else:
            skipped.add(middle)
    return FirstBad(places=tuple(range(good + 1, bad + 1)))
