"""Reads and writes the protocol's primitive types: fixed numbers, variable-length numbers, strings, bytes and uuids.

A ``Reader`` moves over one buffer and never past its end. Every declared length is compared with the bytes that remain
before anything is allocated, so a wrong length costs an error and no memory. Writers refuse values that do not fit and
say why; their callers add the name of the field. ``Raw`` bypasses the check: its bytes go out as they are.
"""

from __future__ import annotations

import struct
from typing import Any, Protocol
from uuid import UUID

from wire.errors import FieldError, OversizedError, ProtocolError, TruncatedError


class Raw(bytes):
    """Bytes that take the place of a field, a structure or a whole body, unchecked, as they are."""

    __slots__ = ()


class Reader:
    """A position in a buffer, moved forward by every read."""

    __slots__ = ("buffer", "end", "position")

    def __init__(self, buffer: bytes, position: int = 0) -> None:
        self.buffer = buffer
        self.position = position
        self.end = len(buffer)

    @property
    def remaining(self) -> int:
        """How many bytes are left."""
        return self.end - self.position

    def take(self, count: int) -> bytes:
        """The next bytes; raises TruncatedError when there are fewer."""
        start = self.position
        if count > self.end - start:
            raise TruncatedError(f"{count} bytes declared at byte {start}, {self.end - start} are left")
        self.position = start + count
        return self.buffer[start : start + count]

    def uvarint(self) -> int:
        """An unsigned variable-length number of at most 32 bits."""
        value = shift = 0
        while True:
            if self.position >= self.end:
                raise TruncatedError(f"a number is cut off at byte {self.position}")
            byte = self.buffer[self.position]
            self.position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > 28:
                raise ProtocolError(f"a number at byte {self.position} is longer than five bytes")
        if value > 0xFFFFFFFF:
            raise ProtocolError(f"the number before byte {self.position} does not fit 32 bits")
        return value


def write_uvarint(out: bytearray, value: int) -> None:
    """Append an unsigned variable-length number."""
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)


class Codec(Protocol):
    """How one type is written and read; ``default`` makes the value of a field that is not given."""

    def default(self) -> Any:
        """A value for a field that is not given."""

    def write(self, out: bytearray, value: Any) -> None:
        """Append the value; raises FieldError when it does not fit."""

    def read(self, source: Reader) -> Any:
        """The value at the reader's position; raises ProtocolError."""


class Number:
    """A number of fixed size: bool, int8 … int64, uint16, uint32, float64."""

    def __init__(self, name: str, layout: str, zero: bool | int | float) -> None:
        self.name, self.zero = name, zero
        self.layout = struct.Struct(layout)
        self.kinds: tuple[type, ...] = (int, float) if isinstance(zero, float) else (type(zero),)

    def default(self) -> bool | int | float:
        """False or zero."""
        return self.zero

    def write(self, out: bytearray, value: Any) -> None:
        """Append it in network order."""
        if not isinstance(value, self.kinds) or (value is True or value is False) != (self.name == "bool"):
            raise FieldError(f"{value!r} is not of type {self.name}")
        try:
            out += self.layout.pack(value)
        except (struct.error, OverflowError) as error:
            raise FieldError(f"{value!r} does not fit {self.name}") from error

    def read(self, source: Reader) -> Any:
        """Take it in network order."""
        start = source.position
        if source.end - start < self.layout.size:
            raise TruncatedError(f"{self.name} at byte {start}, {source.end - start} bytes are left")
        source.position = start + self.layout.size
        return self.layout.unpack_from(source.buffer, start)[0]


class Identifier:
    """A uuid: sixteen bytes, ``uuid.UUID`` here."""

    def default(self) -> UUID:
        """The zero uuid, which is Kafka's "none"."""
        return UUID(int=0)

    def write(self, out: bytearray, value: Any) -> None:
        """Append its sixteen bytes."""
        if not isinstance(value, UUID):
            raise FieldError(f"{value!r} is not a uuid")
        out += value.bytes

    def read(self, source: Reader) -> UUID:
        """Take sixteen bytes."""
        return UUID(bytes=source.take(16))


