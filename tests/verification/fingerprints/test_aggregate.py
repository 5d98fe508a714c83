"""The workers' results for batches, compared with the same row by row in plain Python."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from verification.evidence.columns import TYPES
from verification.fingerprints.workers import aggregate, neighbours
from verification.fingerprints.workers.columns import NULL, NumpyColumns
from verification.fingerprints.workers.fragments import BLOCK_BITS, BLOCK_MAX, CHUNK_BITS, COPIED, FRAGMENT_KEYS
from verification.fingerprints.workers.groups import Groups
from verification.fingerprints.workers.hashing import hash_int, hash_long, hash_longs
from verification.fingerprints.workers.packed import PackKind, buckets_of, packs, packs_of_kind, unpack
from verification.fingerprints.workers.row_filter import By, wanted
from verification.fingerprints.workers.row_selection import Overlapping, Reached
from verification.fingerprints.workers.scan import CaptureSource, scanned
from verification.fingerprints.workers.suspects import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

Row = dict[str, Any]
_SCHEMA = pa.schema([(name, pa.type_for_alias(TYPES[name])) for name in aggregate.LOGGED])


def _log(seed: int, rows: int = 600) -> list[Row]:
    """Records, control records and foreign values of a few clients, in a few places, some fields missing."""
    chosen = random.Random(seed)
    found = []
    for offset in range(rows):
        sure, control = chosen.random() < 0.9, chosen.choice((None, None, None, "commit", "abort"))
        source = chosen.choice((-1, 62 + chosen.randrange(4)))
        found.append(
            {
                "run": chosen.choice(("a", "b")),
                "topic_index": chosen.randrange(2),
                "partition": chosen.randrange(2),
                "offset": offset * chosen.choice((1, 1, 700)),
                "producer_id": chosen.choice((-1, 7, 8)),
                "producer_epoch": chosen.randrange(3),
                "sequence": chosen.choice((None, offset)),
                "control": control,
                "transactional": chosen.random() < 0.5,
                "identity_run": "a" if sure else None,
                "process": chosen.randrange(2) if sure else None,
                "operation": chosen.randrange(3) if sure else None,
                "index": chosen.randrange(4) if sure else None,
                "count": 3 if sure else None,
                "intended_topic_index": chosen.randrange(2) if sure else None,
                "intended_partition": chosen.randrange(2) if sure else None,
                "send_order": offset if sure else None,
                "source_partition": 0 if sure else None,
                "source_offset": source if sure else None,
                "valid": sure,
                "digest": chosen.randrange(1 << 32),
                "identity_digest": chosen.choice((None, 5)),
            }
        )
    return found


def _batch(rows: Iterable[Row], schema: pa.Schema = _SCHEMA) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema=schema)


def _fragment(row: Row) -> Row:
    """The keys of the fragment of a row, by the words of `fragment_chains` and `aggregate`."""
    mine = row["control"] is None and row["valid"] and row["identity_run"] == row["run"]
    copy = row["control"] is None and row["source_offset"] not in (None, -1)
    return {
        **{name: row[name] for name in ("run", "topic_index", "partition", "producer_id", "transactional", "control")},
        "process": row["process"] if mine else None,
        "operation": row["operation"] if mine else None,
        "chunk": row["offset"] >> CHUNK_BITS if mine else row["offset"],
        "source_partition": row["source_partition"] if copy else None,
        "source_block": row["source_offset"] >> BLOCK_BITS if copy else None,
        "output": row["intended_topic_index"] if copy and mine else None,
    }


def _folded(rows: Iterable[Row]) -> dict[str, Row]:
    found: dict[str, Row] = {}
    for row in rows:
        key = _fragment(row)
        one = found.setdefault(str(sorted(key.items(), key=str)), {**key, "rows": []})
        one["rows"].append(row)
    return found


def _packed(batches: Iterable[pa.RecordBatch]) -> list[Row]:
    whole = unpack(packs_of_kind(batch, PackKind.FRAGMENTS) for batch in batches)
    assert whole is not None
    held: list[Row] = whole.to_pylist()
    return held


@pytest.mark.parametrize("seed", range(4))
def test_an_aggregated_log_counts_its_records(seed: int) -> None:
    """Keys, numbers, ends, extremes and bits of copied inputs, of any rows in one batch or in many."""
    rows = _log(seed)
    expected = _folded(rows)
    (whole,) = [_batch(rows)]
    found = _packed(aggregate.aggregate_log([whole], frozenset(), 3))
    assert len(found) == len(expected)
    for each in found:
        key = {name: each[name] for name in (*FRAGMENT_KEYS, *COPIED)}
        mine = expected[str(sorted(key.items(), key=str))]["rows"]
        assert each["n"] == len(mine)
        assert (each["first"], each["last"]) == (min(row["offset"] for row in mine), max(row["offset"] for row in mine))
        epochs = [row["producer_epoch"] for row in mine]
        assert (each["epoch_min"], each["epoch_max"]) == (min(epochs), max(epochs))
        numbers = [row["sequence"] for row in mine if row["sequence"] is not None]
        assert (each["sequence_min"], each["sequence_max"]) == (min(numbers, default=None), max(numbers, default=None))
        if each["source_block"] is not None:
            bits = {row["source_offset"] & BLOCK_MAX for row in mine}
            assert each["sources"] & ((1 << 64) - 1) == sum(1 << bit for bit in bits)
    assert any(each["sources"] == NULL for each in found if each["source_block"] is not None)
    parts = _packed(
        aggregate.aggregate_log([_batch(rows[at : at + 50]) for at in range(0, len(rows), 50)], frozenset(), 3)
    )
    assert sum(each["n"] for each in parts) == len(rows)


def test_a_record_changes_its_fragment_s_sums() -> None:
    """Another digest, or two digests that are swapped, give other hashes."""
    rows = [row for row in _log(1) if row["control"] is None and row["valid"] and row["identity_run"] == row["run"]][:2]
    rows = [{**row, "offset": at, "digest": 10 + at, "identity_digest": 1} for at, row in enumerate(rows)]
    exchanged = [{**row, "digest": 11 - at} for at, row in enumerate(rows)]
    one, other = (np.bitwise_xor.reduce(aggregate.content_of(NumpyColumns(_batch(each)))) for each in (rows, exchanged))
    assert one != other


@pytest.mark.parametrize("seed", range(3))
def test_groups_are_what_a_dictionary_makes_of_rows(seed: int) -> None:
    """Equal rows far apart are one group, and each row knows its own."""
    chosen = np.random.default_rng(seed)
    keys = [chosen.integers(0, 4, 500), chosen.integers(0, 3, 500)]
    values = chosen.integers(-9, 9, 500)
    groups = Groups(keys)
    expected: dict[tuple[int, int], list[int]] = {}
    for one, other, value in zip(*keys, values, strict=True):
        expected.setdefault((int(one), int(other)), []).append(int(value))
    named = [(int(one), int(other)) for one, other in zip(*groups.keys, strict=True)]
    assert sorted(named) == sorted(expected)
    assert dict(zip(named, groups.reduce(np.add, values), strict=True)) == {
        key: sum(all_) for key, all_ in expected.items()
    }
    assert dict(zip(named, groups.counts(), strict=True)) == {key: len(all_) for key, all_ in expected.items()}
    assert [named[at] for at in groups.of_rows()] == list(zip(*(key.tolist() for key in keys), strict=True))


def test_packs_hold_the_rows_of_their_bucket() -> None:
    """No row is lost, and rows that belong together are in one pack."""
    batch = _batch(_log(2))
    buckets = buckets_of([NumpyColumns(batch)["producer_id"]], 2)
    found = dict(packs(batch, buckets))
    rows = [row for held in found.values() for row in pa.ipc.open_stream(held).read_all().to_pylist()]
    assert sorted(rows, key=str) == sorted(batch.to_pylist(), key=str)
    for bucket, held in found.items():
        assert {int(each) for each in buckets_of([NumpyColumns(_whole(held))["producer_id"]], 2)} == {bucket}
    assert unpack([]) is None


def _whole(held: bytes) -> pa.RecordBatch:
    whole = unpack([pa.RecordBatch.from_pydict({"packed": [held]})])
    assert whole is not None
    return whole


def _looked_around(seed: int) -> dict[int, pa.RecordBatch]:
    """The worker's results for the fragments of a log, by kind."""
    around = list(neighbours.classified_neighbours(aggregate.aggregate_log([_batch(_log(seed))], frozenset(), 1), 1))
    return {row["kind"]: _whole(row["packed"]) for each in around for row in each.to_pylist()}


