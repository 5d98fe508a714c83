"""Reads and writes record batches of format v2, of which the log of a partition consists.

A Fetch answer is a run of batches. The first may begin before the offset that was asked for; the last may be cut off.
``decode`` yields the batches with all fields of their headers and stops at a cut. The records inside are read on
demand. A control batch holds a marker: the decision about one producer's transaction.

Decompression is bounded. The library of a codec is imported when the first batch needs it. The CRC is checked while
decoding: a batch that fails has ``crc_ok`` false, and reading its records raises ChecksumError.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from typing import Any, NamedTuple

from wire.compression import Compression, compress, decompress
from wire.errors import BatchError, ChecksumError
from wire.primitives import write_uvarint

HEADER = struct.Struct(">qiibIhiqqqhii")
UNCHECKED, CHECKED = struct.Struct(">qiibI"), struct.Struct(">hiqqqhii")
"""Base offset, length, leader epoch, magic, CRC, attributes, last offset delta, base and maximum timestamp,
producer id, producer epoch, base sequence, record count."""

LOG_OVERHEAD = 12
"""Base offset and length, which the length does not count."""

CHECKED_FROM = 21
"""Where the bytes begin that the CRC covers: with the attributes."""

COMPRESSION_MASK, TIMESTAMP_TYPE, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 0x07, 0x08, 0x10, 0x20, 0x40
"""The bits of the attributes."""

_VARLONG_BITS_MAX = 63


class Marker(IntEnum):
    """The decision in a control batch (EndTxnMarker)."""

    ABORT = 0
    COMMIT = 1


class Record(NamedTuple):
    """A record; key and value are None for null, headers are (name, value) pairs."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch's header and its (compressed) records. -1 stands for none in times and in the producer's fields."""

    base_offset: int
    size: int  # in bytes, with offset and length
    crc_ok: bool
    payload: bytes = field(repr=False)
    leader_epoch: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    @property
    def last_offset(self) -> int:
        """The offset of its last record, also when compaction removed that one."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """Where the log goes on."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def transactional(self) -> bool:
        """Whether it is part of a transaction, or decides one."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def control(self) -> bool:
        """Whether it holds a marker rather than data."""
        return bool(self.attributes & CONTROL)

    @property
    def append_time(self) -> bool:
        """Whether the broker gave all records the time of the append (``max_timestamp_ms``)."""
        return bool(self.attributes & TIMESTAMP_TYPE)

    @property
    def compression(self) -> Compression:
        """How its records are compressed; raises BatchError for a codec that does not exist."""
        try:
            return Compression(self.attributes & COMPRESSION_MASK)
        except ValueError as error:
            raise BatchError(f"batch at {self.base_offset}: no codec {self.attributes & COMPRESSION_MASK}") from error

    def data(self) -> bytes:
        """Its records' bytes, decompressed; raises ChecksumError, CodecError."""
        if not self.crc_ok:
            raise ChecksumError(f"batch at {self.base_offset}: the CRC does not match, its bytes were changed")
        return decompress(self.compression, self.payload, f"batch at {self.base_offset}")

    def marker(self) -> Marker | None:
        """The decision of a control batch; None for data, and for control records that decide no transaction.

        The key is int16 version, int16 type; an unknown version has the same beginning.
        """
        if not self.control:
            return None
        first = next(iter(self.records()), None)
        if first is None or first.key is None or len(first.key) < 4:
            raise BatchError(f"control batch at {self.base_offset} without a key")
        kind = int.from_bytes(first.key[2:4], "big", signed=True)
        return Marker(kind) if kind in (0, 1) else None

    def records(self) -> list[Record]:
        """Its records in order; raises BatchError when their number or lengths differ from the declared ones."""
        data = self.data()
        try:
            records, end = _read_records(data, self)
        except (IndexError, UnicodeDecodeError) as error:
            raise BatchError(f"batch at {self.base_offset}: its records do not end where they should") from error
        if end != len(data):
            raise BatchError(f"batch at {self.base_offset}: {len(data) - end} bytes after its {self.count} records")
        return records


def decode(buffer: bytes, *, check_crc: bool = True) -> Iterator[Batch]:
    """The whole batches of a buffer, in order; stops at a batch that is cut off.

    Raises BatchError for an impossible length and for the formats before v2 (written before 0.11).
    """
    import google_crc32c

    position, end, checksum = 0, len(buffer), google_crc32c.value
    while end - position >= HEADER.size:
        base_offset, length, leader_epoch, magic, crc, attributes, *rest = HEADER.unpack_from(buffer, position)
        if magic != 2:
            raise BatchError(f"batch at {base_offset}: format v{magic}, only v2 can be read")
        stop = position + LOG_OVERHEAD + length
        if length < HEADER.size - LOG_OVERHEAD or rest[-1] < 0:
            raise BatchError(f"batch at {base_offset}: {rest[-1]} records in {length} bytes")
        if stop > end:
            return
        crc_ok = not check_crc or checksum(buffer[position + CHECKED_FROM : stop]) == crc
        payload = buffer[position + HEADER.size : stop]
        yield Batch(base_offset, stop - position, crc_ok, payload, leader_epoch, attributes, *rest)
        position = stop


