"""Passes the acknowledgements of clients to workers in Arrow batches, and returns the workers' results as a dataframe.

If the files are on a file system that this machine sees, workers read them directly, as they read captures (`scan`).
Otherwise Spark reads them (`dataframes.acks`) and passes the same columns to the same work.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from verification.evidence import acks_file
from verification.fingerprints.workers.scan import Work

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The columns of `sources.schema.ACKS`.
ANSWERS = pa.schema([("run", pa.string()), ("process", pa.int32()), *acks_file.ACKS])
#: Bytes of compressed files that make a task: a second's work.
TASK_BYTES = 4 << 20
#: A process: run and number.
Process = tuple[str, int]


class Acks(Protocol):
    """Loads the acknowledgements of some processes, perhaps of some of their operations (OPERATION) only.

    It may load more than that.
    """

    def __call__(self, processes: Collection[Process], operations: DataFrame | None) -> DataFrame:
        """The dataframe."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AckSums:
    """Acknowledgements as Spark's dataframe, and the files of processes where workers can read them directly."""

    spark: SparkSession
    frame: Acks
    files: Mapping[Process, str] | None = field(default=None)

    def scanned(self, processes: Collection[Process], work: Work, schema: pa.Schema) -> DataFrame:
        """The results of some work on all acknowledgements of some processes."""
        from pyspark.sql.pandas.types import from_arrow_schema

        if self.files is None:
            return self.frame(processes, None).select(*ANSWERS.names).mapInArrow(work, from_arrow_schema(schema))
        return self._read(partial(_scanned, work=work), dict.fromkeys(processes), schema)

    def of(self, operations: DataFrame) -> DataFrame:
        """The acknowledgements of some operations (OPERATION), and perhaps more."""
        asked = operations.select("run", "process", "operation").distinct()
        named = asked.toArrow().to_pylist()
        wanted: dict[Process, list[int]] = {}
        for row in named:
            wanted.setdefault((row["run"], row["process"]), []).append(row["operation"])
        if self.files is None:
            return self.frame(wanted.keys(), asked)
        return self._read(_answers, wanted, ANSWERS)

    def _read(self, work: Work, wanted: Mapping[Process, Collection[int] | None], schema: pa.Schema) -> DataFrame:
        from pyspark.sql.pandas.types import from_arrow_schema

        assert self.files is not None
        paths = {each: self.files[each] for each in wanted if each in self.files}
        rows = [
            {"run": run, "process": process, "path": path, "wanted": wanted[run, process]}
            for (run, process), path in paths.items()
        ]
        tasks = ceil(sum(Path(path).stat().st_size for path in paths.values()) / TASK_BYTES)
        pieces = self.spark.createDataFrame(pa.Table.from_pylist(rows, _PIECES))
        return pieces.repartition(min(max(1, len(rows)), max(1, tasks))).mapInArrow(work, from_arrow_schema(schema))


#: A file, and the operations that are wanted of it; null for all.
_PIECES = pa.schema(
    [("run", pa.string()), ("process", pa.int32()), ("path", pa.string()), ("wanted", pa.list_(pa.int64()))]
)


def of_file(run: str, process: int, path: str, wanted: Collection[int] | None = None) -> Iterator[pa.RecordBatch]:
    """The acknowledgements in the file of a process, of some of its operations or of all, in the columns of `ANSWERS`."""
    for batch in acks_file.acks(Path(path), wanted):
        owner = {"run": run, "process": process}
        named = [pa.repeat(pa.scalar(each, ANSWERS.field(name).type), len(batch)) for name, each in owner.items()]
        yield pa.RecordBatch.from_arrays([*named, *batch.columns], schema=ANSWERS)


def _answers(pieces: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The worker's side: files by name → their acknowledgements."""
    for piece in pieces:
        for each in piece.to_pylist():
            wanted = None if each["wanted"] is None else frozenset(each["wanted"])
            yield from of_file(each["run"], each["process"], each["path"], wanted)


def _scanned(pieces: Iterable[pa.RecordBatch], *, work: Work) -> Iterator[pa.RecordBatch]:
    yield from work(_answers(pieces))
