"""Reads one replica's log from its files, in the columns of every other log: the source `segments`.

`wire` reads from leaders; this reads from one broker, including records that are no longer in the log of a leader. The
broker must be stopped, and every worker must see the files. Ranges are cut where segments begin; no option is needed.

A range below the replica's log start, or beyond its end, ends the read with an error, like an offset that a leader does
not have. Batches with a wrong CRC raise SegmentChecksumError.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from verification.replicas.directory import Replica, replica
from verification.replicas.segments import base_of
from verification.sources.ranges import Range, RangeGroup, decode, grouped
from verification.sources.wire_log import log_rows, together
from verification.vocabulary.errors import CaptureError, SegmentDamagedError
from wire.errors import WireError


class SegmentReader(DataSourceReader):
    """Reads groups of ranges from the files of one data directory; its rows are those of `LOG`.

    Options: `directory` (one of the broker's `log.dirs`), `run`, `ranges` (see `ranges.encode`), `tasks` (at most so
    many Spark partitions).
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self.directory = Path(options["directory"])
        self.run = options["run"]
        self.ranges = decode(options["ranges"])
        self.tasks = int(options["tasks"])

    def partitions(self) -> list[InputPartition]:
        """Ranges cut at segments, in at most `tasks` groups; raises DataDirectoryError where there is none."""
        pieces = [piece for each in self.ranges for piece in cut(each, self._replica(each))]
        return list(grouped(pieces, self.tasks))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Record batches of `LOG`.

        Raises SegmentDamagedError and SegmentChecksumError for damaged files, CaptureError for a range that the replica
        does not have.
        """
        assert isinstance(partition, RangeGroup)
        for each in partition.ranges:
            yield from self._range(each)

    def _replica(self, wanted: Range) -> Replica:
        return replica(self.directory, wanted.topic, wanted.partition)

    def _range(self, wanted: Range) -> Iterator[pa.RecordBatch]:
        held = self._replica(wanted)
        what = f"{wanted.topic}-{wanted.partition} of {self.directory}"
        if wanted.start < held.log_start:
            raise CaptureError(f"{what} begins at {held.log_start}; what lay from {wanted.start} on was deleted")
        log = held.log(wanted.start, wanted.end)
        try:
            for batches in together(log):
                yield log_rows(self.run, wanted, batches)
        except WireError as error:
            raise SegmentDamagedError(f"{what}: {error}") from error
        if log.position < wanted.end:
            torn = "" if log.tail is None else f"; {log.tail}"
            raise CaptureError(f"{what} ends at {log.position}, not at {wanted.end}{torn}")


def cut(wanted: Range, held: Replica) -> list[Range]:
    """A range cut at the segments that begin inside it."""
    cuts = [base for base in map(base_of, held.segments) if wanted.start < base < wanted.end]
    starts, ends = [wanted.start, *cuts], [*cuts, wanted.end]
    return [replace(wanted, start=start, end=end) for start, end in zip(starts, ends, strict=True)]
