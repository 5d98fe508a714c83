"""The keys and columns of fragments of the log; see `fragment_chains`."""

from __future__ import annotations

import pyarrow as pa

#: Offsets per chunk, as a power of two: some thousand records of some dozen clients.
CHUNK_BITS = 12
CHUNK_MAX = (1 << CHUNK_BITS) - 1
#: Offsets per block, as a power of two: a block's offsets are the bits of one long.
BLOCK_BITS = 6
BLOCK_MAX = (1 << BLOCK_BITS) - 1

FRAGMENT_KEYS = (
    "run",
    "topic_index",
    "partition",
    "producer_id",
    "transactional",
    "process",
    "operation",
    "chunk",
    "control",
)
#: The source of a copy, in blocks of offsets, and the output that it was made for; null for other records.
COPIED = ("source_partition", "source_block", "output")
#: The columns of a partial fragment; `int32` and `string` are those of `sources.schema`.
FRAGMENTS = pa.schema(
    [
        ("run", pa.string()),
        *[(name, pa.int32()) for name in ("topic_index", "partition")],
        ("producer_id", pa.int64()),
        ("transactional", pa.bool_()),
        ("process", pa.int32()),
        ("operation", pa.int64()),
        ("chunk", pa.int64()),
        ("control", pa.string()),
        ("source_partition", pa.int32()),
        ("source_block", pa.int64()),
        ("output", pa.int32()),
        *[(name, pa.int64()) for name in ("n", "first", "last", "content", "content_sum", "indexes", "indexes_sum")],
        ("index_max", pa.int32()),
        ("amiss", pa.bool_()),
        *[(name, pa.int32()) for name in ("epoch_min", "epoch_max", "sequence_min", "sequence_max")],
        *[(name, pa.int64()) for name in ("shift_min", "shift_max", "sources", "source_max")],
    ]
)
