"""Turns a block's numpy columns into the Parquet columns of the captures."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa

from benchmarks.judge.generator.block import COMMIT, DATA, Column, Rows
from benchmarks.judge.generator.plan import RUN, TOPICS
from verification.evidence.columns import CAPTURED, CONTENT, IDENTITY, TYPES

#: The columns of a record's identity.
_MIXED = (
    "process",
    "operation",
    "index",
    "count",
    "topic",
    "intended_partition",
    "send_order",
    "source_partition",
    "source_offset",
)
_LOW = np.uint64(0xFFFFFFFF)
#: The constants of SplitMix64 (Steele, Lea and Flood, 2014), a mixer without weak inputs.
_STEP, _FIRST, _SECOND = (np.uint64(each) for each in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
#: Milliseconds between two offsets of a partition: timestamps decide nothing.
_TICK_MS = 1


def producer_id(process: int) -> int:
    """The producer id of a client."""
    return 1000 + process


@cache
def schema(capture: str) -> pa.Schema:
    """The Arrow schema of a capture."""
    types = {"int32": pa.int32(), "int64": pa.int64(), "string": pa.string(), "bool": pa.bool_()}
    return pa.schema([(name, types[TYPES[name]]) for name in CAPTURED[capture]])


def mixed(rows: Rows) -> Column:
    """A 32-bit number per row that stands for the CRC-32 of its identity."""
    mix = np.zeros(len(rows["process"]), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for name in _MIXED:
            mix = mix + rows[name].astype(np.uint64) + _STEP
            mix = (mix ^ (mix >> np.uint64(30))) * _FIRST
            mix = (mix ^ (mix >> np.uint64(27))) * _SECOND
            mix = mix ^ (mix >> np.uint64(31))
    return (mix & _LOW).astype(np.int64)


def _texts(names: tuple[str, ...], chosen: Column, missing: Column | None = None) -> pa.Array:
    numbers = pa.array(chosen.astype(np.int32), mask=missing)
    return pa.DictionaryArray.from_arrays(numbers, pa.array(names)).cast(pa.string())


def table(rows: Rows, capture: str) -> pa.Table:
    """Rows of a block in the columns of a capture."""
    data = rows["control"] == DATA
    nobodys = ~(data & (rows["genuine"] == 1))
    nothing = np.zeros(len(data), dtype=np.int64)
    digest = mixed(rows)
    columns: dict[str, Column] = {
        **{name: rows[name] for name in ("process", "operation", "index", "count", "partition", "offset")},
        **{name: rows[name] for name in ("send_order", "source_partition", "source_offset", "intended_partition")},
        "topic_index": rows["topic"],
        "intended_topic_index": rows["topic"],
        "timestamp_ms": rows["offset"] * _TICK_MS,
        "producer_id": np.where(rows["genuine"] == 1, producer_id(0) + rows["process"], -1),
        "producer_epoch": np.where(rows["genuine"] == 1, rows["epoch"], -1),
        "sequence": rows["sequence"],
        "leader_epoch": nothing,
        "identity_digest": digest,
        "digest": digest ^ (rows["shift"] if capture == "committed" else nothing),
    }
    texts = {
        "run": _texts((RUN,), nothing),
        "topic": _texts(tuple(name for name, _ in TOPICS), rows["topic"]),
        "identity_run": _texts((RUN,), nothing, nobodys),
        "kind": _texts(("P", "T"), rows["transactional"], nobodys),
        "control": _texts(("abort", "commit"), (rows["control"] == COMMIT).astype(np.int64), data),
        "transactional": pa.array(rows["transactional"] == 1),
        "valid": pa.array(rows["genuine"] == 1, mask=~data),
    }
    arrays = []
    for field in schema(capture):
        if field.name in texts:
            arrays.append(texts[field.name])
            continue
        missing = nobodys if field.name in IDENTITY else ~data if field.name in CONTENT else None
        arrays.append(pa.array(columns[field.name], type=field.type, mask=missing))
    return pa.Table.from_arrays(arrays, schema=schema(capture))
