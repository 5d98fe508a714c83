"""Runs plans over few rows without code generation.

Spark generates Java for every stage of every plan and compiles it, and the JVM compiles the result once more. This makes
millions of rows fast. The plan of all checks over a few thousand rows spends nearly all of its time on it instead. Spark
can interpret every expression and operator (its own SQL tests run both ways).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Rows of the log up to which interpreting them costs less than compiling plans for them.
ROWS_MAX = 50_000
_INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


@contextmanager
def interpreted(spark: SparkSession, rows: int | None) -> Iterator[None]:
    """Interpret the plans that run meanwhile, if the log is known to have at most `ROWS_MAX` rows."""
    if rows is None or rows > ROWS_MAX:
        yield
        return
    before = {key: spark.conf.get(key) for key in _INTERPRETED}
    try:
        for key, value in _INTERPRETED.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, kept in before.items():
            spark.conf.set(key, kept or "")
