"""Filters the rows of a capture in workers, so that Spark receives only the few rows that are sought.

A filter knows hashes of the sought rows. It lets through at least those, so the caller joins exactly afterwards. Runs
that are judged together share one filter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from verification.fingerprints.workers.aggregate import fragment_keys
from verification.fingerprints.workers.columns import NULL, Flags, NumpyColumns
from verification.fingerprints.workers.fragments import BLOCK_BITS, BLOCK_MAX, CHUNK_BITS, CHUNK_MAX
from verification.fingerprints.workers.groups import starts
from verification.fingerprints.workers.hashing import Hashes, Numbers, hash_longs
from verification.fingerprints.workers.row_group_pruning import RowGroup, Whereabouts, whereabouts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class By(StrEnum):
    """The ways to seek rows, each with the columns that identify the sought rows."""

    FRAGMENT = "run topic_index partition producer_id process operation chunk"
    PRODUCER = "run topic_index partition producer_id"
    OPERATION = "run process operation"
    BLOCK = "run topic_index partition block"
    WRITER = "run topic_index partition process chunk"
    SOURCE = "run source_partition source_block"

    @property
    def columns(self) -> list[str]:
        """The columns, in the order in which they are hashed."""
        return self.value.split()


def _numbered(rows: NumpyColumns, names: Iterable[str], found: Mapping[str, Numbers]) -> list[Numbers]:
    """Some columns of rows, texts as numbers that are the same in every batch; `found` are derived columns."""
    return [rows.stable(name) if name == "run" else found[name] if name in found else rows[name] for name in names]


def _made(rows: NumpyColumns, by: By) -> Mapping[str, Numbers]:
    """The derived columns, which records do not have."""
    if by is By.FRAGMENT:
        return fragment_keys(rows)
    if by is By.BLOCK:
        return {"block": rows["offset"] >> BLOCK_BITS}
    return {"chunk": rows["offset"] >> CHUNK_BITS} if by is By.WRITER else {}


@dataclass(frozen=True, slots=True)
class Wanted:
    """The sought rows: sorted hashes, and their place in a capture, None if it is not known."""

    hashes: Hashes
    whereabouts: Whereabouts | None = None


def _whereabouts(by: By, rows: NumpyColumns) -> Whereabouts | None:
    if by is By.OPERATION:
        return whereabouts(rows, ("process",), "operation", rows["operation"], rows["operation"])
    if by in (By.PRODUCER, By.SOURCE):
        return None
    if by is By.BLOCK:
        first = rows["block"] << BLOCK_BITS
        last = first + BLOCK_MAX
    else:
        # A fragment of one row has its offset as chunk.
        alone = rows["process"] == NULL
        first = np.where(alone, rows["chunk"], rows["chunk"] << CHUNK_BITS)
        last = np.where(alone, first, first + CHUNK_MAX)
    return whereabouts(rows, ("topic_index", "partition"), "offset", first, last)


def wanted(by: By, what: pa.RecordBatch | None) -> Wanted:
    """The sought rows, from a batch with at least their columns; None for no rows."""
    if what is None or not what.num_rows:
        return Wanted(np.zeros(0, dtype=np.uint64))
    rows = NumpyColumns(what)
    return Wanted(np.unique(hash_longs(*_numbered(rows, by.columns, {}))), _whereabouts(by, rows))


def sought(by: By, frame: DataFrame) -> Wanted:
    """The sought rows, from a dataframe with at least their columns."""
    batches = frame.select(*by.columns).distinct().toArrow().combine_chunks().to_batches()
    return wanted(by, batches[0] if batches else None)


#: Hashes are looked up in a table by their first bits before they are searched for: nearly none is there.
_TABLE_BITS = 18


def among(hashes: Hashes, wanted: Hashes) -> Flags:
    """The hashes that are among the wanted ones, which are sorted."""
    found = np.zeros(len(hashes), dtype=bool)
    if len(wanted):
        shift = np.uint64(64 - _TABLE_BITS)
        table = np.zeros(1 << _TABLE_BITS, dtype=bool)
        table[wanted >> shift] = True
        likely = np.flatnonzero(table[hashes >> shift])
        place = np.minimum(np.searchsorted(wanted, hashes[likely]), len(wanted) - 1)
        found[likely] = wanted[place] == hashes[likely]
    return found


def matching(rows: NumpyColumns, by: By, what: Wanted, made: Mapping[str, Numbers]) -> Flags:
    """The rows that are wanted. Equal rows that follow each other are looked up once."""
    keys = _numbered(rows, by.columns, made)
    heads = starts(keys)
    found = among(hash_longs(*(key[heads] for key in keys)), what.hashes)
    every: Flags = np.repeat(found, np.diff(heads, append=len(keys[0])))
    return every


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Lets through rows that are wanted by any of these; with `unsure`, also rows that are not surely of their run.

    It is called with batches that have the needed columns, and returns batches of `columns`.
    """

    columns: tuple[str, ...]
    wanted: Mapping[By, Wanted]
    unsure: bool = False

    def holds(self, group: RowGroup) -> bool:
        """Whether a row group may have a row that is let through."""
        if self.unsure and not group.sure:
            return True
        return any(
            len(each.hashes) > 0 and (each.whereabouts is None or group.meets(each.whereabouts))
            for each in self.wanted.values()
        )

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows that are let through."""
        for batch in batches:
            if batch.num_rows:
                rows = NumpyColumns(batch)
                passing = ~rows.sure if self.unsure else np.zeros(len(rows), dtype=bool)
                for by, each in self.wanted.items():
                    passing |= matching(rows, by, each, _made(rows, by))
                if passing.any():
                    yield self._plain(batch.filter(pa.array(passing)))

    def _plain(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns in order, texts without a dictionary."""
        found = [batch.column(name) for name in self.columns]
        plain = [column.dictionary_decode() if pa.types.is_dictionary(column.type) else column for column in found]
        return pa.RecordBatch.from_arrays(plain, names=list(self.columns))