class Length:
    """The length before strings, bytes and lists; None stands for null where the field may be null.

    Compact (flexible versions): an unsigned varint of length + 1, 0 for null. Classic: a signed int16 or int32, -1 for
    null.
    """

    def __init__(self, *, compact: bool, nullable: bool, short: bool = False) -> None:
        self.compact, self.nullable, self.short = compact, nullable, short
        self.fixed = struct.Struct(">h" if short else ">i")

    def write(self, out: bytearray, length: int | None) -> None:
        """Append it; raises FieldError for a null that is not allowed and a length that does not fit."""
        if length is None and not self.nullable:
            raise FieldError("null is not allowed")
        if self.short and length is not None and length > 0x7FFF:
            raise FieldError(f"{length} bytes of text; the protocol allows 32767")
        if self.compact:
            write_uvarint(out, 0 if length is None else length + 1)
        else:
            out += self.fixed.pack(-1 if length is None else length)

    def read(self, source: Reader) -> int | None:
        """Take it and compare it with the bytes that remain: each element takes at least one."""
        at = source.position
        length = source.uvarint() - 1 if self.compact else self.fixed.unpack(source.take(self.fixed.size))[0]
        if length > source.remaining:
            raise TruncatedError(f"length {length} declared at byte {at}, {source.remaining} bytes are left")
        if length < -1 or (length == -1 and not self.nullable):
            raise ProtocolError(f"length {length} at byte {at}")
        return None if length == -1 else length


class Text:
    """A string, UTF-8."""

    def __init__(self, *, compact: bool, nullable: bool) -> None:
        self.length = Length(compact=compact, nullable=nullable, short=True)

    def default(self) -> str:
        """The empty string."""
        return ""

    def write(self, out: bytearray, value: Any) -> None:
        """Append length and text."""
        if value is not None and not isinstance(value, str):
            raise FieldError(f"{value!r} is not a string")
        try:
            data = b"" if value is None else value.encode()
        except UnicodeEncodeError as error:
            raise FieldError(f"{value!r} cannot be written in UTF-8") from error
        self.length.write(out, None if value is None else len(data))
        out += data

    def read(self, source: Reader) -> str | None:
        """Take length and text."""
        length = self.length.read(source)
        if length is None:
            return None
        at = source.position
        try:
            return source.take(length).decode()
        except UnicodeDecodeError as error:
            raise ProtocolError(f"the string at byte {at} is not UTF-8") from error


class Blob:
    """Bytes, and record data, which is bytes to this layer."""

    def __init__(self, *, compact: bool, nullable: bool) -> None:
        self.length = Length(compact=compact, nullable=nullable)

    def default(self) -> bytes:
        """No bytes."""
        return b""

    def write(self, out: bytearray, value: Any) -> None:
        """Append length and bytes."""
        if value is not None and not isinstance(value, bytes | bytearray | memoryview):
            raise FieldError(f"{type(value).__name__} where bytes belong")
        self.length.write(out, None if value is None else len(value))
        out += value or b""

    def read(self, source: Reader) -> bytes | None:
        """Take length and bytes."""
        length = self.length.read(source)
        return None if length is None else source.take(length)


NUMBERS: dict[str, Number] = {
    "bool": Number("bool", ">?", False),
    "int8": Number("int8", ">b", 0),
    "int16": Number("int16", ">h", 0),
    "uint16": Number("uint16", ">H", 0),
    "int32": Number("int32", ">i", 0),
    "uint32": Number("uint32", ">I", 0),
    "int64": Number("int64", ">q", 0),
    "float64": Number("float64", ">d", 0.0),
}

# A broker never sends more tagged fields in one structure than it knows; this only bounds the work for wrong counts.
TAGS_MAX = 1024


def checked_tag_count(count: int) -> int:
    """The number of tagged fields of a structure, bounded."""
    if count > TAGS_MAX:
        raise OversizedError(f"{count} tagged fields in one structure")
    return count
