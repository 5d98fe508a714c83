"""Names and types of the captured columns, for reading and writing the Parquet without Spark. Free of pyspark.

`verification.sources.schema` has the same columns as Spark types; a test compares the two.
"""

from __future__ import annotations

PLACE = ("run", "topic", "topic_index", "partition", "offset", "timestamp_ms")
PRODUCER = ("producer_id", "producer_epoch", "sequence", "leader_epoch", "control", "transactional")
IDENTITY = (
    "identity_run",
    "process",
    "operation",
    "kind",
    "index",
    "count",
    "intended_topic_index",
    "intended_partition",
    "send_order",
    "source_partition",
    "source_offset",
)
CONTENT = ("valid", "digest", "identity_digest")

#: Columns that evidence of earlier versions lacks; no verdict depends on them.
LATER = frozenset({"leader_epoch"})

LOG = (*PLACE, *PRODUCER, *IDENTITY, *CONTENT)
DELIVERED = (*PLACE, *IDENTITY, *CONTENT)

#: Arrow's name of each column's type.
TYPES: dict[str, str] = {
    **dict.fromkeys(LOG, "int32"),
    **dict.fromkeys(("run", "topic", "control", "identity_run", "kind"), "string"),
    **dict.fromkeys(("transactional", "valid"), "bool"),
    **dict.fromkeys(("offset", "timestamp_ms", "producer_id", "digest", "identity_digest"), "int64"),
    **dict.fromkeys(("operation", "send_order", "source_offset"), "int64"),
}

#: Directory of a capture → its columns, in order.
CAPTURED: dict[str, tuple[str, ...]] = {"log": LOG, "uncommitted": DELIVERED, "committed": DELIVERED}