def _steps(seed: int) -> tuple[pa.RecordBatch, list[Row]]:
    """The steps of a log as a worker sorts them."""
    steps = _looked_around(seed)[PackKind.STEPS]
    return steps, steps.to_pylist()


_PRODUCER = ("run", "topic_index", "partition", "producer_id")


@pytest.mark.parametrize("seed", range(4))
def test_steps_know_what_decided_them(seed: int) -> None:
    """The next commit or abort of the same producer there."""
    _, rows = _steps(seed)
    for at, row in enumerate(rows):
        same = [other for other in rows if all(other[name] == row[name] for name in _PRODUCER)]
        later = [other for other in rows[at + 1 :] if other in same and other["control"] in ("commit", "abort")]
        assert row["until"] == (later[0]["last"] if later else None)


@pytest.mark.parametrize("seed", range(4))
def test_who_raised_an_epoch_that_went_back_is_named(seed: int) -> None:
    """Each step above all earlier ones of a producer with an epoch below an earlier one."""
    log, found = _log(seed), _looked_around(seed)
    stale = {
        tuple(row[name] for name in _PRODUCER)
        for at, row in enumerate(log)
        for other in log[:at]
        if row["producer_id"] >= 0
        and all(other[name] == row[name] for name in _PRODUCER)
        and other["offset"] < row["offset"]
        and other["producer_epoch"] > row["producer_epoch"]
    }
    highest: dict[tuple[Any, ...], int] = {}
    expected = []
    for row in found[PackKind.STEPS].to_pylist():
        producer = tuple(row[name] for name in _PRODUCER)
        if producer in stale and row["epoch_max"] > highest.get(producer, -1):
            expected.append({name: row[name] for name in neighbours.NAMED.names})
        highest[producer] = max(highest.get(producer, -1), row["epoch_max"])
    assert found[PackKind.RAISING].to_pylist() == expected
    assert expected


