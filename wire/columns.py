"""The records of many batches at once, as numpy columns over one buffer: three to five times as fast as one by one.

Python walks from record to record by their lengths, which only it can (each begins where the one before ends); numpy
then reads each field of all records together. Nothing is copied: keys and values are spans (start, length) in
``buffer``, for whoever needs them to cut out. Give it the batches of a whole Fetch answer: with one batch of one
record at a time it is slower than ``Batch.records``.

Everything that ``Batch.records`` refuses is refused here, except wrong lengths inside record headers, which are left
as one span.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from wire.errors import BatchError
from wire.records import Batch, read_varint

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """One row per record. Lengths are -1 for null; headers reach from ``headers_start`` to ``end``."""

    buffer: bytes = field(repr=False)
    batch: Integers  # its batch's place in the sequence that was given
    offset: Integers
    timestamp_ms: Integers
    key_start: Integers
    key_length: Integers
    value_start: Integers
    value_length: Integers
    header_count: Integers
    headers_start: Integers
    end: Integers

    def __len__(self) -> int:
        return len(self.offset)

    def key(self, row: int) -> bytes | None:
        """A record's key."""
        start, length = int(self.key_start[row]), int(self.key_length[row])
        return None if length < 0 else self.buffer[start : start + length]

    def value(self, row: int) -> bytes | None:
        """A record's value."""
        start, length = int(self.value_start[row]), int(self.value_length[row])
        return None if length < 0 else self.buffer[start : start + length]


def columns(batches: Sequence[Batch]) -> Columns:
    """The records of the batches, control records included; raises BatchError, ChecksumError, CodecError."""
    pieces: list[bytes] = []
    starts: list[int] = []
    ends: list[int] = []
    before = 0
    for batch in batches:
        data = batch.data()
        try:
            position = _walk(data, batch.count, before, starts, ends)
        except IndexError as error:
            raise BatchError(f"batch at {batch.base_offset}: its records do not end where they should") from error
        if position != len(data):
            raise BatchError(f"batch at {batch.base_offset}: {len(data) - position} bytes behind its records")
        pieces.append(data)
        before += position
    rows = np.repeat(np.arange(len(batches)), [batch.count for batch in batches])
    try:
        return _fields(b"".join(pieces), np.array(starts, np.int64), np.array(ends, np.int64), rows, batches)
    except IndexError as error:
        raise BatchError(f"records do not end where they should in {_range(batches)}") from error


def _walk(data: bytes, count: int, before: int, starts: list[int], ends: list[int]) -> int:
    """Note where each record begins, behind its length, and ends, in a buffer with ``before`` bytes before the data.

    Returns where the last one ends; a length that is negative or leads beyond the data ends in an IndexError, here or
    in the fields.
    """
    position = 0
    for _ in range(count):
        byte = data[position]
        if byte < 0x80:  # nearly all lengths have one byte or two
            length, start = byte >> 1, position + 1
        elif (second := data[position + 1]) < 0x80:
            length, start = ((byte & 0x7F) | second << 7) >> 1, position + 2
        else:
            length, start = read_varint(data, position)
        position = start + length
        starts.append(before + start)
        ends.append(before + position)
    return position


def _fields(buffer: bytes, start: Integers, end: Integers, batch: Integers, batches: Sequence[Batch]) -> Columns:
    octets = np.frombuffer(buffer, dtype=np.uint8)
    timestamp_delta, position = _varints(octets, start + 1)  # one byte of attributes, unused so far
    offset_delta, position = _varints(octets, position)
    key_length, key_start, position = _spans(octets, position)
    value_length, value_start, position = _spans(octets, position)
    header_count, position = _varints(octets, position)
    if ((position > end) | ((header_count == 0) & (position != end)) | (header_count < 0)).any():
        raise BatchError(f"records are shorter than their fields in {_range(batches)}")
    of = {
        name: np.array([getattr(each, name) for each in batches], dtype=np.int64)[batch]
        for name in ("base_offset", "base_timestamp_ms", "max_timestamp_ms", "append_time")
    }
    return Columns(
        buffer=buffer,
        batch=batch,
        offset=of["base_offset"] + offset_delta,
        timestamp_ms=np.where(
            of["append_time"] == 1, of["max_timestamp_ms"], of["base_timestamp_ms"] + timestamp_delta
        ),
        key_start=key_start,
        key_length=key_length,
        value_start=value_start,
        value_length=value_length,
        header_count=header_count,
        headers_start=position,
        end=end,
    )


def _varints(octets: NDArray[np.uint8], position: Integers) -> tuple[Integers, Integers]:
    """The zigzag number at each position, and where each ends; raises IndexError behind the end of the buffer."""
    byte = octets[position]
    value = (byte & 0x7F).astype(np.uint64)
    position = position + 1
    longer = np.flatnonzero(byte >= 0x80)
    shift = 7
    while longer.size:
        if shift > 63:
            raise BatchError(f"a number at byte {position[longer[0]]} of the records is longer than ten bytes")
        byte = octets[position[longer]]
        value[longer] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
        position[longer] += 1
        longer = longer[byte >= 0x80]
        shift += 7
    return (value >> np.uint64(1)).astype(np.int64) ^ -(value & np.uint64(1)).astype(np.int64), position


def _spans(octets: NDArray[np.uint8], position: Integers) -> tuple[Integers, Integers, Integers]:
    """Length and start of the bytes at each position, and where they end."""
    length, start = _varints(octets, position)
    if (length > octets.size).any():
        raise IndexError
    return np.maximum(length, -1), start, start + np.maximum(length, 0)


def _range(batches: Sequence[Batch]) -> str:
    return f"the batches at {batches[0].base_offset} to {batches[-1].base_offset}" if batches else "no batches"
