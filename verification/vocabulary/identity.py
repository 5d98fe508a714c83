"""The identity that every record carries in its value, so that a record alone says where it belongs.

A value is fixed-width ASCII: readable in a console consumer, sliced by plain SQL (`substring`), and parsed by any
client program in any language. Identity lives in the value and not in headers, keys or Kafka's own metadata.
Pipelines may drop or change those, and the judge checks exactly whether Kafka's metadata tells the truth.

    offset width field             meaning
         0     3 magic             "OP1", the version of this layout
         3    12 run               one execution of one scenario
        15     6 process           logical client process, decimal
        21    10 operation         number of the operation within its process, decimal
        31     1 kind              T written in a transaction, P plain
        32     6 index             position in the operation, from 0
        38     6 count             records in the operation
        44     3 topic             index into the scenario's list of topics: the intended topic
        47     6 partition         the intended partition
        53    10 order             send order of this process within this partition, from 0
        63     6 source_partition  input partition of a copy, -00001 otherwise
        69    19 source_offset     input offset of a copy, -000000000000000001 otherwise
        88     8 checksum          CRC-32 of bytes 0..88, hexadecimal
        96       filler            dots up to the wished size

The checksum covers the identity, so that changed content is found without the history.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from enum import StrEnum

MAGIC = "OP1"
IDENTITY_LENGTH = 96
NO_SOURCE = -1

#: (field, start, width) in the order of the layout; the Spark parser slices by the same table.
LAYOUT: tuple[tuple[str, int, int], ...] = (
    ("run", 3, 12),
    ("process", 15, 6),
    ("operation", 21, 10),
    ("kind", 31, 1),
    ("index", 32, 6),
    ("count", 38, 6),
    ("topic_index", 44, 3),
    ("intended_partition", 47, 6),
    ("send_order", 53, 10),
    ("source_partition", 63, 6),
    ("source_offset", 69, 19),
    ("checksum", 88, 8),
)


class RecordKind(StrEnum):
    """Whether a record was written inside a transaction."""

    TRANSACTION = "T"
    PLAIN = "P"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Where a record belongs; the fields are those of the layout above."""

    run: str
    process: int
    operation: int
    kind: RecordKind
    index: int
    count: int
    topic_index: int
    intended_partition: int
    send_order: int
    source_partition: int = NO_SOURCE
    source_offset: int = NO_SOURCE

    def encode(self, size: int = IDENTITY_LENGTH) -> bytes:
        """The record value, `size` bytes long (at least the identity itself)."""
        body = (
            f"{MAGIC}{self.run:>12}{self.process:06d}{self.operation:010d}{self.kind}{self.index:06d}{self.count:06d}"
            f"{self.topic_index:03d}{self.intended_partition:06d}{self.send_order:010d}"
            f"{self.source_partition:06d}{self.source_offset:019d}"
        ).encode("ascii")
        if len(body) != IDENTITY_LENGTH - 8:
            raise ValueError(f"a field of {self} does not fit its width")
        return (body + f"{zlib.crc32(body):08x}".encode("ascii")).ljust(size, b".")


def text_digest(text: str) -> int | None:
    """CRC-32 of the beginning of a value that an observer received, from its text: a Latin-1 character for each byte.

    None for a text with other characters, which nothing can be compared with.
    """
    try:
        return zlib.crc32(text.encode("latin-1"))
    except UnicodeEncodeError:
        return None


def decode(value: bytes | None) -> Identity | None:
    """Parse a record value; None when this suite did not write it or its content changed."""
    if value is None or len(value) < IDENTITY_LENGTH or not value.startswith(MAGIC.encode("ascii")):
        return None
    body, checksum = value[: IDENTITY_LENGTH - 8], value[IDENTITY_LENGTH - 8 : IDENTITY_LENGTH]
    try:
        if checksum != f"{zlib.crc32(body):08x}".encode("ascii"):
            return None
        text = body.decode("ascii")
        parts = {name: text[start : start + width] for name, start, width in LAYOUT[:-1]}
        numbers = {name: int(part) for name, part in parts.items() if name not in ("run", "kind")}
        return Identity(run=parts["run"].strip(), kind=RecordKind(parts["kind"]), **numbers)
    except ValueError:
        return None
