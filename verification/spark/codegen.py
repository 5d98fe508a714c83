"""Plans over little data, executed without compiling classes for them.

Spark generates Java for every stage of every plan and compiles it, and the JVM compiles what comes of it once more. Over
millions of rows that is what makes it fast. The plan of all checks over a few thousand rows spends nearly all of its
time on it instead. Spark can evaluate every expression and operator without (its own SQL tests run both ways).
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
    """What is executed meanwhile is interpreted, if it is known to be about so few rows of the log that this is quicker."""
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
