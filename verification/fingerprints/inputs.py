"""The inputs of the fingerprints: dataframes of some runs, and the files of their captures where workers can read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from verification.evidence.rows import group_offset_rows, is_plain
from verification.evidence.run_evidence import RunEvidence
from verification.fingerprints.ack_sums import AckSums, Process
from verification.fingerprints.workers.blocks import CopyBlocks, copying_of
from verification.fingerprints.workers.row_filter import RowFilter
from verification.fingerprints.workers.scan import CaptureSource, Work, parquet_files, rows_of, scanned
from verification.spark.dataframes import FRAME_SCHEMAS, Dataframes, acks
from verification.vocabulary.history import Operation

#: Rows of the log that are brought together at once. Their fragments are a seventh of them. Workers with so many rows
#: took 0.45 GB.
BUCKET_ROWS = 1_000_000
#: Fewer would leave cores without work.
BUCKETS_MIN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class FingerprintInputs:
    """The dataframes of runs that fit (`strategy.fits`), and the clients' acknowledgements.

    `claimed` are the runs that claim order; `copying` describes those that copy. Both are known before any dataframe is
    read. `plain` are the processes that write records outside transactions. `rows` is the number of rows of the log, as
    far as it is known. `files` are the Parquet files of the captures by name; it is empty if only Spark can read them
    (`scan`).
    """

    frames: Dataframes
    answers: AckSums
    claimed: frozenset[str]
    copying: CopyBlocks
    plain: frozenset[Process]
    rows: int = 0
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def spark(self) -> SparkSession:
        """The session of the dataframes."""
        return self.frames.log.sparkSession

    @property
    def buckets(self) -> int:
        """The number of parts in which rows that belong together are brought together. A worker holds one part in memory."""
        return max(BUCKETS_MIN, self.rows // BUCKET_ROWS)

    def _capture(self, name: str) -> CaptureSource:
        return CaptureSource(frame=getattr(self.frames, name), files=self.files.get(name, ()))

    def scanned(self, name: str, columns: tuple[str, ...], work: Work, schema: pa.Schema) -> DataFrame:
        """The results of some work on every row of a capture."""
        return scanned(self._capture(name), columns, work, schema)

    def filtered(self, name: str, row_filter: RowFilter) -> DataFrame:
        """The rows of a capture that the filter lets through, in the filter's columns."""
        fields = [FRAME_SCHEMAS[name][column] for column in row_filter.columns]
        return scanned(
            self._capture(name), row_filter.columns, row_filter, to_arrow_schema(StructType(fields)), row_filter.holds
        )


def fingerprint_inputs(spark: SparkSession, runs: Sequence[RunEvidence], frames: Dataframes) -> FingerprintInputs:
    """The inputs of the fingerprints for some runs, given their dataframes."""
    said = ({"run": run.run, "fan_out": run.experiment.fan_out} for run in runs)
    return FingerprintInputs(
        frames=frames,
        answers=answers_of(spark, runs),
        claimed=frozenset(run.run for run in runs if run.experiment.order_claimed),
        copying=copying_of(said, chain.from_iterable(map(group_offset_rows, runs))),
        plain=frozenset(
            (run.run, each.process) for run in runs for each in run.history.of(Operation) if is_plain(each)
        ),
        rows=sum(run.capture_reader.count("log") for run in runs),
        files=files(runs),
    )


def answers_of(spark: SparkSession, runs: Sequence[RunEvidence]) -> AckSums:
    """The acknowledgements of some runs."""
    frame = partial(acks, spark, runs)
    if any(run.directory.source for run in runs):
        return AckSums(spark=spark, frame=frame)
    here = {(run.run, process): str(path.resolve()) for run in runs for process, path in run.acks.items()}
    return AckSums(spark=spark, frame=frame, files=here)


def files(runs: Sequence[RunEvidence]) -> dict[str, tuple[str, ...]]:
    """The files of the captures of some runs, by name; empty if one of the runs is where only Spark can read it.

    A capture is left out if its files do not hold all its rows. Spark then reads the rows that it counts.
    """
    found: dict[str, tuple[str, ...]] = {}
    if any(run.directory.source for run in runs):
        return found
    for name in ("log", "uncommitted", "committed"):
        paths = parquet_files(run.directory.root / name for run in runs)
        if rows_of(paths) == sum(run.capture_reader.count(name) for run in runs):
            found[name] = paths
    return found
