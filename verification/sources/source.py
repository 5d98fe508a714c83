"""The Spark data source `onceproof`: one format, one documented schema, and an option that chooses the reader.

    spark.read.format("onceproof").option("source", "wire").options(...).load()

The readers are independent of each other on purpose. `wire` and `segments` return the columns of `schema.LOG`; `client`
returns `schema.DELIVERED`, which is `LOG` without producer, epoch, sequence and control records: a consumer receives none
of them. The docstring of each reader names its options; all have `run` and `ranges`.

Spark's own Kafka connector is the fourth source and no reader of this format: Python code in a worker cannot use Spark.
`verification.sources.reading` reads all four by the same option.
"""

from __future__ import annotations

from enum import StrEnum

from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType

from verification.sources.client import ClientReader
from verification.sources.schema import DELIVERED, LOG
from verification.sources.segments import SegmentReader
from verification.sources.wire_log import LogReader
from verification.vocabulary.errors import CaptureError

NAME = "onceproof"


class SourceName(StrEnum):
    """The readers: our own Fetch, a client library, the files of a stopped broker, and Spark's own connector."""

    WIRE = "wire"
    CLIENT = "client"
    SEGMENTS = "segments"
    CONNECTOR = "connector"


#: Reader and schema of every source of this format.
SOURCES: dict[SourceName, tuple[type[LogReader | ClientReader | SegmentReader], StructType]] = {
    SourceName.WIRE: (LogReader, LOG),
    SourceName.CLIENT: (ClientReader, DELIVERED),
    SourceName.SEGMENTS: (SegmentReader, LOG),
}


class OnceproofSource(DataSource):
    """The data source `onceproof`; its option `source` names one of `SOURCES`, by default `wire`."""

    @classmethod
    def name(cls) -> str:
        """The format's name for `spark.read.format`."""
        return NAME

    def schema(self) -> StructType:
        """The schema of the chosen source; raises CaptureError for a source that does not exist."""
        return SOURCES[self._chosen()][1]

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - the schema is always the one above
        """The chosen reader of the pinned ranges."""
        return SOURCES[self._chosen()][0](dict(self.options))

    def _chosen(self) -> SourceName:
        asked = self.options.get("source", SourceName.WIRE)
        if asked == SourceName.CONNECTOR:
            raise CaptureError(f"{asked} is no reader of {NAME}; verification.sources.reading.read gives its frame")
        try:
            return SourceName(asked)
        except ValueError as error:
            raise CaptureError(f"there is no source {asked}; there are {', '.join(SourceName)}") from error
