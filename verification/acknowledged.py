"""Which operations the files of acknowledgements speak of, read so that nothing in them stays unread.

A large run has as many acknowledgements as records, and parsing each of them takes longer than everything else that is
done before a judgement. A line as the recorder writes it says by its shape alone that it is whole; such lines are
recognised together, by one regular expression, and only the others are parsed.

Free of pyspark.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from io import BufferedIOBase
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from verification.errors import UnfitEvidenceError
from verification.fitness import Starts

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
            heads = pc.struct_field(pc.extract_regex(pc.binary_slice(lines, 0, _HEAD_BYTES), _HEAD), "operation")
            unusual = np.flatnonzero(~_usual(lines, starts))
            found = heads.cast(pa.string()).cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False).copy()
            for each in unusual:
                found[each] = _parsed(lines[each].as_py(), f"{path}: line {number + each + 1}", starts, path)
            number += len(lines)
            yield found


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


def _usual(lines: pa.BinaryArray, starts: Starts) -> NDArray[np.bool_]:
    """Which lines need no parsing. None does without, where offsets are to be held against the beginning of a log."""
    if starts:
        return np.zeros(len(lines), dtype=np.bool_)
    usual: NDArray[np.bool_] = pc.match_substring_regex(lines, _USUAL).to_numpy(zero_copy_only=False)
    return usual


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
