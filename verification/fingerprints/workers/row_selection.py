"""Selects steps from packs in workers, so that only the selected steps become Spark rows.

A pick receives all steps of some producers, sorted by producer and offset, and flags the wanted ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from verification.fingerprints.workers.columns import NULL, Flags, NumpyColumns
from verification.fingerprints.workers.groups import starts
from verification.fingerprints.workers.hashing import hash_longs
from verification.fingerprints.workers.packed import unpack
from verification.fingerprints.workers.row_filter import By, Wanted, matching
from verification.fingerprints.workers.row_group_pruning import Spans, meeting, merged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PRODUCER = ("run", "topic_index", "partition", "producer_id")
_PARTITION = ("run", "topic_index", "partition")
#: An offset that no partition reaches.
_END = (1 << 63) - 1


class Pick(Protocol):
    """Flags the wanted steps of some producers."""

    def __call__(self, rows: NumpyColumns) -> Flags:
        """One flag for each row."""


@dataclass(frozen=True, slots=True)
class Named:
    """The steps of some fragments or of some producers."""

    by: By
    wanted: Wanted

    def __call__(self, rows: NumpyColumns) -> Flags:
        """By hash."""
        return matching(rows, self.by, self.wanted, {})


@dataclass(frozen=True, slots=True)
class Overlapping:
    """The steps between some offsets of a partition; `lowest` and `highest` rise, by the partition's hash."""

    spans: Mapping[int, Spans]

    def __call__(self, rows: NumpyColumns) -> Flags:
        """By partition."""
        places = hash_longs(rows.stable("run"), rows["topic_index"], rows["partition"]).view(np.int64)
        found = np.zeros(len(rows), dtype=bool)
        for place, spans in self.spans.items():
            there = np.flatnonzero(places == place)
            found[there] = meeting(spans, rows["first"][there], rows["last"][there])
        return found


def overlapping(frame: DataFrame) -> Overlapping:
    """The pick for a dataframe of (PARTITION, lowest, highest): offsets, both inclusive."""
    batches = frame.select(*_PARTITION, "lowest", "highest").distinct().toArrow().combine_chunks().to_batches()
    if not batches or not batches[0].num_rows:
        return Overlapping({})
    rows = NumpyColumns(batches[0])
    places = hash_longs(rows.stable("run"), rows["topic_index"], rows["partition"]).view(np.int64)
    order = np.argsort(places, kind="stable")
    parts = np.split(order, starts([places[order]])[1:])
    return Overlapping({int(places[some[0]]): merged(rows["lowest"][some], rows["highest"][some]) for some in parts})


@dataclass(frozen=True, slots=True)
class Reached:
    """The sought steps, and steps of the same producer up to the control records that decided them.

    Sought are whole operations, single fragments, and rows that are not surely of their run.
    """

    operations: Wanted
    fragments: Wanted

    def __call__(self, rows: NumpyColumns) -> Flags:
        """By the highest offset that any sought step before a step reaches."""
        data = rows["control"] == NULL
        seeds = matching(rows, By.OPERATION, self.operations, {}) | matching(rows, By.FRAGMENT, self.fragments, {})
        seeds |= data & (rows["process"] == NULL)
        until = np.where(rows["until"] == NULL, _END, rows["until"])
        reach = np.where(data & (rows["transactional"] != 0), until, rows["last"])
        heads = starts([rows[name] for name in _PRODUCER])
        segment = np.repeat(np.arange(len(heads)), np.diff(heads, append=len(rows)))
        # In the order of their first offsets, sought steps first.
        order = np.lexsort((~seeds, rows["first"], segment))
        distinct, rank = np.unique(np.where(seeds, reach, NULL)[order], return_inverse=True)
        running = np.maximum.accumulate(segment[order] * len(distinct) + rank)
        found = np.zeros(len(rows), dtype=bool)
        found[order] = distinct[running % len(distinct)] >= rows["first"][order]
        return found


def pick(batches: Iterable[pa.RecordBatch], wanted: Pick, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """Packed steps → the wanted ones."""
    for batch in batches:
        for row in range(batch.num_rows):
            steps = unpack([batch.slice(row, 1)])
            if steps is not None:
                found = wanted(NumpyColumns(steps))
                if found.any():
                    yield steps.filter(pa.array(found)).select(list(columns))
