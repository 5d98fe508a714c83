"""Reads the files of acknowledgements: the operations that a file covers, and the acknowledgement of each record.

A large run has as many acknowledgements as records, and every line is read before a judgement. So msgspec decodes lines
straight into typed values: 10^6 acknowledgements take 0.4 to 0.7 s of processor time, with one or a hundred in a line.
The reference judge has its own reader (`verification.evidence.rows`).

Free of pyspark.
"""

from __future__ import annotations

import gzip
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from io import BufferedIOBase, BufferedReader
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
from msgspec import DecodeError, Meta, Struct
from msgspec.json import Decoder
from numpy.typing import NDArray

from verification.vocabulary.errors import UnfitEvidenceError
from verification.vocabulary.history import Outcome
from verification.vocabulary.strict_json import Int64

#: Bytes of lines that are decoded together. With a megabyte, Python's collector of cycles takes twice the time of decoding.
PIECE_BYTES = 32 << 10
#: So many pieces make a batch: for a small one NumPy's calls cost more than its rows.
PIECES_TOGETHER = 32
#: An acknowledgement, and the operation that it belongs to.
ACKS = pa.schema(
    [
        ("operation", pa.int64()),
        *[(name, pa.int32()) for name in ("index", "topic_index", "partition")],
        ("offset", pa.int64()),
        ("outcome", pa.string()),
    ]
)
Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
#: Numbers of operations.
Operations = NDArray[np.int64]


class Ack(Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """The acknowledgement of one record: an array of five entries."""

    index: Int32
    topic_index: Int32
    partition: Int32
    offset: Int64
    outcome: str


class AckLine(Struct, gc=False):
    """One line of a file: the acknowledgements of one operation."""

    operation: Int64
    acks: list[Ack]


#: Not strict: a client may write numbers as texts.
_DECODER = Decoder(AckLine, strict=False)


def operations(path: Path, starts: Mapping[tuple[int, int], int]) -> Operations:
    """The operation of each line of a file, which is read to its end.

    `starts` are the partitions whose logs do not begin at 0 (`assumptions.log_starts`). Raises UnfitEvidenceError for a
    line that holds no acknowledgements, or one below the start of its log; and the error of gzip for a file that is cut.
    """
    found = [np.empty(0, np.int64)]
    number = 1
    with gzip.open(path, "rb") as file:
        for texts in _pieces(file):
            lines = _checked(texts, path, number)
            if starts:
                _check_starts(lines, starts, path)
            found.append(_operations(lines))
            number += len(lines)
    return np.concatenate(found)


def first_missing(wanted: Sequence[int], covered: Operations) -> int | None:
    """The lowest of some operations that a file does not cover, None when it covers all."""
    missing = np.setdiff1d(np.array(wanted, np.int64), covered)
    return int(missing[0]) if len(missing) else None


def acks(path: Path, wanted: Collection[int] | None = None) -> Iterator[pa.RecordBatch]:
    """The acknowledgements (`ACKS`) in a file, of some operations or of all; some thousand rows at a time.

    Raises ValueError for a line that `operations` refuses, and the error of gzip for a file that is cut.
    """
    with gzip.open(path, "rb") as file:
        batches = (_batch([_DECODER.decode(text) for text in texts], wanted) for texts in _pieces(file))
        while together := list(islice(batches, PIECES_TOGETHER)):
            yield from pa.Table.from_batches(together).combine_chunks().to_batches()


def _pieces(file: BufferedIOBase) -> Iterator[list[bytes]]:
    """The lines of a file, some at a time."""
    return iter(partial(BufferedReader(file).readlines, PIECE_BYTES), [])


def _checked(texts: Sequence[bytes], path: Path, number: int) -> list[AckLine]:
    """The lines of a file from one of its numbers on."""
    lines: list[AckLine] = []
    try:
        for line in texts:
            lines.append(_DECODER.decode(line))
    except (DecodeError, UnicodeDecodeError) as error:
        raise UnfitEvidenceError(f"{path}: line {number + len(lines)} holds no acknowledgements ({error})") from error
    return lines


def _check_starts(lines: Sequence[AckLine], starts: Mapping[tuple[int, int], int], path: Path) -> None:
    for ack in (each for line in lines for each in line.acks):
        start = starts.get((ack.topic_index, ack.partition), 0)
        if ack.outcome == Outcome.OK and 0 <= ack.offset < start:
            raise UnfitEvidenceError(
                f"{path} has an acknowledged offset {ack.offset}, but the log of partition {ack.partition} of topic "
                f"{ack.topic_index} begins at {start}; records that were deleted look like lost ones"
            )


def _operations(lines: Sequence[AckLine]) -> Operations:
    return np.array([line.operation for line in lines], np.int64)


def _batch(lines: Sequence[AckLine], wanted: Collection[int] | None) -> pa.RecordBatch:
    kept = lines if wanted is None else [line for line in lines if line.operation in wanted]
    rows = [ack for line in kept for ack in line.acks]
    columns: list[object] = [np.repeat(_operations(kept), [len(line.acks) for line in kept])]
    columns += [list(map(attrgetter(name), rows)) for name in ACKS.names[1:]]
    arrays = [pa.array(values, kind) for values, kind in zip(columns, ACKS.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=ACKS)
