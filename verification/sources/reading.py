"""Reads any source as a dataframe, by the option `source`.

Three of the four are readers of the data source `onceproof`. The fourth is Spark's own connector, which a Python data
source cannot call from a worker. Callers of this module need not know.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from verification.sources import connector
from verification.sources.source import NAME, SourceName


def read(spark: SparkSession, source: SourceName | str, options: Mapping[str, str]) -> DataFrame:
    """The rows of a source in the pinned ranges; `worker_code.ship` must have sent the code of the readers.

    The module of each source names its options. Raises CaptureError for a source that does not exist or that this session
    lacks.
    """
    if source == SourceName.CONNECTOR:
        return connector.frame(spark, options)
    return spark.read.format(NAME).option("source", str(source)).options(**options).load()
