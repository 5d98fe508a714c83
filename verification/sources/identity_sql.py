"""Record values → identity columns, by Spark's own functions: without Python in the workers.

The layout is `verification.vocabulary.identity.LAYOUT`. It is the third parser of it, after `identity.decode` and `parse`,
and must agree with both; tests compare them.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from verification.vocabulary.identity import IDENTITY_LENGTH, LAYOUT, MAGIC, RecordKind


def identity_columns(value: Column) -> dict[str, Column]:
    """The identity columns, `valid` and the digests of a binary column, as in `parse.identity_columns`."""
    parts = {name: F.substring(value, start + 1, width).cast("string") for name, start, width in LAYOUT}
    body, head = F.substring(value, 1, IDENTITY_LENGTH - 8), F.substring(value, 1, IDENTITY_LENGTH)
    valid = (F.octet_length(value) >= IDENTITY_LENGTH) & (F.substring(value, 1, len(MAGIC)).cast("string") == MAGIC)
    valid &= parts["checksum"] == F.lower(F.lpad(F.hex(F.crc32(body)), 8, "0"))
    valid &= parts["kind"].isin([str(kind) for kind in RecordKind])
    columns: dict[str, Column] = {}
    for name, part in parts.items():
        if name in ("checksum", "kind", "run"):
            continue
        valid &= part.rlike(r"^-?[0-9]+\z")
        column = {"topic_index": "intended_topic_index"}.get(name, name)
        columns[column] = part.try_cast("long")
    valid = F.coalesce(valid, F.lit(False))
    columns |= {"identity_run": F.trim(parts["run"]), "kind": parts["kind"]}
    return {
        **{name: F.when(valid, column) for name, column in columns.items()},
        "valid": valid,
        "digest": F.coalesce(F.crc32(value), F.lit(0)),
        "identity_digest": F.coalesce(F.crc32(head), F.lit(0)),
    }
