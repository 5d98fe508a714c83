"""Compiles a message definition, for one version, into a tree of small codecs.

A definition gives per field its type and the versions in which it exists, may be null, is tagged, or may be left out.
A missing field gets its default. A field unknown to the message is refused, and so is one that the version lacks,
unless it holds its default or the definition calls it ignorable. Kafka's own clients behave so. Tagged fields without a
definition are kept under ``UNKNOWN_TAGS``, so that a body that was read can be written again unchanged. ``Raw`` bytes
may replace any part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wire.errors import FieldError, ProtocolError
from wire.primitives import (
    NUMBERS,
    Blob,
    Codec,
    Identifier,
    Length,
    Raw,
    Reader,
    Text,
    checked_tag_count,
    write_uvarint,
)

Body = dict[str, Any]

UNKNOWN_TAGS = "_tagged"
"""The key of tagged fields without a definition: {tag: bytes}."""


class Sequence:
    """A list of one type."""

    def __init__(self, length: Length, element: Codec) -> None:
        self.length, self.element = length, element

    def default(self) -> list[Any]:
        """The empty list."""
        return []

    def write(self, out: bytearray, value: Any) -> None:
        """Append length and elements."""
        if value is not None and not isinstance(value, list | tuple):
            raise FieldError(f"{type(value).__name__} where a list belongs")
        self.length.write(out, None if value is None else len(value))
        for index, item in enumerate(value or ()):
            try:
                write_or_raw(self.element, out, item)
            except FieldError as error:
                raise error.within(f"[{index}]") from None

    def read(self, source: Reader) -> list[Any] | None:
        """Take length and elements."""
        length = self.length.read(source)
        return None if length is None else [self.element.read(source) for _ in range(length)]


@dataclass(frozen=True, slots=True)
class Field:
    """A field that exists in the compiled version."""

    name: str
    codec: Codec
    preset: Any = None  # of a scalar; None stands for the codec's own default
    null: bool = False  # the default is null

    def default(self) -> Any:
        """The value of the field when the body has none."""
        return None if self.null else self.codec.default() if self.preset is None else self.preset

    def write(self, out: bytearray, body: Mapping[str, Any]) -> None:
        """Append the body's value for it, or the default."""
        try:
            write_or_raw(self.codec, out, body[self.name] if self.name in body else self.default())
        except FieldError as error:
            raise error.within(self.name) from None


@dataclass(frozen=True, slots=True)
class Structure:
    """Fields in order, then (in flexible versions) the tagged ones; the body of a message is one, too."""

    fields: tuple[Field, ...]
    tagged: dict[int, Field]
    absent: dict[str, Any]  # fields of other versions → the only value they may be given, or Ellipsis for any
    flexible: bool
    nullable: bool = False

    def default(self) -> Body:
        """Every field at its default."""
        return {field.name: field.default() for field in (*self.fields, *self.tagged.values())}

    def write(self, out: bytearray, value: Any) -> None:
        """Append it; raises FieldError with the path of the first field that does not fit."""
        if self.nullable:
            out.append(0xFF if value is None else 1)
            if value is None:
                return
        if not isinstance(value, Mapping):
            raise FieldError(f"{type(value).__name__} where a structure belongs")
        self._refuse_strangers(value)
        for field in self.fields:
            field.write(out, value)
        if self.flexible:
            self._write_tagged(out, value)

    def _refuse_strangers(self, value: Mapping[str, Any]) -> None:
        known = {field.name for field in (*self.fields, *self.tagged.values())}
        for name in value.keys() - known:
            if name in self.absent:
                only = self.absent[name]
                if only is not ... and value[name] != only and value[name]:
                    raise FieldError("not in this version", name)
            elif name != UNKNOWN_TAGS or not self.flexible:
                raise FieldError(f"no such field; there are {', '.join(sorted(known)) or 'none'}", str(name))

    def _write_tagged(self, out: bytearray, value: Mapping[str, Any]) -> None:
        entries = {int(tag): bytes(data) for tag, data in value.get(UNKNOWN_TAGS, {}).items()}
        for tag, field in self.tagged.items():
            data, unset = bytearray(), bytearray()
            field.write(data, value)
            field.write(unset, {})
            if data != unset:
                entries[tag] = bytes(data)
        write_uvarint(out, len(entries))
        for tag in sorted(entries):
            write_uvarint(out, tag)
            write_uvarint(out, len(entries[tag]))
            out += entries[tag]

    def read(self, source: Reader) -> Body | None:
        """Take it; raises ProtocolError."""
        if self.nullable and source.take(1)[0] >= 0x80:  # a negative byte
            return None
        body = {field.name: field.codec.read(source) for field in self.fields}
        if self.flexible:
            body.update({field.name: field.default() for field in self.tagged.values()})
            self._read_tagged(source, body)
        return body

    def _read_tagged(self, source: Reader, body: Body) -> None:
        last = -1
        for _ in range(checked_tag_count(source.uvarint())):
            tag, length = source.uvarint(), source.uvarint()
            if tag <= last:
                raise ProtocolError(f"tag {tag} after tag {last} at byte {source.position}")
            last, data = tag, source.take(length)
            if tag not in self.tagged:
                body.setdefault(UNKNOWN_TAGS, {})[tag] = data
                continue
            inner = Reader(data)
            body[self.tagged[tag].name] = self.tagged[tag].codec.read(inner)
            if inner.remaining:
                raise ProtocolError(f"{inner.remaining} bytes too many in {self.tagged[tag].name}")


