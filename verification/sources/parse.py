"""Record values → identity columns, vectorised: values of one batch become one byte matrix, fields are slices of it.

The layout is `verification.identity.LAYOUT`; this module and `identity.decode` are two implementations of it and must
agree on every input (a property test compares them). Shipped to Spark's workers together with the readers.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from verification.identity import IDENTITY_LENGTH, LAYOUT, MAGIC

Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]

BODY_LENGTH = IDENTITY_LENGTH - 8
#: Field of the layout → column of the frame, where they differ.
COLUMN = {"run": "identity_run", "topic_index": "intended_topic_index"}
_ARROW_TYPES = {"process": pa.int32(), "index": pa.int32(), "count": pa.int32(), "topic_index": pa.int32()}
_ARROW_TYPES |= {"intended_partition": pa.int32(), "source_partition": pa.int32()}
_ZERO, _NINE, _MINUS = ord("0"), ord("9"), ord("-")


def _heads(values: Sequence[bytes | None]) -> Bytes:
    """The first 96 bytes of every value as a matrix; a value that is null or shorter becomes zeros."""
    blank = bytes(IDENTITY_LENGTH)
    cut = [
        value[:IDENTITY_LENGTH] if value is not None and len(value) >= IDENTITY_LENGTH else blank for value in values
    ]
    return np.frombuffer(b"".join(cut), dtype=np.uint8).reshape(len(values), IDENTITY_LENGTH)


def _number(field: Bytes) -> tuple[Numbers, Flags]:
    """A decimal field, a sign allowed in its first place, and whether every byte of it was as it must be."""
    negative = field[:, 0] == _MINUS
    digits = field.astype(np.int64) - _ZERO
    digits[negative, 0] = 0
    fits: Flags = np.asarray(((digits >= 0) & (digits <= _NINE - _ZERO)).all(axis=1))
    weights = 10 ** np.arange(field.shape[1] - 1, -1, -1, dtype=np.int64)
    number = digits @ weights
    return np.where(negative, -number, number), fits


def _texts(field: Bytes, valid: Flags) -> pa.Array:
    """A text field without its padding, null where not valid."""
    width = field.shape[1]
    flat = np.ascontiguousarray(field).reshape(-1).tobytes()
    texts = [flat[i * width : (i + 1) * width].decode("ascii").strip() if ok else None for i, ok in enumerate(valid)]
    return pa.array(texts, type=pa.string())


def _checksums_hold(values: Sequence[bytes | None], heads: Bytes) -> Flags:
    """Whether the magic stands at the start and the checksum is that of the 88 bytes before it."""
    started = (heads[:, : len(MAGIC)] == np.frombuffer(MAGIC.encode("ascii"), dtype=np.uint8)).all(axis=1)
    flags = np.zeros(len(values), dtype=np.bool_)
    for row in np.flatnonzero(started):
        value = values[int(row)] or b""
        flags[row] = f"{zlib.crc32(value[:BODY_LENGTH]):08x}".encode("ascii") == value[BODY_LENGTH:IDENTITY_LENGTH]
    return flags


def digests(values: Sequence[bytes | None]) -> dict[str, pa.Array]:
    """`digest` and `identity_digest` of every value (see `verification.sources.schema`)."""
    whole = [0 if value is None else zlib.crc32(value) for value in values]
    heads = [0 if value is None else zlib.crc32(value[:IDENTITY_LENGTH]) for value in values]
    return {"digest": pa.array(whole, type=pa.int64()), "identity_digest": pa.array(heads, type=pa.int64())}


def identity_columns(values: Sequence[bytes | None]) -> dict[str, pa.Array]:
    """The identity columns, `valid` and the digests of a batch of values, each as long as `values`."""
    heads = _heads(values)
    valid = _checksums_hold(values, heads)
    numbers: dict[str, Numbers] = {}
    for name, start, width in LAYOUT[:-1]:
        if name in ("run", "kind"):
            continue
        numbers[name], fits = _number(heads[:, start : start + width])
        valid &= fits
    spans = {name: heads[:, start : start + width] for name, start, width in LAYOUT}
    valid &= np.isin(spans["kind"][:, 0], [ord("T"), ord("P")])
    columns: dict[str, Any] = {}
    for name, _, _ in LAYOUT[:-1]:
        if name in numbers:
            column = pa.array(numbers[name], mask=~valid).cast(_ARROW_TYPES.get(name, pa.int64()))
        else:
            column = _texts(spans[name], valid)
        columns[COLUMN.get(name, name)] = column
    columns["valid"] = pa.array(valid)
    return {**columns, **digests(values)}
