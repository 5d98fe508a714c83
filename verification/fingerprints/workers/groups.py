"""Groups rows by several columns at once, and applies ufuncs to each group.

Records of one operation are close together in a log. So equal rows that follow each other are merged first, which needs
no sorting. The few rows that remain are sorted by hash. Different rows with one hash are separated by their keys: at
worst, a group comes in several parts, and code that merges parts merges these too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verification.fingerprints.workers.hashing import Numbers, hash_longs


def starts(columns: Sequence[Numbers]) -> NDArray[np.intp]:
    """The rows that differ from the row before."""
    differs = np.zeros(len(columns[0]), dtype=bool)
    differs[0] = True
    for column in columns:
        differs[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(differs)


class Groups:
    """Groups of the rows of some key columns, with at least one row."""

    def __init__(self, keys: Sequence[Numbers]) -> None:
        self._rows = len(keys[0])
        self.heads = starts(keys)
        first = [key[self.heads] for key in keys]
        self.order = np.argsort(hash_longs(*first), kind="stable")
        sorted_keys = [key[self.order] for key in first]
        self.starts = starts(sorted_keys)
        self.keys = [key[self.starts] for key in sorted_keys]

    def runs(self, ufunc: np.ufunc, values: NDArray[Any]) -> NDArray[Any]:
        """One value for each run of equal rows, group by group, in the rows' order within a group."""
        found: NDArray[Any] = ufunc.reduceat(values, self.heads)[self.order]
        return found

    def reduce(self, ufunc: np.ufunc, values: NDArray[Any]) -> NDArray[Any]:
        """One value for each group."""
        found: NDArray[Any] = ufunc.reduceat(self.runs(ufunc, values), self.starts)
        return found

    def of_rows(self) -> NDArray[np.intp]:
        """The group of each row."""
        named = np.empty(len(self.heads), dtype=np.intp)
        named[self.order] = np.repeat(np.arange(len(self.starts)), np.diff(self.starts, append=len(self.order)))
        return np.repeat(named, np.diff(self.heads, append=self._rows))

    def counts(self) -> Numbers:
        """The number of rows of each group."""
        lengths = np.diff(self.heads, append=self._rows)[self.order].astype(np.int64)
        counted: Numbers = np.add.reduceat(lengths, self.starts)
        return counted
