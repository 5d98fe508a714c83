"""Reads facts about the captures of a run without the judge's dataframes: whether they are whole, their size, their ends.

Only captures can be larger than one machine, so they are read in place: on this machine (`LocalCaptureReader`), or on a
file system that only Spark reads (`verification.spark.remote_evidence`). Both readers have the same methods.

Free of pyspark.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from verification.evidence.run_directory import RunDirectory
from verification.vocabulary.errors import UnfitEvidenceError

if TYPE_CHECKING:
    import pyarrow as pa

#: Topic index and partition.
Place = tuple[int, int]
#: A row of the log: topic index, partition, offset, control, process, operation, number in the operation, producer epoch.
LogRow = tuple[int, int, int, str | None, int | None, int | None, int | None, int | None]
LOG_ROW = ("topic_index", "partition", "offset", "control", "process", "operation", "index", "producer_epoch")
#: A writer adds this file when all others of the folder are complete.
MARKER = "_SUCCESS"


class CaptureReader(Protocol):
    """The captures of one run; `name` is `log`, `uncommitted` or `committed`."""

    def present(self, name: str) -> bool:
        """Whether the folder exists and is complete."""

    def schemas(self, name: str) -> Iterator[tuple[str, pa.Schema]]:
        """Every Parquet file of a folder with its schema; raises UnfitEvidenceError for other files."""

    def count(self, name: str) -> int:
        """How many rows a folder has, from its files' own footers."""

    def topic_rows(self, name: str) -> dict[int, int]:
        """How many rows a folder has of each topic, by its index; a topic without rows is left out."""

    def last_offsets(self, name: str) -> dict[Place, int]:
        """The last offset of each partition that a folder holds."""

    def producer_rows(self, process: int, operation: int) -> tuple[LogRow, ...]:
        """All rows of the log by the producers of one operation, in order of place."""


@dataclass(frozen=True, slots=True)
class LocalCaptureReader:
    """Captures in directories of this machine."""

    directory: RunDirectory

    def present(self, name: str) -> bool:
        """Whether the folder has the marker."""
        return (self._folder(name) / MARKER).exists()

    def schemas(self, name: str) -> Iterator[tuple[str, pa.Schema]]:
        """From the footers; raises UnfitEvidenceError for a file that has none."""
        import pyarrow.parquet as pq

        for path in sorted(self._folder(name).glob("*.parquet")):
            try:
                yield str(path), pq.read_schema(path)
            except (OSError, ValueError) as error:
                raise UnfitEvidenceError(unreadable(str(path), error)) from error

    def count(self, name: str) -> int:
        """From the footers."""
        import pyarrow.dataset as ds

        return int(ds.dataset(self._folder(name), format="parquet").count_rows())

    def topic_rows(self, name: str) -> dict[int, int]:
        """Read batch by batch, so that memory does not grow with the folder."""
        import pyarrow.dataset as ds

        rows: Counter[int] = Counter()
        for batch in ds.dataset(self._folder(name), format="parquet").to_batches(columns=["topic_index"]):
            rows.update({each["values"]: each["counts"] for each in batch["topic_index"].value_counts().to_pylist()})
        return rows

    def last_offsets(self, name: str) -> dict[Place, int]:
        """Read batch by batch, so that memory does not grow with the folder."""
        import pyarrow as pa
        import pyarrow.dataset as ds

        keys = ["topic_index", "partition"]
        ends: dict[Place, int] = defaultdict(lambda: -1)
        for batch in ds.dataset(self._folder(name), format="parquet").to_batches(columns=[*keys, "offset"]):
            grouped = pa.Table.from_batches([batch]).group_by(keys).aggregate([("offset", "max")])
            for row in grouped.to_pylist():
                place = (row["topic_index"], row["partition"])
                ends[place] = max(ends[place], row["offset_max"])
        return ends

    def producer_rows(self, process: int, operation: int) -> tuple[LogRow, ...]:
        """Filtered while reading; cached, because every violation of an operation needs it."""
        return _producer_rows(self._folder("log"), process, operation)

    def _folder(self, name: str) -> Path:
        return self.directory.root / name


def unreadable(path: str, error: Exception | str) -> str:
    """The message about a file that is no Parquet."""
    return f"{path} is not readable Parquet ({error}); the file is cut or foreign"


@lru_cache(maxsize=256)
def _producer_rows(log: Path, process: int, operation: int) -> tuple[LogRow, ...]:
    import pyarrow.dataset as ds

    dataset = ds.dataset(log, format="parquet")
    own = (ds.field("process") == process) & (ds.field("operation") == operation)
    producers = dataset.to_table(columns=["producer_id"], filter=own).column("producer_id").unique().to_pylist()
    found = dataset.to_table(columns=list(LOG_ROW), filter=ds.field("producer_id").isin(producers)).to_pylist()
    return in_order(tuple(row.values()) for row in found)


def in_order(rows: Iterator[LogRow]) -> tuple[LogRow, ...]:
    """By place: topic index, partition, offset."""
    return tuple(sorted(rows, key=lambda row: row[:3]))
