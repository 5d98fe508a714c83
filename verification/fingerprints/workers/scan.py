"""Every row of a capture handed to workers in Arrow batches, and what they make of it as a frame.

Where the Parquet lies on a file system that this machine sees, workers read it themselves, one row group after the other
and only the columns that are asked for: Spark would turn columns into rows to hand them over, which costs several times
what there is to do with them. Wherever else evidence lies (`hdfs://`, `s3a://`, a frame that was never a file) Spark reads
it and hands the same batches to the same work. As with Spark's own reader, a `file:` path has to be the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from verification.fingerprints.workers.row_group_pruning import Holds, RowGroup

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Rows of a batch: of some twenty columns of longs it stays within what a core keeps at hand, and its fold is a tenth.
BATCH_ROWS = 1 << 17
#: Rows that make a task. A worker needs 65 ms for any task before it has seen a row, as much as for folding 80 000.
TASK_ROWS = 2_000_000
#: Columns whose texts are read as numbers in a dictionary: they have a handful of values.
TEXTS = ("run", "topic", "identity_run", "kind", "control")

#: Batches in, batches out; has to be picklable.
Work = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureSource:
    """A capture as Spark's frame, and the files that it is made of where workers can read them themselves."""

    frame: DataFrame
    files: tuple[str, ...] = ()


def parquet_files(folders: Iterable[Path]) -> tuple[str, ...]:
    """The Parquet files of some folders of this machine."""
    return tuple(str(path.resolve()) for folder in folders for path in sorted(folder.glob("*.parquet")))


def rows_of(files: Iterable[str]) -> int:
    """How many rows some files have, by their footers."""
    import pyarrow.parquet as pq

    return sum(int(pq.read_metadata(path).num_rows) for path in files)


def tasks(rows: int) -> int:
    """How many tasks share so many rows."""
    return max(1, ceil(rows / TASK_ROWS))


def row_groups(path: str) -> Iterator[RowGroup]:
    """The row groups of a file, by its footer."""
    import pyarrow.parquet as pq

    footer = pq.read_metadata(path)
    places = {footer.schema.column(place).path: place for place in range(footer.num_columns)}
    yield from (RowGroup(footer.row_group(number), places) for number in range(footer.num_row_groups))


def _pieces(files: Sequence[str], holds: Holds) -> tuple[pa.Table, int]:
    """The row groups of some files that may hold what is sought, and how many tasks they make."""
    groups = [
        (path, number, int(group.metadata.num_rows))
        for path in files
        for number, group in enumerate(row_groups(path))
        if holds(group)
    ]
    columns = {
        "path": pa.array([path for path, _, _ in groups], pa.string()),
        "row_group": pa.array([number for _, number, _ in groups], pa.int64()),
    }
    return pa.table(columns), min(max(1, len(groups)), tasks(sum(rows for _, _, rows in groups)))


def _read(pieces: Iterable[pa.RecordBatch], *, columns: tuple[str, ...], work: Work) -> Iterator[pa.RecordBatch]:
    """The worker's side: row groups by name → their batches → what the work makes of them."""
    yield from work(_batches(pieces, columns))


def _batches(pieces: Iterable[pa.RecordBatch], columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    for piece in pieces:
        for each in piece.to_pylist():
            yield from batches_of(each["path"], columns, [each["row_group"]])


def batches_of(path: str, columns: tuple[str, ...], row_groups: list[int] | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a file, or of some of its row groups, in these columns."""
    import pyarrow.parquet as pq

    texts = [name for name in TEXTS if name in columns]
    with pq.ParquetFile(path, read_dictionary=texts) as file:
        # One thread: Spark gives every task a core, and there are as many tasks.
        yield from file.iter_batches(BATCH_ROWS, row_groups=row_groups, columns=list(columns), use_threads=False)


def _every(_: RowGroup) -> bool:
    return True


def scanned(
    capture: CaptureSource, columns: tuple[str, ...], work: Work, schema: pa.Schema, holds: Holds = _every
) -> DataFrame:
    """What some work makes of the rows of a capture in these columns, as a frame of that schema.

    It need not be given the rows of a row group that does not hold what it looks for.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    given = from_arrow_schema(schema)
    if not capture.files:
        return capture.frame.select(*columns).mapInArrow(work, given)
    table, number = _pieces(capture.files, holds)
    pieces = capture.frame.sparkSession.createDataFrame(table).repartition(number)
    return pieces.mapInArrow(partial(_read, columns=columns, work=work), given)
