"""Looks up rows before and after a row among rows sorted by producer, and the control records that decided it, in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from verification.fingerprints.workers.columns import NULL, Flags
from verification.fingerprints.workers.groups import starts
from verification.fingerprints.workers.hashing import Numbers

#: Outcomes of records, as numbers.
COMMIT, ABORT, OPEN = range(3)


class Producers:
    """Rows sorted by producer: lookups before and after each row among those of its producer."""

    def __init__(self, keys: list[Numbers]) -> None:
        heads = starts(keys)
        lengths = np.diff(heads, append=len(keys[0]))
        self.segment = np.repeat(np.arange(len(heads)), lengths)
        self.start = np.repeat(heads, lengths)
        self.end = np.repeat(heads + lengths, lengths)
        self.place = np.arange(len(keys[0]))

    def at(self, places: Numbers, values: Numbers) -> Numbers:
        """The values at some places, null where a place is not the producer's."""
        own = (places >= self.start) & (places < self.end)
        return np.where(own, values[np.where(own, places, 0)], NULL)

    def before(self, values: Numbers) -> Numbers:
        """The value of the row before."""
        return self.at(self.place - 1, values)

    def after(self, values: Numbers) -> Numbers:
        """The value of the row after."""
        return self.at(self.place + 1, values)

    def any(self, condition: Flags) -> Flags:
        """Whether something holds for any row of the producer."""
        found: Flags = np.bincount(self.segment, weights=condition)[self.segment] > 0
        return found

    def highest_before(self, values: Numbers) -> Numbers:
        """The highest of all rows before; nulls are lower than anything."""
        return _highest_before(values, self.segment)

    def lowest_after(self, values: Numbers) -> Numbers:
        """The lowest of all rows after, of values that are never null."""
        found = _highest_before(-values[::-1], self.segment[-1] - self.segment[::-1])[::-1]
        return np.where(found == NULL, NULL, -found)

    def next_where(self, condition: Flags) -> Numbers:
        """The place of the next row that fulfils a condition; beyond the producer's own if there is none."""
        places = np.where(condition, self.place, len(self.place))
        nearest = np.minimum.accumulate(places[::-1])[::-1]
        return np.append(nearest[1:], len(self.place))

    def latest_where(self, condition: Flags) -> Numbers:
        """The place of the latest earlier row that fulfils a condition; -1 or another producer's if there is none."""
        places = np.where(condition, self.place, -1)
        return np.insert(np.maximum.accumulate(places)[:-1], 0, -1)


def _highest_before(values: Numbers, segment: Numbers) -> Numbers:
    """The highest earlier value in each segment. Ranks replace values, so that a segment and a rank make one long."""
    distinct, rank = np.unique(values, return_inverse=True)
    running = np.maximum.accumulate(segment * len(distinct) + rank)
    earlier = np.insert(running[:-1], 0, -1)
    found: Numbers = np.where(earlier // len(distinct) == segment, distinct[earlier % len(distinct)], NULL)
    return found


@dataclass(frozen=True, slots=True)
class Decisions:
    """For each row, the place of its producer's next control record that ends a transaction; and the rows that commit."""

    place: Numbers
    commits: Flags


def decided(own: Producers, control: Numbers, texts: Sequence[str | None]) -> Decisions:
    """The decision about each row; `control` are numbers of `texts`."""
    names = {text: number for number, text in enumerate(texts)}
    commits, aborts = (control == names.get(text, -1) for text in ("commit", "abort"))
    return Decisions(own.next_where(commits | aborts), commits)


def outcomes(own: Producers, ending: Decisions, transactional: Numbers) -> Numbers:
    """The outcome of each row, if it holds data."""
    settled = own.at(ending.place, np.where(ending.commits, COMMIT, ABORT))
    return np.where(transactional == 0, COMMIT, np.where(settled == NULL, OPEN, settled))