def write_or_raw(codec: Codec, out: bytearray, value: Any) -> None:
    """Append the value, or the ``Raw`` bytes that replace it."""
    if isinstance(value, Raw):
        out += value
    else:
        codec.write(out, value)


def span(versions: str) -> tuple[int, int]:
    """First and last of "3-13", "5+", "2" or "none" (which is empty)."""
    if versions in ("none", ""):
        return 1, 0
    first, dash, last = versions.partition("-")
    if first.endswith("+"):
        return int(first[:-1]), 0x7FFF
    return int(first), int(last if dash else first)


def within(version: int, versions: str) -> bool:
    """Whether a range of versions holds this one."""
    first, last = span(versions)
    return first <= version <= last


def capitalized(name: str) -> str:
    """A field's name with a capital first letter, as most definitions have it: a few say "timeoutMs"."""
    return name[0].upper() + name[1:]


@dataclass(frozen=True, slots=True)
class Compiler:
    """Turns the specifications of one message into codecs for one of its versions."""

    version: int
    flexible: bool
    commons: Mapping[str, list[Body]]

    def structure(self, specs: list[Body], *, nullable: bool = False) -> Structure:
        """The codec of a list of fields."""
        fields, tagged, absent = [], {}, {}
        for spec in specs:
            # A definition may give the versions of a field that is always tagged only once.
            if not within(self.version, spec.get("versions") or spec["taggedVersions"]):
                absent[capitalized(spec["name"])] = ... if spec.get("ignorable") else self.preset(spec)[0]
                continue
            preset, null = self.preset(spec)
            field = Field(capitalized(spec["name"]), self.codec(spec["type"], spec), preset, null)
            if "tag" in spec and within(self.version, spec["taggedVersions"]):
                tagged[spec["tag"]] = field
            else:
                fields.append(field)
        return Structure(tuple(fields), tagged, absent, self.flexible, nullable)

    def codec(self, kind: str, spec: Body) -> Codec:
        """The codec of a type ("int8", "[]string", "Cursor") as one field uses it."""
        nullable = within(self.version, spec.get("nullableVersions", "none"))
        compact = self.flexible and spec.get("flexibleVersions") != "none"
        if kind.startswith("[]"):
            element = self.codec(kind[2:], {**spec, "nullableVersions": "none"})
            return Sequence(Length(compact=compact, nullable=nullable), element)
        if kind in NUMBERS:
            return NUMBERS[kind]
        if kind == "uuid":
            return Identifier()
        if kind == "string":
            return Text(compact=compact, nullable=nullable)
        if kind in ("bytes", "records"):
            return Blob(compact=compact, nullable=nullable)
        return self.structure(spec.get("fields") or self.commons[kind], nullable=nullable)

    @staticmethod
    def preset(spec: Body) -> tuple[Any, bool]:
        """The default that a definition states, and whether it is null."""
        kind, default = spec["type"], spec.get("default", "")
        if default == "null":
            return None, True
        if default == "" or kind.startswith("[]"):
            return None, False
        if kind == "bool":
            return str(default).lower() == "true", False
        if kind == "float64":
            return float(default), False
        return (int(str(default), 0) if kind in NUMBERS else default), False
