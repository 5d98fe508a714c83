"""Starts the workers of a session before there is work for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


def prepare(spark: SparkSession) -> None:
    """Send our code, and let two workers start: importing what they need takes seconds in which something else can go on."""
    from verification.spark.worker_code import ship

    ship(spark)
    spark.range(0, 2, 1, 2).mapInArrow(_as_they_are, "id long").count()


def _as_they_are(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    # Our own code is imported on the way to this function, and all that it needs.
    from verification.fingerprints.workers import neighbours  # noqa: F401

    yield from batches
