"""What the files of acknowledgements say: of which operations, and of which records.

A large run has as many acknowledgements as records, and parsing each of them takes longer than everything else that is
done before a judgement. A line as the recorder writes it says by its shape alone that it is whole; such lines are
recognised together, by one regular expression, and only the others are parsed. Where each record is asked for, all such
lines together become one table of comma-separated values, which Arrow reads in a tenth of the time of a JSON parser.

Free of pyspark.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from io import BufferedIOBase
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv

from verification.evidence.assumptions import Starts
from verification.vocabulary.errors import UnfitEvidenceError

#: How many bytes of lines are looked at together, as long as no line is longer.
CHUNK = 1 << 20
#: index, topic_index, partition, offset, outcome
ACK_WIDTH = 5
#: Within the 64 bits that an operation's number has.
_OPERATION = "-?(?:0|[1-9][0-9]{0,17})"
_NUMBER = "-?(0|[1-9][0-9]*)"
_ACK = rf'\[({_NUMBER}, ?){{4}}"[a-z]+"\]'
#: Valid JSON with `operation` and any number of acknowledgements of `ACK_WIDTH` entries, in the syntax of RE2.
_USUAL = rf'^\{{"operation": ?{_OPERATION}, ?"acks": ?\[({_ACK}(, ?{_ACK})*)?\]\}}\n?$'
#: The head of such a line, and how long it can be.
_HEAD = rf'^\{{"operation": ?(?P<operation>{_OPERATION}),'
_HEAD_BYTES = 40
_NEWLINE = ord("\n")
#: An acknowledgement, and the operation that it is of.
ACKS = pa.schema(
    [
        ("operation", pa.int64()),
        *[(name, pa.int32()) for name in ("index", "topic_index", "partition")],
        ("offset", pa.int64()),
        ("outcome", pa.string()),
    ]
)
#: Operations, one for each line of a file.
Spoken = NDArray[np.int64]


def spoken(path: Path, starts: Starts) -> Spoken:
    """All operations that a file speaks of; raises what `operations` raises."""
    return np.concatenate([np.empty(0, np.int64), *operations(path, starts)])


def first_unspoken(wanted: Sequence[int], said: Spoken) -> int | None:
    """The lowest of some operations that a file does not speak of, None when it speaks of all."""
    missing = np.setdiff1d(np.array(wanted, np.int64), said)
    return int(missing[0]) if len(missing) else None


def operations(path: Path, starts: Starts) -> Iterator[Spoken]:
    """The operations that a file speaks of, read to its end; one for each line, some lines at a time.

    Raises UnfitEvidenceError for a line that holds no acknowledgements, or one below the beginning of its log; and what
    gzip raises for a file that is cut.
    """
    number = 0
    with gzip.open(path, "rb") as file:
        for lines in _lines(file):
            found, usual = _operations(lines)
            for each in range(len(lines)) if starts else np.flatnonzero(~usual):
                found[each] = _parsed(lines[each].as_py(), f"{path}: line {number + each + 1}", starts, path)
            number += len(lines)
            yield found


def acks(path: Path, wanted: Spoken | None = None) -> Iterator[pa.RecordBatch]:
    """The acknowledgements (`ACKS`) in a file that can be judged, of some operations or of all; some lines at a time.

    Raises ValueError, KeyError and TypeError for what `operations` refuses, and what gzip raises for a file that is cut.
    """
    with gzip.open(path, "rb") as file:
        for every in _lines(file):
            # Of the lines that say their operation first only those of the wanted ones are gone through at all.
            lines = every if wanted is None else every.filter(pc.is_in(_heads(every), pa.array([*wanted, None])))
            found, usual = _operations(lines)
            if usual.any():
                yield _usual_acks(lines.filter(pa.array(usual)), found[usual])
            bodies = [json.loads(line) for line in lines.filter(pa.array(~usual)).to_pylist()]
            yield from (_acks(body) for body in bodies if wanted is None or int(body["operation"]) in wanted)


def _heads(lines: pa.BinaryArray) -> pa.Int64Array:
    """The operation with which each line begins, null where it begins otherwise."""
    found = pc.extract_regex(pc.binary_slice(lines, 0, _HEAD_BYTES), _HEAD)
    return pc.struct_field(found, "operation").cast(pa.string()).cast(pa.int64())


def _operations(lines: pa.BinaryArray) -> tuple[Spoken, NDArray[np.bool_]]:
    """The operation of each line that needs no parsing, and which those are."""
    usual: NDArray[np.bool_] = pc.match_substring_regex(lines, _USUAL).to_numpy(zero_copy_only=False)
    return _heads(lines).fill_null(0).to_numpy(zero_copy_only=False).copy(), usual


def _usual_acks(lines: pa.BinaryArray, found: Spoken) -> pa.RecordBatch:
    """The acknowledgements in lines that need no parsing; `found` are their operations."""
    values = lines.to_pylist()
    # In such a line a quote stands around two names and around every outcome.
    numbers = np.array([line.count(b'"') // 2 - 2 for line in values])
    text = b"".join(line[line.index(b"[") :] for line, some in zip(values, numbers, strict=True) if some)
    text = text.translate(None, b' {}\n"').replace(b"]]", b"\n").replace(b"],[", b"\n").replace(b"[[", b"")
    if not text:
        return pa.RecordBatch.from_pylist([], ACKS)
    table = csv.read_csv(
        pa.py_buffer(text),
        read_options=csv.ReadOptions(column_names=ACKS.names[1:], use_threads=False),
        convert_options=csv.ConvertOptions(column_types=dict(zip(ACKS.names[1:], ACKS.types[1:], strict=True))),
    )
    (batch,) = table.add_column(0, ACKS[0].name, pa.array(np.repeat(found, numbers))).combine_chunks().to_batches()
    return batch


def _acks(body: dict[str, Any]) -> pa.RecordBatch:
    """The acknowledgements in a line that was parsed."""
    rows = [(body["operation"], *ack) for ack in body["acks"]]
    columns = zip(*rows, strict=True) if rows else ((),) * len(ACKS)
    kinds = [str if pa.types.is_string(kind) else int for kind in ACKS.types]
    arrays = [
        pa.array([make(value) for value in column], kind)
        for make, column, kind in zip(kinds, columns, ACKS.types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=ACKS)


def _lines(file: BufferedIOBase) -> Iterator[pa.BinaryArray]:
    """The lines of a file, some at a time."""
    rest = b""
    while chunk := file.read(CHUNK):
        text = rest + chunk
        whole = text.rfind(b"\n") + 1
        rest = text[whole:]
        yield _split(text[:whole])
    if rest:
        yield _split(rest + b"\n")


def _split(text: bytes) -> pa.BinaryArray:
    """The lines of a text that ends with one, each with its end."""
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == _NEWLINE) + 1
    offsets = pa.py_buffer(np.concatenate([[0], ends]).astype(np.int32))
    return pa.BinaryArray.from_buffers(pa.binary(), len(ends), [None, offsets, pa.py_buffer(text)])


def _parsed(line: bytes, where: str, starts: Starts, path: Path) -> int:
    try:
        body = json.loads(line)
        fits = isinstance(body["acks"], list) and all(len(ack) == ACK_WIDTH for ack in body["acks"])
        operation = int(np.int64(int(body["operation"])))
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise UnfitEvidenceError(f"{where} holds no acknowledgements ({error})") from error
    if not fits:
        raise UnfitEvidenceError(f"{where} has an acknowledgement without {ACK_WIDTH} entries")
    starts.check(body["acks"], path)
    return operation
