"""Writes a capture, laid out like large ones of `verification.spark.capture`: by partition, in small row groups."""

from __future__ import annotations

from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.judge.generator import columns
from benchmarks.judge.generator.block import Rows
from verification.spark.capture import ROW_GROUP_ROWS

#: Topic index and partition.
Place = tuple[int, int]


class CaptureWriter:
    """The folder of a capture, to which blocks are appended."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        folder.mkdir()
        self._folder = folder
        self._stack = stack
        self._files: dict[Place, pq.ParquetWriter] = {}
        self._waiting: dict[Place, list[pa.Table]] = defaultdict(list)

    def append(self, rows: Rows) -> None:
        """Append rows in the order of their places, after all earlier ones."""
        table = columns.table(rows, self._folder.name)
        topic, partition = rows["topic"], rows["partition"]
        begins = np.flatnonzero(np.diff(topic, prepend=-1) | np.diff(partition, prepend=-1))
        for begin, end in zip(begins, np.append(begins[1:], len(topic)), strict=True):
            place = int(topic[begin]), int(partition[begin])
            self._waiting[place].append(table.slice(begin, end - begin))
            if sum(map(len, self._waiting[place])) >= ROW_GROUP_ROWS:
                self._write(place)

    def _write(self, place: Place) -> None:
        if place not in self._files:
            path = self._folder / f"part-{place[0]}-{place[1]}.parquet"
            writer = pq.ParquetWriter(path, columns.schema(self._folder.name), compression="zstd")
            self._files[place] = self._stack.enter_context(writer)
        self._files[place].write_table(pa.concat_tables(self._waiting.pop(place)))

    def finish(self) -> None:
        """Write the rows that wait for more of their partition, and the marker."""
        for place in sorted(self._waiting):
            self._write(place)
        (self._folder / "_SUCCESS").touch()
