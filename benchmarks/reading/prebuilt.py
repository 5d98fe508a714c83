"""The ceiling of every Python data source: Arrow batches that cost nothing to make.

Each task reads one batch of the log as the source `wire` does. It returns that batch again and again, until it has
returned as many rows as its ranges have. The rest of the time is Spark's own, for any Python source with the columns of
`schema.LOG`: the way from the worker to the JVM, and there from columns to rows. No reader with the same schema can be
faster, however fast it fetches and decodes values.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.datasource import DataSource, InputPartition
from pyspark.sql.types import StructType

from verification.sources.ranges import RangeGroup
from verification.sources.schema import LOG
from verification.sources.wire_log import LogReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The format, and the name under which it is measured.
PREBUILT = "prebuilt"


class PrebuiltReader(LogReader):
    """The options and tasks of `LogReader`; each task repeats its first batch."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """As many rows as the ranges have offsets. Raises the errors of `LogReader.read`."""
        assert isinstance(partition, RangeGroup)
        left = sum(each.end - each.start for each in partition.ranges)
        # The reader is dropped at once, which closes its connections.
        first = next(iter(super().read(partition)), None)
        while first is not None and left > 0:
            given = first.slice(0, min(left, first.num_rows))
            yield given
            left -= given.num_rows


class PrebuiltSource(DataSource):
    """`spark.read.format("prebuilt")`."""

    @classmethod
    def name(cls) -> str:
        """The format."""
        return PREBUILT

    def schema(self) -> StructType:
        """The schema of `wire`."""
        return LOG

    def reader(self, schema: StructType) -> PrebuiltReader:  # noqa: ARG002 - the schema is always the one above
        """A reader of the same options as `wire`."""
        return PrebuiltReader(dict(self.options))


def register(spark: SparkSession) -> None:
    """Make the format known to a session that has the readers (`worker_code.ship`)."""
    # The workers have the readers but not the benchmarks, so this module is sent together with its classes.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
    spark.dataSource.register(PrebuiltSource)