def encode(
    records: Sequence[tuple[Any, ...]],
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    timestamp_ms: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    compression: Compression = Compression.NONE,
    claims: Mapping[str, int] | None = None,
) -> bytes:
    """A batch of (key, value[, headers]) records with consecutive offsets and one timestamp (default: now).

    ``claims`` replaces fields of the header by other values, right or wrong: ``length``, ``magic``, ``crc``,
    ``attributes``, ``last_offset_delta``, ``max_timestamp_ms``, ``count``. The CRC covers the claims unless it is one.
    """
    import google_crc32c

    now_ms = time.time_ns() // 1_000_000 if timestamp_ms is None else timestamp_ms
    payload = compress(compression, b"".join(map(_record, range(len(records)), records)))
    attributes = int(compression) | transactional * TRANSACTIONAL | control * CONTROL
    said = {
        "length": HEADER.size - LOG_OVERHEAD + len(payload),
        "magic": 2,
        "attributes": attributes,
        "last_offset_delta": max(len(records) - 1, 0),
        "max_timestamp_ms": now_ms,
        "count": len(records),
        **(claims or {}),
    }
    checked = CHECKED.pack(
        said["attributes"],
        said["last_offset_delta"],
        now_ms,
        said["max_timestamp_ms"],
        producer_id,
        producer_epoch,
        base_sequence,
        said["count"],
    )
    crc = said.get("crc", google_crc32c.value(checked + payload))
    return UNCHECKED.pack(base_offset, said["length"], leader_epoch, said["magic"], crc) + checked + payload


def _record(index: int, record: tuple[Any, ...]) -> bytes:
    key, value, *rest = record
    headers = rest[0] if rest else ()
    parts = [b"\x00\x00", _zigzag(index), _sized(key), _sized(value), _zigzag(len(headers))]
    for name, content in headers:
        parts += (_sized(name.encode()), _sized(content))
    body = b"".join(parts)
    return _zigzag(len(body)) + body


def _sized(data: bytes | None) -> bytes:
    return b"\x01" if data is None else _zigzag(len(data)) + data


@lru_cache(maxsize=1 << 14)
def _zigzag(number: int) -> bytes:
    out = bytearray()
    write_uvarint(out, (number << 1) ^ (number >> 63))
    return bytes(out)


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """A zigzag number of up to 64 bits, and where it ends."""
    byte = data[position]
    position += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position
    value, shift = byte & 0x7F, 7
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
        if shift > _VARLONG_BITS_MAX:
            raise BatchError(f"a number at byte {position} of the records is longer than ten bytes")


def _blob(data: bytes, position: int) -> tuple[bytes | None, int]:
    length, position = read_varint(data, position)
    if length < 0:
        return None, position
    stop = position + length
    if stop > len(data):
        raise IndexError
    return data[position:stop], stop


def _read_records(data: bytes, batch: Batch) -> tuple[list[Record], int]:
    records: list[Record] = []
    append, base_offset, base_timestamp = records.append, batch.base_offset, batch.base_timestamp_ms
    fixed_ms = batch.max_timestamp_ms if batch.append_time else None
    position = 0
    for _ in range(batch.count):
        length, start = read_varint(data, position)
        timestamp, position = read_varint(data, start + 1)  # one byte of attributes, unused so far
        offset, position = read_varint(data, position)
        key, position = _blob(data, position)
        value, position = _blob(data, position)
        header_count, position = read_varint(data, position)
        headers: tuple[tuple[str, bytes | None], ...] = ()
        if header_count:
            headers, position = _read_headers(data, position, header_count)
        if position != start + length:
            raise BatchError(f"record {len(records)} at {base_offset} says {length} bytes, has {position - start}")
        time_ms = base_timestamp + timestamp if fixed_ms is None else fixed_ms
        append(Record(base_offset + offset, time_ms, key, value, headers))
    return records, position


def _read_headers(data: bytes, position: int, count: int) -> tuple[tuple[tuple[str, bytes | None], ...], int]:
    if not 0 <= count <= len(data) - position:
        raise BatchError(f"{count} headers declared in {len(data) - position} bytes")
    headers = []
    for _ in range(count):
        name, position = _blob(data, position)
        value, position = _blob(data, position)
        headers.append(((name or b"").decode(), value))
    return tuple(headers), position
