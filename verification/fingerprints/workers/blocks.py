"""Compares copies with their inputs, in blocks of 64 input offsets: the worker's side of `copying`.

One long has the offsets of a block that were copied into an output, another the offsets that were delivered. That is
exact: a set of offsets, not a sum. There are two kinds of rows. Fragments of copies have an `n` and their outcome. The
others are the inputs that were delivered below the offset that the group committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from verification.evidence.row_types import Row
from verification.fingerprints.workers import packed as packs
from verification.fingerprints.workers.columns import NULL, Flags, NumpyColumns, record_batch
from verification.fingerprints.workers.fragments import BLOCK_BITS, BLOCK_MAX, COPIED, FRAGMENT_KEYS, FRAGMENTS
from verification.fingerprints.workers.groups import Groups, starts
from verification.fingerprints.workers.hashing import Numbers
from verification.fingerprints.workers.packed import unpack

#: A block of inputs.
SOURCE = ("run", "source_partition", "source_block")
_COPY = (*FRAGMENT_KEYS, *COPIED, "n", "first", "last", "sources", "source_max")
#: The columns of blocks. For inputs, only SOURCE and `wanted` are not null, and `sources` is empty.
BLOCKS = pa.schema([*[FRAGMENTS.field(name) for name in _COPY], ("committed", pa.bool_()), ("wanted", pa.int64())])
#: Blocks in which copies and inputs disagree.
SUSPECT_BLOCKS = pa.schema([FRAGMENTS.field(name) for name in SOURCE])


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """A partition of a group's input topic, and the offset that the group committed there."""

    run: str
    topic_index: int
    partition: int
    committed_offset: int


def copying_of(runs: Iterable[Row], group_offsets: Iterable[Row]) -> CopyBlocks:
    """The runs that copy, from rows of `dataframes.runs` and `dataframes.group_offsets`."""
    fan_out = {row["run"]: row["fan_out"] for row in runs if row["fan_out"] is not None}
    inputs = tuple(
        Input(
            run=row["run"],
            topic_index=row["topic_index"],
            partition=row["partition"],
            committed_offset=max(row["offset"], 0),
        )
        for row in group_offsets
        if row["run"] in fan_out
    )
    return CopyBlocks(fan_out=fan_out, inputs=inputs)


def packed(rows: Sequence[pa.RecordBatch], buckets: int) -> Iterator[tuple[int, bytes]]:
    """Rows of `BLOCKS` in `buckets` buckets by block."""
    yield from packs.packed(rows, SOURCE[1:], buckets)


def of_inputs(rows: NumpyColumns, inputs: Iterable[Input]) -> Iterator[pa.RecordBatch]:
    """The inputs that a batch of the committed capture delivered below the group's offsets."""
    runs = {value: number for number, value in enumerate(rows.values("run"))}
    below = np.zeros(len(rows), dtype=bool)
    for each in inputs:
        if each.run in runs:
            there = (rows["topic_index"] == each.topic_index) & (rows["partition"] == each.partition)
            below |= there & (rows["run"] == runs[each.run]) & (rows["offset"] < each.committed_offset)
    kept = np.flatnonzero(below)
    if not len(kept):
        return
    offset = rows["offset"][kept]
    groups = Groups([rows["run"][kept], rows["partition"][kept], offset >> BLOCK_BITS])
    wanted = groups.reduce(np.bitwise_or, np.int64(1) << (offset & BLOCK_MAX))
    found = dict(zip(SOURCE, groups.keys, strict=True)) | {"wanted": wanted, "sources": np.zeros_like(wanted)}
    yield record_batch(BLOCKS, found, {"run": rows.encoded("run").dictionary})


def of_copies(rows: NumpyColumns, committed: Flags, texts: Mapping[str, pa.Array]) -> Iterator[pa.RecordBatch]:
    """Partial fragments (`fragments.FRAGMENTS`) of copies; `committed` has a flag for each row."""
    copied = np.flatnonzero(rows["source_block"] != NULL)
    if len(copied):
        found = {name: rows[name][copied] for name in _COPY}
        found |= {"committed": committed[copied].astype(np.int64), "wanted": np.zeros(len(copied), dtype=np.int64)}
        yield record_batch(BLOCKS, found, texts)


