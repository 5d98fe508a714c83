"""Passes every row of a capture to workers in Arrow batches, and returns their results as a dataframe.

If the Parquet files are on a file system that this machine sees, workers read them directly: row group by row group,
and only the needed columns. Spark would turn columns into rows to pass them on, which costs several times the work
itself. Evidence elsewhere is read by Spark (`hdfs://`, `s3a://`, a dataframe that was never a file), which passes the
same batches to the same work. As with Spark's own reader, a `file:` path must mean the same on all nodes.
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

#: Rows of a batch. With some twenty columns of longs it stays within a core's cache, and its aggregate is a tenth of
#: it.
BATCH_ROWS = 1 << 17
#: Rows of a task. A worker needs 65 ms for any task before it sees a row, as long as for aggregating 80 000 rows.
TASK_ROWS = 2_000_000
#: Columns whose texts are read as numbers in a dictionary: they have a handful of values.
TEXTS = ("run", "topic", "identity_run", "kind", "control")

#: Batches in, batches out; has to be picklable.
Work = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureSource:
    """A capture as Spark's dataframe, and its files where workers can read them directly."""

    frame: DataFrame
    files: tuple[str, ...] = ()


def parquet_files(folders: Iterable[Path]) -> tuple[str, ...]:
    """The Parquet files of some folders of this machine."""
    return tuple(str(path.resolve()) for folder in folders for path in sorted(folder.glob("*.parquet")))


def rows_of(files: Iterable[str]) -> int:
    """The number of rows of some files, by their footers."""
    import pyarrow.parquet as pq

    return sum(int(pq.read_metadata(path).num_rows) for path in files)


def tasks(rows: int) -> int:
    """The number of tasks that share so many rows."""
    return max(1, ceil(rows / TASK_ROWS))


def row_groups(path: str) -> Iterator[RowGroup]:
    """The row groups of a file, by its footer."""
    import pyarrow.parquet as pq

    footer = pq.read_metadata(path)
    places = {footer.schema.column(place).path: place for place in range(footer.num_columns)}
    yield from (RowGroup(footer.row_group(number), places) for number in range(footer.num_row_groups))


def _pieces(files: Sequence[str], holds: Holds) -> tuple[pa.Table, int]:
    """The row groups of some files that may hold sought rows, and the number of tasks for them."""
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
    """The worker's side: row groups by name → their batches → the results of the work."""
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
    """The results of some work on the rows of a capture in these columns, as a dataframe of that schema.

    Row groups without sought rows may be left out.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    given = from_arrow_schema(schema)
    if not capture.files:
        return capture.frame.select(*columns).mapInArrow(work, given)
    table, number = _pieces(capture.files, holds)
    pieces = capture.frame.sparkSession.createDataFrame(table).repartition(number)
    return pieces.mapInArrow(partial(_read, columns=columns, work=work), given)
