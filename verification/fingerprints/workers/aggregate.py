"""Aggregates captured rows in the workers that read them, batch by batch, in numpy columns.

`aggregate_log` makes one row per **fragment** and block of inputs that it was copied from (see `fragment_chains`), and one
row per **stretch**: the records of one writer in one partition within the batch (see `sequence`). `aggregate_capture` makes
one row per operation (see `suspects`) and, if the capture holds inputs of a group, one per block of inputs (see `blocks`).
The rows of a batch are partial. To get one row per key, merge them by the same keys, with sum, XOR, minimum and maximum.

A record's hash is chained over its place and its digests, so swapping two values changes both hashes. Sums take half a
hash, because Spark raises an error when a sum of longs overflows.

Everything here runs in workers, without pyspark, on any rows in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from verification.evidence import columns
from verification.fingerprints.workers import blocks, suspects
from verification.fingerprints.workers.blocks import Input
from verification.fingerprints.workers.columns import NULL, Flags, NumpyColumns, record_batch
from verification.fingerprints.workers.fragments import BLOCK_BITS, BLOCK_MAX, CHUNK_BITS, FRAGMENT_KEYS, FRAGMENTS
from verification.fingerprints.workers.groups import Groups
from verification.fingerprints.workers.hashing import HALF, SEED, Numbers, hash_int, hash_longs
from verification.fingerprints.workers.order_ranges import stretches_of
from verification.fingerprints.workers.packed import KINDS, PackKind, packed, packed_rows
from verification.vocabulary.identity import NO_SOURCE

_PLACE = ("run", "topic_index", "partition")
#: Columns that no aggregate needs.
_UNREAD = frozenset({"topic", "timestamp_ms", "leader_epoch", "kind"})
#: Columns that are read of the log, and of a capture.
LOGGED = tuple(name for name in columns.LOG if name not in _UNREAD)
GIVEN = (*_PLACE, "offset", "identity_run", "process", "operation", *columns.CONTENT)

#: A stretch of a writer (`sequence`).
STRETCHES = pa.schema(
    [
        ("run", pa.string()),
        *[(name, pa.int32()) for name in ("topic_index", "partition", "process")],
        *[(name, pa.int64()) for name in ("first", "last", "order_min", "order_max")],
        ("rising", pa.bool_()),
    ]
)


def texts_of(rows: NumpyColumns) -> dict[str, pa.Array]:
    """The dictionaries of a batch's texts by column."""
    return {name: rows.encoded(name).dictionary for name in ("run", "control") if rows.has(name)}


def _chosen(condition: Flags, values: Numbers) -> Numbers:
    return np.where(condition, values, NULL)


def lowest(groups: Groups, values: Numbers) -> Numbers:
    """The lowest value of each group, without nulls."""
    if not (values == NULL).any():
        return groups.reduce(np.minimum, values)
    highest = np.iinfo(np.int64).max
    found = groups.reduce(np.minimum, np.where(values == NULL, highest, values))
    return np.where(found == highest, NULL, found)


def content_of(rows: NumpyColumns) -> Numbers:
    """The hash of each row's place and content."""
    digests = [np.where(rows[name] == NULL, -1, rows[name]) for name in ("digest", "identity_digest")]
    return hash_longs(rows["topic_index"], rows["partition"], rows["offset"], *digests).view(np.int64)


def _summed(groups: Groups, hashes: Numbers) -> tuple[Numbers, Numbers]:
    """XOR of the hashes of each group, and the sum of their lower halves."""
    return groups.reduce(np.bitwise_xor, hashes), groups.reduce(np.add, hashes & HALF)


def _differ(one: Numbers, other: Numbers) -> Flags:
    """Whether two columns differ where neither is null."""
    differing: Flags = (one != other) & (one != NULL) & (other != NULL)
    return differing


def _amiss(rows: NumpyColumns) -> Flags:
    """Records elsewhere than intended, or with an index beyond their operation's own count."""
    index, count = rows["index"], rows["count"]
    beyond = (index >= count) & (index != NULL) & (count != NULL)
    elsewhere = _differ(rows["topic_index"], rows["intended_topic_index"])
    found: Flags = beyond | elsewhere | _differ(rows["partition"], rows["intended_partition"])
    return found