@pytest.mark.parametrize("seed", range(3))
def test_what_is_reached_lies_between_what_is_sought_and_what_decided_it(seed: int) -> None:
    """Of the same producer; if nothing is sought, only rows that are not surely of this run."""
    batch, rows = _steps(seed)
    nothing = wanted(By.OPERATION, None)
    found = Reached(nothing, nothing)(NumpyColumns(batch))
    names = ("run", "topic_index", "partition", "producer_id")
    for row, reached in zip(rows, found, strict=True):
        seeds = (
            (each["first"], each["until"] if each["transactional"] else each["last"])
            for each in rows
            if each["control"] is None and each["process"] is None and all(each[name] == row[name] for name in names)
        )
        assert bool(reached) is any(
            first <= row["first"] and (end is None or end >= row["first"]) for first, end in seeds
        )


def test_steps_overlap_spans_by_their_own_offsets() -> None:
    """Neither those that end before, nor those that begin after, nor those of another partition."""
    batch, rows = _steps(0)
    held = NumpyColumns(batch)
    places = hash_longs(held.stable("run"), held["topic_index"], held["partition"]).view(np.int64)
    spans = {int(places[0]): (np.array([10, 400]), np.array([20, 450]))}
    found = Overlapping(spans)(held)
    for row, place, met in zip(rows, places, found, strict=True):
        there = any(row["first"] <= high and row["last"] >= low for low, high in ((10, 20), (400, 450)))
        assert bool(met) is (bool(place == places[0]) and there)
    assert found.any()
    assert not found.all()


def test_operations_are_counted_in_one_schema() -> None:
    """The log's counts for operations are complete: a null would count as bits."""
    around = list(neighbours.classified_neighbours(aggregate.aggregate_log([_batch(_log(3))], frozenset(), 1), 1))
    packed = [row["packed"] for each in around for row in each.to_pylist() if row["kind"] == PackKind.OPERATIONS]
    for held in packed:
        whole = _whole(held)
        assert whole.schema == OPERATIONS
        assert all(column.null_count == 0 for column in whole.columns)
    assert packed


@pytest.mark.spark
def test_hashes_are_those_of_spark(spark: SparkSession) -> None:
    """Workers and Spark both hash the indexes of records."""
    values = np.array([0, 1, -1, 41, (1 << 31) - 1, -(1 << 31)], dtype=np.int64)
    table = pa.table({"one": values.astype(np.int32), "two": values * 4_000_000_007})
    frame = spark.createDataFrame(table).selectExpr(
        "xxhash64(one) as a", "xxhash64(two) as b", "xxhash64(one, two) as c"
    )
    rows = frame.toArrow().to_pylist()
    assert [row["a"] for row in rows] == hash_int(values).view(np.int64).tolist()
    assert [row["b"] for row in rows] == hash_long(values * 4_000_000_007).view(np.int64).tolist()
    chained = hash_long(values * 4_000_000_007, hash_int(values))
    assert [row["c"] for row in rows] == chained.view(np.int64).tolist()


def _counted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = NumpyColumns(batch)
        texts = [rows.values("run")[number] for number in rows["run"]]
        yield pa.RecordBatch.from_arrays([pa.array(texts), pa.array(rows["offset"])], names=["run", "offset"])


@pytest.mark.spark
def test_files_give_the_rows_that_spark_gives(spark: SparkSession, tmp_path: Path) -> None:
    """Row groups that workers read themselves, of several files, and the same files through Spark."""
    rows = _log(4)
    for number in range(2):
        part = pa.Table.from_batches([_batch(rows[number::2])])
        pq.write_table(part, tmp_path / f"part-{number}.parquet", row_group_size=70)
    frame = spark.read.parquet(str(tmp_path))
    files = tuple(str(path) for path in sorted(tmp_path.glob("*.parquet")))
    given = pa.schema([("run", pa.string()), ("offset", pa.int64())])
    found = [
        sorted(
            (row["run"], row["offset"])
            for row in scanned(each, ("run", "offset"), _counted, given).toArrow().to_pylist()
        )
        for each in (CaptureSource(frame=frame), CaptureSource(frame=frame, files=files))
    ]
    assert found[0] == found[1] == sorted((row["run"], row["offset"]) for row in rows)
