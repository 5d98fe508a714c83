"""Spark's own functions parse a record value as `identity.decode` does, also where its content changed."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from verification.evidence.rows import identity_row
from verification.vocabulary.identity import IDENTITY_LENGTH, Identity, RecordKind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def _signed(body: str) -> str:
    """A body with the checksum that it needs."""
    return f"{body}{zlib.crc32(body.encode()):08x}"


def _values() -> list[str]:
    whole = Identity(
        run="run 1",
        process=3,
        operation=77,
        kind=RecordKind.TRANSACTION,
        index=1,
        count=4,
        topic_index=1,
        intended_partition=2,
        send_order=5,
    )
    text = whole.encode().decode()
    body = text[: IDENTITY_LENGTH - 8]
    return [
        text,
        whole.encode(200).decode(),
        text[:-1] + "0",
        text[:50],
        "",
        text.replace("run 1", "rün 1"),
        "é" * IDENTITY_LENGTH,
        _signed(body[:31] + "X" + body[32:]),
        _signed(body[:15] + "00x003" + body[21:]),
        _signed(body[:3] + "é" + body[4:]),
    ]


def test_every_value_is_parsed_as_by_the_reference(spark: SparkSession) -> None:
    """Whole values, and values that are cut, foreign, not ASCII, or have an illegal field under a valid checksum."""
    from pyspark.sql import functions as F  # noqa: N812

    from verification.sources.identity_sql import identity_columns

    values = _values()
    columns = identity_columns(F.col("text").cast("binary"))
    parsed = spark.createDataFrame(pa.table({"text": values})).select(
        *[column.alias(name) for name, column in columns.items() if name != "digest"]
    )
    found = parsed.toArrow().to_pylist()
    expected = [identity_row(value.encode()) for value in values]
    assert found == [{name: row.get(name) for name in found[0]} for row in expected]
    assert [row["valid"] for row in found] == [True, True, *[False] * (len(values) - 2)]