def _grouped(keys: Sequence[Numbers]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The rows in an order in which equal keys are together, and the start of each such group.

    They are sorted by the keys themselves. `Groups` sorts by hashes and may split a group, which is enough for partial
    sums but not for a verdict.
    """
    order = np.lexsort(keys)
    return order, starts([key[order] for key in keys])


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyBlocks:
    """The runs that copy: the number of outputs of each input, and the group's progress in its inputs."""

    fan_out: Mapping[str, int]
    inputs: tuple[Input, ...]

    def outputs_of(self, rows: NumpyColumns) -> Numbers:
        """For each row, the number of outputs of an input; null in runs that do not copy."""
        named = [self.fan_out.get(run or "", NULL) for run in rows.values("run")]
        return np.array(named, dtype=np.int64)[rows["run"]]

    def ends_of(self, rows: NumpyColumns) -> Numbers:
        """For each row, the offset that the group committed in its source partition; 0 if it committed none."""
        runs = {value: number for number, value in enumerate(rows.values("run"))}
        found = np.zeros(len(rows), dtype=np.int64)
        for each in self.inputs:
            there = (rows["run"] == runs.get(each.run, -1)) & (rows["source_partition"] == each.partition)
            found[there] = each.committed_offset
        return found


def _bits(values: Numbers) -> Numbers:
    """How many bits of each are set."""
    counted: Numbers = np.unpackbits(values.view(np.uint8).reshape(-1, values.itemsize), axis=1).sum(axis=1)
    return counted.astype(np.int64)


def _suspect_blocks(rows: NumpyColumns, copying: CopyBlocks) -> NDArray[np.intp]:
    """A row of each suspect block: an input was copied too often, too rarely, undelivered, or beyond the group's offset."""
    order, heads = _grouped([rows[name] for name in SOURCE])
    block = np.empty(len(rows), dtype=np.intp)
    block[order] = np.repeat(np.arange(len(heads)), np.diff(heads, append=len(rows)))
    wanted = np.bitwise_or.reduceat(rows["wanted"][order], heads)
    copied = np.flatnonzero((rows["n"] != NULL) & (rows["output"] != NULL) & (rows["committed"] == 1))
    complete, wrong = np.zeros(len(heads), dtype=np.int64), np.zeros(len(heads), dtype=bool)
    if len(copied):
        within, outputs = _grouped([rows["output"][copied], block[copied]])
        turn = copied[within]
        of_block = block[turn[outputs]]
        sources = np.bitwise_or.reduceat(rows["sources"][turn], outputs)
        twice = np.add.reduceat(rows["n"][turn], outputs) != _bits(sources)
        beyond = np.maximum.reduceat(rows["source_max"][turn], outputs) >= copying.ends_of(rows)[turn[outputs]]
        undelivered = (sources & ~wanted[of_block]) != 0
        np.logical_or.at(wrong, of_block, twice | beyond | undelivered)
        np.add.at(complete, of_block, (wanted[of_block] & ~sources) == 0)
    fan_out = copying.outputs_of(rows)[order[heads]]
    short = (wanted != 0) & (complete < fan_out)
    found: NDArray[np.intp] = order[heads[(fan_out != NULL) & (wrong | short)]]
    return found


def suspect_blocks(batches: Iterable[pa.RecordBatch], copying: CopyBlocks) -> Iterator[pa.RecordBatch]:
    """All rows (`BLOCKS`, packed) of some blocks → the suspect ones (`SUSPECT_BLOCKS`)."""
    whole = unpack(batches)
    if whole is not None:
        rows = NumpyColumns(whole)
        chosen = _suspect_blocks(rows, copying)
        texts = {"run": rows.encoded("run").dictionary}
        yield record_batch(SUSPECT_BLOCKS, {name: rows[name][chosen] for name in SOURCE}, texts)
