"""Record values → identity columns, vectorised: values of many records become one byte matrix, fields are slices of it.

The layout is `verification.vocabulary.identity.LAYOUT`. This module and `identity.decode` are two implementations of it
and must agree on every input; a property test compares them. It runs in Spark's workers together with the readers.

Values are spans of one buffer, as in `wire.columns`, and no Python object is made of a record. Neighbours have most of
their bytes in common: the run, the process, leading zeros. So all values are compared with the first one. Only the places
in which any value differs are computed row by row, for checksums (CRC-32 is linear) as for numbers.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from verification.vocabulary.identity import IDENTITY_LENGTH, LAYOUT, MAGIC, RecordKind

Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]
Sums = npt.NDArray[np.uint32]

BODY_LENGTH = IDENTITY_LENGTH - 8
#: Field of the layout → column of the dataframe, where they differ.
COLUMN = {"run": "identity_run", "topic_index": "intended_topic_index"}
#: The columns that compare two readers.
DIGESTS = ("digest", "identity_digest")
#: Columns of 64 bits; the other numbers have 32.
_LONG = frozenset({"operation", "send_order", "source_offset"})
_KINDS = tuple(str(kind) for kind in RecordKind)
_KIND_CODES = np.full(256, -1, np.int32)
_KIND_CODES[[ord(kind) for kind in _KINDS]] = np.arange(len(_KINDS))
_ZERO, _NINE, _MINUS = ord("0"), ord("9"), ord("-")
_WORD = 1 << 64
_CRC_MASK = 0xFFFFFFFF
#: CRC-32 of every byte (zlib's polynomial), to continue a sum.
_TABLE: Sums = np.array([zlib.crc32(bytes([byte]), _CRC_MASK) ^ _CRC_MASK for byte in range(256)], dtype=np.uint32)
_HEX: npt.NDArray[np.uint16] = np.frombuffer(b"".join(b"%02x" % byte for byte in range(256)), dtype=np.uint16)
#: With more differing places, zlib's own sum, row by row, is faster than a table for each place.
_PLACES_MAX = 48
#: At most so many bytes after the identity are added to all sums at once; zlib is faster with more.
_FILLER_MAX = 64
#: For so many sizes of values, because each size takes a pass over all lengths.
_SIZES_MAX = 8


def identity_columns(values: Sequence[bytes | None]) -> dict[str, pa.Array]:
    """The identity columns, `valid` and the digests of a batch of values, each as long as `values`."""
    length = np.fromiter((-1 if value is None else len(value) for value in values), np.int64, len(values))
    start = np.cumsum(np.maximum(length, 0)) - np.maximum(length, 0)
    return identity_spans(b"".join(value for value in values if value is not None), start, length)


def referring_columns(values: dict[str, pa.Array], texts: Sequence[bytes | None]) -> dict[str, pa.Array]:
    """The columns of values, with the identities of other texts, one for each; the digests remain those of the values."""
    return {**identity_columns(texts), **{name: values[name] for name in DIGESTS}}


def identity_spans(buffer: bytes, start: Numbers, length: Numbers) -> dict[str, pa.Array]:
    """The same of values that lie in a buffer; a length of -1 is null."""
    size, ours = len(start), length >= IDENTITY_LENGTH
    if not ours.any():
        columns = {COLUMN.get(name, name): pa.nulls(size, _type_of(name)) for name, _, _ in LAYOUT[:-1]}
        columns["valid"] = pa.repeat(pa.scalar(False), size)
        return {**columns, **_digests(buffer, start, length, np.zeros(size, np.uint32))}
    # Values that are too short borrow the bytes of a longer one and get null, so that all arrays have all rows.
    heads = Heads.of(buffer, np.where(ours, start, start[ours.argmax()]))
    sums = heads.sums()
    claimed = heads.claimed(sums)
    found, fits = heads.fields()
    valid = ours & fits & claimed
    present = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    columns = {}
    for name, _, _ in LAYOUT[:-1]:
        if name == "run":
            column = heads.texts(name, valid, present)
        else:
            column = pa.Array.from_buffers(
                pa.from_numpy_dtype(found[name].dtype), size, [present, pa.py_buffer(found[name])]
            )
        columns[COLUMN.get(name, name)] = pa.array(_KINDS, type=pa.string()).take(column) if name == "kind" else column
    columns["valid"] = pa.array(valid)
    return {**columns, **_digests(buffer, start, length, heads.continued(sums, claimed))}


def _type_of(name: str) -> pa.DataType:
    if name in ("run", "kind"):
        return pa.string()
    return pa.int64() if name in _LONG else pa.int32()


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """The first 96 bytes of some values, at least one, and the column of bytes at each place where they differ."""

    matrix: Bytes
    first: bytes
    places: dict[int, Bytes]

    @classmethod
    def of(cls, buffer: bytes, start: Numbers) -> Heads:
        """The heads of values of at least 96 bytes that begin at some bytes of a buffer."""
        matrix = _items(buffer, start, IDENTITY_LENGTH)
        # Transposed by words of eight bytes, which is faster to scan than rows or columns of bytes.
        words = np.ascontiguousarray(matrix.view(np.uint64).T)
        differs = np.bitwise_or.reduce(words ^ words[:, :1], axis=1).view(np.uint8)
        octets = words.view(np.uint8)
        places = {place: octets[place // 8, place % 8 :: 8].copy() for place in np.flatnonzero(differs).tolist()}
        return cls(matrix=matrix, first=matrix[0].tobytes(), places=places)

    def sums(self) -> Sums:
        """CRC-32 of the body of each."""
        within = [place for place in self.places if place < BODY_LENGTH]
        if len(within) > _PLACES_MAX:
            bodies = np.ascontiguousarray(self.matrix[:, :BODY_LENGTH]).view(f"V{BODY_LENGTH}").ravel().tolist()
            return np.fromiter(map(zlib.crc32, bodies), np.uint32, len(bodies))
        found = np.full(len(self.matrix), zlib.crc32(self.first[:BODY_LENGTH]), np.uint32)
        for place in within:
            adds = _adds(place)
            found ^= (adds ^ adds[self.first[place]])[self.places[place]]
        return found

    def continued(self, sums: Sums, claimed: Flags) -> Sums:
        """CRC-32 of the whole head of each, from that of its body; `claimed` says whether the head holds that one."""
        found = _looked_up(sums, _of_itself())
        others = np.flatnonzero(~claimed)
        found[others] = _continued(sums[others], self.matrix[others, BODY_LENGTH:])
        return found

    def claimed(self, sums: Sums) -> Flags:
        """Whether each begins with the magic and has its checksum after the body."""
        said = np.ascontiguousarray(self.matrix[:, BODY_LENGTH:]).view(np.uint64).ravel()
        digits = _HEX[sums.astype(">u4").view(np.uint8)].view(np.uint64)
        holds: Flags = said == digits
        for place, byte in enumerate(MAGIC.encode("ascii")):
            holds &= self._at(place) == byte
        return holds

    def fields(self) -> tuple[dict[str, npt.NDArray[Any]], Flags]:
        """All fields but texts, kinds as their place in `_KINDS`, and whether every byte was legal."""
        fits = np.ones(len(self.matrix), np.bool_)
        found: dict[str, npt.NDArray[Any]] = {}
        for name, start, width in LAYOUT[:-1]:
            if name == "kind":
                found[name] = _KIND_CODES[self._at(start)] + np.zeros(len(self.matrix), np.int32)
                fits &= found[name] >= 0
            elif name == "run":
                for place in range(start, start + width):
                    fits &= self._at(place) < 0x80
            else:
                found[name] = self._number(start, width, np.dtype(np.int64 if name in _LONG else np.int32), fits)
        np.maximum(found["kind"], 0, out=found["kind"])
        return found, fits

    def texts(self, name: str, valid: Flags, present: pa.Buffer | None) -> pa.Array:
        """A text field without its padding, null where not valid; `present` is `valid` as Arrow has it, or None for all."""
        start, width = next((start, width) for field, start, width in LAYOUT if field == name)
        if not any(start <= place < start + width for place in self.places) and valid.any():
            text = self.first[start : start + width].decode("ascii").strip()
            same = pa.repeat(pa.scalar(text, pa.string()), len(valid))
            return pa.Array.from_buffers(pa.string(), len(valid), [present, *same.buffers()[1:]])
        field = np.ascontiguousarray(self.matrix[:, start : start + width]).view(f"V{width}").ravel().tolist()
        texts = [each.decode("ascii").strip() if ok else None for each, ok in zip(field, valid, strict=True)]
        return pa.array(texts, type=pa.string())

    def _at(self, place: int) -> Bytes:
        """The bytes at a place: one for each value, or the one that all have."""
        return self.places[place] if place in self.places else np.frombuffer(self.first, np.uint8, 1, place)

    def _number(self, start: int, width: int, dtype: np.dtype[Any], fits: Flags) -> npt.NDArray[Any]:
        """A decimal field, possibly with a sign in its first place; rows with other bytes are removed from `fits`."""
        negative, common = self._at(start) == _MINUS, 0
        number: npt.NDArray[Any] | None = None
        for place in range(start, start + width):
            digit = self._at(place) - np.uint8(_ZERO)
            if place == start:
                digit = np.where(negative, np.uint8(0), digit)
            if place in self.places or digit[0] > _NINE - _ZERO:
                fits &= digit <= _NINE - _ZERO
            if place not in self.places:
                common += int(digit[0]) * 10 ** (start + width - 1 - place)
            if number is not None:
                number *= number.dtype.type(10)
            if place in self.places:
                if number is None:
                    # Nine digits fit 32 bits, which are twice as fast.
                    number = np.zeros(len(fits), np.uint32 if start + width - place <= 9 else np.uint64)
                number += digit
        # Nineteen nines do not fit 64 bits; they become some number and raise nothing.
        whole = np.full(len(fits), common % _WORD, np.uint64)
        if number is not None:
            whole += number
        signed: npt.NDArray[Any] = whole.astype(dtype)
        if negative.any():
            np.negative(signed, out=signed, where=negative)
        return signed


@cache
def _adds(place: int) -> Sums:
    """The change that each byte at a place of the body makes to the checksum of zeros."""
    zeros = zlib.crc32(bytes(BODY_LENGTH))
    body, found = bytearray(BODY_LENGTH), np.zeros(256, np.uint32)
    for byte in range(256):
        body[place] = byte
        found[byte] = zlib.crc32(body) ^ zeros
    return found


def _digests(buffer: bytes, start: Numbers, length: Numbers, head: Sums) -> dict[str, pa.Array]:
    """`digest` and `identity_digest` of every value (see `verification.sources.schema`); `head` is that of whole heads."""
    ours = length >= IDENTITY_LENGTH
    whole = head.copy()
    left = length != IDENTITY_LENGTH
    sizes = _distinct(length[ours & left])
    for size in sizes[sizes <= IDENTITY_LENGTH + _FILLER_MAX][:_SIZES_MAX].tolist():
        rows = np.flatnonzero(length == size)
        fillers = _items(buffer, start[rows] + IDENTITY_LENGTH, size - IDENTITY_LENGTH)
        whole[rows] = _filled(head[rows], fillers)
        left[rows] = False
    rows = np.flatnonzero(left)
    view = memoryview(buffer)
    begins = (start + np.where(ours, IDENTITY_LENGTH, 0))[rows].tolist()
    ends = (start + np.maximum(length, 0))[rows].tolist()
    pieces = [view[begin:end] for begin, end in zip(begins, ends, strict=True)]
    sums = np.where(ours, head, np.uint32(0))
    whole[rows] = np.fromiter(map(zlib.crc32, pieces, sums[rows].tolist()), np.uint32, len(rows))
    head = np.where(ours, head, whole)
    return {"digest": pa.array(whole.astype(np.int64)), "identity_digest": pa.array(head.astype(np.int64))}


def _items(buffer: bytes, start: Numbers, size: int) -> Bytes:
    """`size` bytes from each of some starts in a buffer, as rows of a matrix."""
    # An item begins at every byte of the buffer, so that each is copied whole.
    items: npt.NDArray[np.void] = np.ndarray((len(buffer) - size + 1,), f"V{size}", buffer, strides=(1,))
    found: Bytes = items[start].view(np.uint8).reshape(len(start), size)
    return found


def _distinct(numbers: Numbers) -> Numbers:
    """Each number once; mostly there is one."""
    alike = not numbers.size or numbers.min() == numbers.max()
    return numbers[:1] if alike else np.unique(numbers)


def _filled(sums: Sums, fillers: Bytes) -> Sums:
    """`_continued`, but faster where all fillers are the same; mostly they are dots."""
    filler = fillers[0].tobytes()
    if (fillers != fillers[0]).any():
        return _continued(sums, fillers)
    found = _looked_up(sums, _of_filler(len(filler)))
    found ^= np.uint32(zlib.crc32(filler) ^ zlib.crc32(bytes(len(filler))))
    return found


def _continued(sums: Sums, more: Bytes) -> Sums:
    """The sums continued over the same number of further bytes for each."""
    register = ~sums
    for place in more.T:
        register = _TABLE[(register ^ place).astype(np.uint8)] ^ (register >> np.uint32(8))
    return ~register


def _looked_up(sums: Sums, table: Sums) -> Sums:
    """A linear function of sums, from the table of what each of their bytes contributes (see `_each_byte`)."""
    octets = sums.astype("<u4").view(np.uint8)
    found: Sums = table[0][octets[0::4]]
    for place in (1, 2, 3):
        found ^= table[place][octets[place::4]]
    return found


def _each_byte(function: Callable[[int], int]) -> Sums:
    """The table of such a function: contributions of the four bytes of a sum, the lowest first, which includes that of 0."""
    none = function(0)
    found = [[function(byte << 8 * place) ^ none for byte in range(256)] for place in range(4)]
    found[0] = [each ^ none for each in found[0]]
    return np.array(found, np.uint32)


@cache
def _of_itself() -> Sums:
    """The table for continuing a sum over its own eight digits: each of its bytes decides two of them."""
    return _each_byte(lambda sum_: zlib.crc32(b"%08x" % sum_, sum_))


@cache
def _of_filler(size: int) -> Sums:
    """The table for continuing a sum over `size` zero bytes."""
    return _each_byte(lambda sum_: zlib.crc32(bytes(size), sum_))
