"""Any source as a frame: the one place where the option `source` is followed, whoever reads.

Three of the four are readers of the data source `onceproof`. The fourth is Spark's own connector, which a Python data
source cannot call, as it runs in a worker; whoever reads through here need not know.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from verification.sources import connector
from verification.sources.source import NAME, SourceName


def read(spark: SparkSession, source: SourceName | str, options: Mapping[str, str]) -> DataFrame:
    """What a source gives of the pinned ranges; `shipping.ship` must have sent the readers' code.

    Each source's module names its options. Raises CaptureError for a source that does not exist and for one that this
    session has not got.
    """
    if source == SourceName.CONNECTOR:
        return connector.frame(spark, options)
    return spark.read.format(NAME).option("source", str(source)).options(**options).load()
