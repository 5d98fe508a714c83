"""Starts the workers of a session before there is work for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


def prepare(spark: SparkSession) -> None:
    """Send our code, and start two workers. Importing their modules takes seconds, which other work can use."""
    from verification.spark.worker_code import ship

    ship(spark)
    spark.range(0, 2, 1, 2).mapInArrow(_as_they_are, "id long").count()


def _as_they_are(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    # Pickling this function imports our own code in the worker, and everything that it needs.
    from verification.fingerprints.workers import neighbours  # noqa: F401

    yield from batches
