"""A batch of captured rows as numpy columns, which workers use instead of rows.

Every column has longs. `NULL` stands for null, because no offset, count or id of a producer is that low. A text is the
number of its value in the batch's dictionary.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from verification.fingerprints.workers.hashing import Numbers

NULL = int(np.iinfo(np.int64).min)


def numbers(column: pa.Array) -> Numbers:
    """A column of integers or booleans as longs."""
    longs = column if column.type == pa.int64() else column.cast(pa.int64())
    filled = pc.fill_null(longs, NULL) if longs.null_count else longs
    return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=np.int64)


class NumpyColumns:
    """The columns of a batch by name."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch
        self._kept: dict[str, Numbers] = {}
        self._texts: dict[str, pa.DictionaryArray] = {}

    def __len__(self) -> int:
        return int(self._batch.num_rows)

    def __getitem__(self, name: str) -> Numbers:
        if name not in self._kept:
            column = self._batch.column(name)
            self._kept[name] = numbers(self.encoded(name).indices if _is_text(column.type) else column)
        return self._kept[name]

    def encoded(self, name: str) -> pa.DictionaryArray:
        """A column of texts with its dictionary."""
        if name not in self._texts:
            column = self._batch.column(name)
            self._texts[name] = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        return self._texts[name]

    def has(self, name: str) -> bool:
        """Whether there is such a column."""
        return name in self._batch.schema.names

    def stable(self, name: str) -> Numbers:
        """A column of texts as numbers that are the same in every batch."""
        texts = [blake2b((value or "").encode(), digest_size=8).digest() for value in self.values(name)]
        named = np.array([int.from_bytes(each, "big", signed=True) for each in texts] + [NULL], dtype=np.int64)
        # A null has no number, so the list ends with an entry for it.
        found: Numbers = named[np.where(self[name] == NULL, len(named) - 1, self[name])]
        return found

    def values(self, name: str) -> list[str | None]:
        """The texts that a column's numbers stand for."""
        found: list[str | None] = self.encoded(name).dictionary.to_pylist()
        return found

    @cached_property
    def sure(self) -> Flags:
        """Whether a row is surely a record of this run, of an operation that it names (`fragment_chains.SURE` in SQL)."""
        runs = {value: number for number, value in enumerate(self.values("run"))}
        same = np.array([runs.get(value, -1) for value in self.values("identity_run")] + [-1], dtype=np.int64)
        # A null has no number, so the list ends with an entry for it.
        claimed = same[np.where(self["identity_run"] == NULL, len(same) - 1, self["identity_run"])]
        sure = (self["valid"] == 1) & (claimed == self["run"])
        named: Flags = sure & (self["process"] != NULL) & (self["operation"] != NULL)
        return named


Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind))


def restored(values: Numbers, kind: pa.DataType, dictionary: pa.Array | None = None) -> pa.Array:
    """A column of longs as an Arrow column of a type; texts are looked up in their dictionary."""
    missing = values == NULL
    mask = missing if missing.any() else None
    if mask is not None:
        values = np.where(missing, 0, values)
    if dictionary is not None:
        taken = pa.DictionaryArray.from_arrays(pa.array(values.astype(np.int32), mask=mask), dictionary)
        return taken.cast(kind)
    if pa.types.is_boolean(kind):
        return pa.array(values != 0, mask=mask)
    return pa.array(values.astype(kind.to_pandas_dtype()), mask=mask)


#: Columns of 64 bits in which every pattern has a meaning. The pattern that stands for null elsewhere is the last
#: offset of a block.
_BITS = frozenset({"content", "indexes", "sources", "wanted"})


def record_batch(schema: pa.Schema, found: Mapping[str, Numbers], texts: Mapping[str, pa.Array]) -> pa.RecordBatch:
    """Columns in the order of a schema, null where a column is missing; `texts` are the dictionaries of its texts."""
    length = len(next(iter(found.values())))
    arrays = []
    for field in schema:
        if field.name not in found:
            arrays.append(pa.nulls(length, field.type))
        elif field.name in _BITS:
            arrays.append(pa.array(found[field.name]))
        else:
            arrays.append(restored(found[field.name], field.type, texts.get(field.name)))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
