"""Packs many Arrow rows into one Spark value, to pass rows from worker to worker.

Otherwise Spark would hold, exchange and copy each row and each value. Here it sees one number, by which it brings rows
together, and bytes (Arrow's streaming format, compressed).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from verification.fingerprints.workers.columns import NumpyColumns
from verification.fingerprints.workers.hashing import Numbers, hash_longs

#: `bucket` is equal for rows that belong together.
PACKED = pa.schema([("bucket", pa.int32()), ("packed", pa.binary())])


class PackKind(IntEnum):
    """The kinds of rows in packs, for a task that makes several."""

    STEPS = 0
    OPERATIONS = 1
    BLOCKS = 2
    RAISING = 3
    UNJOINED = 4
    FRAGMENTS = 5
    STRETCHES = 6


#: Packs of several kinds; `rows` is the number of rows of the log in a pack of steps.
KINDS = pa.schema([("kind", pa.int32()), *PACKED, ("rows", pa.int64())])


def buckets_of(keys: Iterable[Numbers], number: int) -> Numbers:
    """For each row, its bucket, by its keys."""
    found: Numbers = (hash_longs(*keys) % np.uint64(number)).astype(np.int64)
    return found


def pack(rows: pa.RecordBatch) -> bytes:
    """Rows as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_batch(rows)
    held: bytes = sink.getvalue().to_pybytes()
    return held


def packs(rows: pa.RecordBatch, buckets: Numbers) -> Iterator[tuple[int, bytes]]:
    """Rows bucket by bucket, as bytes."""
    order = np.argsort(buckets, kind="stable")
    laid_out, named = rows.take(pa.array(order)), buckets[order]
    starts = np.flatnonzero(np.diff(named, prepend=-1))
    for start, end in zip(starts, np.append(starts[1:], len(named)), strict=True):
        yield int(named[start]), pack(laid_out.slice(start, end - start))


def packs_of_kind(packs: pa.RecordBatch, kind: PackKind) -> pa.RecordBatch:
    """The packs of one kind (`KINDS`)."""
    return packs.filter(pc.equal(packs.column("kind"), int(kind)))


def unpack(batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch | None:
    """All rows of some batches with a column `packed`, as one batch; None if there are none."""
    parts = [pa.ipc.open_stream(value.as_buffer()).read_all() for batch in batches for value in batch.column("packed")]
    table = pa.concat_tables(parts) if parts else None
    if table is None or not table.num_rows:
        return None
    (whole,) = table.combine_chunks().to_batches()
    return whole


def packed(parts: Sequence[pa.RecordBatch], keys: Iterable[str], buckets: int) -> Iterator[tuple[int, bytes]]:
    """Rows in `buckets` buckets by some columns. All rows of a task go together, so that packs are few."""
    whole: list[pa.RecordBatch] = pa.Table.from_batches(parts).combine_chunks().to_batches() if parts else []
    for batch in whole:
        rows = NumpyColumns(batch)
        yield from packs(batch, buckets_of((rows[name] for name in keys), buckets))


def unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of packs."""
    whole = unpack(batches)
    if whole is not None:
        yield whole


def packed_rows(schema: pa.Schema, packs: Iterable[tuple[int, bytes]], **said: int) -> Iterator[pa.RecordBatch]:
    """One row of a schema for each pack, with the values common to all; the rest is null."""
    for bucket, held in packs:
        values = {"bucket": bucket, "packed": held, **said}
        arrays = [pa.array([values.get(field.name)], field.type) for field in schema]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
