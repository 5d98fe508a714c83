"""Row groups that are not read again hold no sought row, whatever their footers have or lack."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from verification.evidence.columns import TYPES
from verification.fingerprints.workers import aggregate
from verification.fingerprints.workers.fragments import BLOCK_BITS, CHUNK_BITS
from verification.fingerprints.workers.row_filter import By, RowFilter, wanted
from verification.fingerprints.workers.scan import row_groups

Row = dict[str, Any]
_SCHEMA = pa.schema([(name, pa.type_for_alias(TYPES[name])) for name in aggregate.LOGGED])
_GROUP_ROWS = 50


def _log(chosen: random.Random, rows: int, unsure: float) -> list[Row]:
    """Records of a few clients in a few places, in the order of their offsets."""
    found = []
    for number in range(rows):
        sure = chosen.random() >= unsure
        found.append(
            {
                "run": "a",
                "topic_index": number * 3 // rows,
                "partition": number * 6 // rows % 2,
                "offset": number * 90,
                "producer_id": chosen.randrange(3),
                "control": None if chosen.random() < 0.9 else "commit",
                "transactional": True,
                "identity_run": "a" if sure else None,
                "process": chosen.randrange(3) if sure else None,
                "operation": number // 20 if sure else None,
                "valid": sure,
            }
        )
    return found


def _keys(by: By, row: Row) -> Row:
    """The keys by which a row would be sought."""
    alone = row["process"] is None or row["control"] is not None
    made: Row = row | {
        "chunk": row["offset"] if by is By.FRAGMENT and alone else row["offset"] >> CHUNK_BITS,
        "block": row["offset"] >> BLOCK_BITS,
    }
    if by is By.FRAGMENT and alone:
        made |= {"process": None, "operation": None}
    return {name: made[name] for name in by.columns}


def _row_filter(by: By, rows: Iterable[Row], *, unsure: bool = False) -> RowFilter:
    kinds = {"chunk": pa.int64(), "block": pa.int64()}
    schema = pa.schema([(name, kinds.get(name) or _SCHEMA.field(name).type) for name in by.columns])
    keys = [_keys(by, row) for row in rows]
    return RowFilter(("offset",), {by: wanted(by, pa.RecordBatch.from_pylist(keys, schema=schema))}, unsure=unsure)


def _let_through(row_filter: RowFilter, table: pa.Table) -> list[int]:
    return [offset for batch in row_filter(table.to_batches()) for offset in batch.column("offset").to_pylist()]


def _written(rows: list[Row], path: Path, **options: Any) -> pq.ParquetFile:
    pq.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA), path, row_group_size=_GROUP_ROWS, **options)
    return pq.ParquetFile(path)


@pytest.mark.parametrize("unsure", [False, True])
@pytest.mark.parametrize("by", [by for by in By if by is not By.SOURCE])
@pytest.mark.parametrize("seed", range(5))
def test_what_is_sought_stands_in_the_groups_that_are_read(by: By, seed: int, unsure: bool, tmp_path: Path) -> None:
    """A filter lets the same rows through from the chosen row groups as from all."""
    chosen = random.Random(seed)
    rows = _log(chosen, 1_000, 0.002)
    row_filter = _row_filter(by, chosen.sample(rows, 3), unsure=unsure)
    file = _written(rows, tmp_path / "log.parquet")
    kept = [number for number, group in enumerate(row_groups(str(tmp_path / "log.parquet"))) if row_filter.holds(group)]
    every = _let_through(row_filter, file.read())
    assert _let_through(row_filter, file.read_row_groups(kept)) == every
    assert every
    if by is not By.PRODUCER:
        assert len(kept) < file.num_row_groups


def test_nothing_sought_is_nothing_read(tmp_path: Path) -> None:
    """Only row groups that may have a record that is not surely of its run are read."""
    rows = _log(random.Random(1), 1_000, 0)
    nothing = RowFilter(("offset",), {By.OPERATION: wanted(By.OPERATION, None)}, unsure=True)
    path = tmp_path / "log.parquet"
    _written(rows, path)
    assert not any(map(nothing.holds, row_groups(str(path))))
    for name, value in (("valid", False), ("valid", None), ("identity_run", "b"), ("process", None), ("run", "b")):
        _written([*rows[:500], rows[500] | {name: value}, *rows[501:]], path)
        kept = [number for number, group in enumerate(row_groups(str(path))) if nothing.holds(group)]
        assert kept == [500 // _GROUP_ROWS], name


@pytest.mark.parametrize("by", [By.FRAGMENT, By.OPERATION])
def test_a_footer_that_says_nothing_excludes_nothing(by: By, tmp_path: Path) -> None:
    """Neither in files without statistics, nor in those that lack a column."""
    rows = _log(random.Random(2), 400, 0)
    row_filter = _row_filter(by, rows[:1], unsure=False)
    path = tmp_path / "log.parquet"
    _written(rows, path, write_statistics=False)
    assert all(map(row_filter.holds, row_groups(str(path))))
    assert all(RowFilter(("offset",), {}, unsure=True).holds(group) for group in row_groups(str(path)))