def fragment_keys(rows: NumpyColumns) -> dict[str, Numbers]:
    """The columns that identify the fragment of a row."""
    mine = (rows["control"] == NULL) & rows.sure
    return {
        **{name: rows[name] for name in FRAGMENT_KEYS if name != "chunk"},
        "process": _chosen(mine, rows["process"]),
        "operation": _chosen(mine, rows["operation"]),
        "chunk": np.where(mine, rows["offset"] >> CHUNK_BITS, rows["offset"]),
    }


def _fragments(rows: NumpyColumns) -> dict[str, Numbers]:
    source = rows["source_offset"]
    copy = (rows["control"] == NULL) & (source != NULL) & (source != NO_SOURCE)
    keys = fragment_keys(rows) | {
        "source_partition": _chosen(copy, rows["source_partition"]),
        "source_block": _chosen(copy, source >> BLOCK_BITS),
        "output": _chosen(copy & rows.sure, rows["intended_topic_index"]),
    }
    groups = Groups(list(keys.values()))
    index = rows["index"]
    # As in Spark, a null leaves the seed unchanged.
    index_hash = np.where(index == NULL, SEED, hash_int(index)).view(np.int64)
    content, content_sum = _summed(groups, content_of(rows))
    indexes, indexes_sum = _summed(groups, index_hash)
    sequence, order = rows["sequence"], rows["send_order"]
    shift = _chosen((sequence != NULL) & (order != NULL), sequence - order)
    extremes = {"epoch": rows["producer_epoch"], "sequence": sequence, "shift": shift}
    found = dict(zip(keys, groups.keys, strict=True)) | {
        "n": groups.counts(),
        "first": groups.reduce(np.minimum, rows["offset"]),
        "last": groups.reduce(np.maximum, rows["offset"]),
        "content": content,
        "content_sum": content_sum,
        "indexes": indexes,
        "indexes_sum": indexes_sum,
        "index_max": groups.reduce(np.maximum, index),
        "amiss": groups.reduce(np.logical_or, _amiss(rows)).astype(np.int64),
        "sources": groups.reduce(np.bitwise_or, np.where(copy, np.int64(1) << (source & BLOCK_MAX), 0)),
        "source_max": groups.reduce(np.maximum, source),
    }
    for name, values in extremes.items():
        found[f"{name}_min"], found[f"{name}_max"] = lowest(groups, values), groups.reduce(np.maximum, values)
    return found


def aggregate_log(batches: Iterable[pa.RecordBatch], claimed: frozenset[str], buckets: int) -> Iterator[pa.RecordBatch]:
    """Batches of the log (`LOGGED`) → packs (`packed.KINDS`) of fragments and of stretches.

    Fragments are in `buckets` buckets by producer. `claimed` are the runs that claim order.
    """
    fragments, stretches = [], []
    for batch in batches:
        if batch.num_rows:
            rows = NumpyColumns(batch)
            fragments.append(record_batch(FRAGMENTS, _fragments(rows), texts_of(rows)))
            found = stretches_of(rows, claimed)
            if found is not None:
                stretches.append(record_batch(STRETCHES, found, texts_of(rows)))
    producer = ("topic_index", "partition", "producer_id")
    yield from packed_rows(KINDS, packed(fragments, producer, buckets), kind=PackKind.FRAGMENTS)
    # Few, so that all of a task are one pack.
    yield from packed_rows(KINDS, packed(stretches, ("process",), 1), kind=PackKind.STRETCHES)


def aggregate_capture(
    batches: Iterable[pa.RecordBatch], of: str, buckets: int, inputs: tuple[Input, ...] = ()
) -> Iterator[pa.RecordBatch]:
    """Batches of a capture (`GIVEN`) → packs (`packed.KINDS`) of operations and of blocks, in `buckets` buckets.

    `of` names the aggregate that the capture is compared with (`suspects`). `inputs` are those whose copies are
    checked.
    """
    counted: list[pa.RecordBatch] = []
    delivered: list[pa.RecordBatch] = []
    for batch in batches:
        if batch.num_rows:
            rows = NumpyColumns(batch)
            counted += suspects.of_capture(rows, content_of(rows), of)
            delivered += blocks.of_inputs(rows, inputs)
    yield from packed_rows(KINDS, suspects.packed(counted, buckets), kind=PackKind.OPERATIONS)
    yield from packed_rows(KINDS, blocks.packed(delivered, buckets), kind=PackKind.BLOCKS)
