"""Skips row groups that cannot hold sought rows, by the footers of their files.

Defects are close together, around a fault, and captures are written in the order of offsets. So the rows to read again
are in few of many row groups. A footer without statistics of a column excludes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from verification.fingerprints.workers.columns import Flags, NumpyColumns
from verification.fingerprints.workers.groups import starts
from verification.fingerprints.workers.hashing import Numbers

_LOWEST, _HIGHEST = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max)
#: Lowest and highest of each span, both inclusive; both rise.
Spans = tuple[Numbers, Numbers]


def merged(lowest: Numbers, highest: Numbers) -> Spans:
    """Merge overlapping spans, in any order; at least one span."""
    order = np.argsort(lowest, kind="stable")
    low, high = lowest[order], np.maximum.accumulate(highest[order])
    apart = np.flatnonzero(np.insert(low[1:] > high[:-1], 0, True))
    return low[apart], high[np.append(apart[1:] - 1, len(low) - 1)]


def meeting(spans: Spans, lowest: Numbers, highest: Numbers) -> Flags:
    """For each row, from its lowest to its highest, whether it meets any of the spans."""
    at = np.searchsorted(spans[1], lowest)
    met = at < len(spans[0])
    met[met] = spans[0][at[met]] <= highest[met]
    return met


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Places in a capture: for some values of the columns `keys`, spans of the column `bound`."""

    keys: tuple[str, ...]
    bound: str
    spans: Mapping[tuple[int, ...], Spans]


def whereabouts(
    rows: NumpyColumns, keys: tuple[str, ...], bound: str, lowest: Numbers, highest: Numbers
) -> Whereabouts:
    """The places of some rows, each of which is one span."""
    named = [rows[name] for name in keys]
    order = np.lexsort(named)
    parts = np.split(order, starts([key[order] for key in named])[1:])
    spans = {tuple(int(key[some[0]]) for key in named): merged(lowest[some], highest[some]) for some in parts}
    return Whereabouts(keys, bound, spans)


@dataclass(frozen=True, slots=True)
class RowGroup:
    """The footer of a row group: a `pyarrow.parquet.RowGroupMetaData`, and the places of the columns in it."""

    metadata: Any
    places: Mapping[str, int]

    def _said(self, name: str) -> Any:
        found = self.metadata.column(self.places[name]).statistics if name in self.places else None
        return found if found is not None and found.has_min_max else None

    def _ends(self, name: str) -> tuple[int, int]:
        """The lowest and highest value of a column of numbers, as far as the footer has them."""
        said = self._said(name)
        return (_LOWEST, _HIGHEST) if said is None else (int(said.min), int(said.max))

    def meets(self, sought: Whereabouts) -> bool:
        """Whether a row may be at one of the places."""
        ends = [self._ends(name) for name in sought.keys]
        lowest, highest = (np.array([end]) for end in self._ends(sought.bound))
        return any(
            all(low <= value <= high for value, (low, high) in zip(key, ends, strict=True))
            and bool(meeting(spans, lowest, highest).any())
            for key, spans in sought.spans.items()
        )

    @property
    def sure(self) -> bool:
        """Whether every row is surely a record of its run (`NumpyColumns.sure`)."""
        said = {name: self._said(name) for name in ("valid", "run", "identity_run", "process", "operation")}
        whole = all(each is not None and each.has_null_count and each.null_count == 0 for each in said.values())
        if not whole or not said["valid"].min:
            return False
        runs = {end for name in ("run", "identity_run") for end in (said[name].min, said[name].max)}
        return len(runs) == 1


#: Whether a row group may hold sought rows.
Holds = Callable[[RowGroup], bool]
