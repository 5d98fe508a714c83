"""The readers: one parser for two, pinned ranges, the log with its markers, and a whole capture through Spark."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verification.evidence.rows import identity_row
from verification.evidence.run_directory import RunDirectory
from verification.vocabulary.errors import CaptureError
from verification.vocabulary.experiment import Experiment, ExperimentTopic
from verification.vocabulary.identity import IDENTITY_LENGTH, Identity, RecordKind, decode
from verification.vocabulary.quiescent_state import PartitionEnd, QuiescentState
from verification.vocabulary.quiescent_state import read as read_captures

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUN = "abcdef012345"


def identities() -> st.SearchStrategy[Identity]:
    """Any identity that fits the layout."""
    return st.builds(
        Identity,
        run=st.text("abcdef0123456789", min_size=1, max_size=12),
        process=st.integers(0, 10**6 - 1),
        operation=st.integers(0, 10**10 - 1),
        kind=st.sampled_from(RecordKind),
        index=st.integers(0, 10**6 - 1),
        count=st.integers(0, 10**6 - 1),
        topic_index=st.integers(0, 999),
        intended_partition=st.integers(0, 10**6 - 1),
        send_order=st.integers(0, 10**10 - 1),
        source_partition=st.integers(-1, 10**5),
        source_offset=st.integers(-1, 2**62),
    )


def values() -> st.SearchStrategy[bytes | None]:
    """Values as they may be found: ours, ours with a byte changed, cut, foreign, null."""
    ours = st.builds(lambda identity, size: identity.encode(size), identities(), st.integers(96, 200))
    changed = st.builds(
        lambda value, at, byte: value[:at] + bytes([byte]) + value[at + 1 :],
        ours,
        st.integers(0, 95),
        st.integers(0, 255),
    )
    cut = st.builds(lambda value, size: value[:size], ours, st.integers(0, 120))
    return st.one_of(ours, changed, cut, st.binary(max_size=150), st.none())


@settings(deadline=None, database=None)
@given(st.lists(values(), max_size=8))
def test_the_vectorised_parser_agrees_with_the_plain_one(several: list[bytes | None]) -> None:
    """Every value is parsed to the identity that `identity.decode` gives, or to nulls where it gives none."""
    from verification.evidence.columns import CONTENT, IDENTITY
    from verification.sources.parse import identity_columns

    columns = {name: column.to_pylist() for name, column in identity_columns(several).items()}
    assert set(columns) == {*IDENTITY, *CONTENT}
    for number, value in enumerate(several):
        row = {name: column[number] for name, column in columns.items()}
        expected = dict.fromkeys(IDENTITY) | identity_row(value)
        assert row == {**expected, "digest": zlib.crc32(value or b"")}


def test_a_checksum_that_holds_over_garbage_is_not_enough() -> None:
    """A value with our magic and a right checksum but no numbers is foreign."""
    from verification.sources.parse import identity_columns

    body = b"OP1".ljust(IDENTITY_LENGTH - 8, b"x")
    value = body + f"{zlib.crc32(body):08x}".encode()
    assert decode(value) is None
    assert identity_columns([value])["valid"].to_pylist() == [False]


def test_names_and_types_speak_of_the_same_columns() -> None:
    """The columns that are known without pyspark are those of the schemas, in their order."""
    from pyspark.sql.pandas.types import to_arrow_schema

    from verification.evidence import columns
    from verification.sources import schema

    assert tuple(schema.LOG.names) == columns.LOG
    assert tuple(schema.DELIVERED.names) == columns.DELIVERED
    assert {field.name: str(field.type) for field in to_arrow_schema(schema.LOG)} == columns.TYPES


def test_ranges_are_grouped_evenly_and_none_is_lost() -> None:
    """Every range that has offsets is in exactly one of at most so many groups, of about the same length."""
    from verification.sources.ranges import Range, decode, encode, grouped

    ranges = [
        Range(topic="t", topic_index=0, partition=number, start=number, end=number * number) for number in range(20)
    ]
    groups = grouped(ranges, 3)
    assert sorted(each for group in groups for each in group.ranges) == [each for each in ranges if each.length > 0]
    sizes = [sum(each.length for each in group.ranges) for group in groups]
    assert len(sizes) == 3
    assert max(sizes) - min(sizes) <= max(each.length for each in ranges)
    assert [group.ranges for group in grouped([], 3)] == [()]
    assert decode(encode(ranges)) == tuple(ranges)


def test_the_log_reader_keeps_markers_and_cuts_at_the_range() -> None:
    """Batches become rows with producer, epoch, sequence and decision; what lies outside the range is left out."""
    from verification.sources.ranges import Range
    from verification.sources.wire_log import log_rows
    from wire.records import decode as decode_batches
    from wire.records import encode as encode_batch

    def value(index: int) -> bytes:
        return Identity(
            run=RUN,
            process=1,
            operation=2,
            kind=RecordKind.TRANSACTION,
            index=index,
            count=3,
            topic_index=4,
            intended_partition=5,
            send_order=index,
        ).encode(150)

    producer: dict[str, Any] = {"producer_id": 7, "producer_epoch": 3, "transactional": True}
    wrapped = (1 << 31) - 1
    data = [(None, value(0)), (b"key", value(1)), (None, None)]
    raw = encode_batch(data, base_offset=10, base_sequence=wrapped, **producer)
    raw += encode_batch([(b"\0\0\0\1", b"")], base_offset=13, control=True, **producer)
    raw += encode_batch([(b"\0\0\0\0", b"")], base_offset=14, control=True, **producer)
    raw += encode_batch([(b"\0\0\0\2", b"")], base_offset=15, control=True, **producer)
    raw += encode_batch([(None, b"plain")], base_offset=16, leader_epoch=8)
    wanted = Range(topic="t", topic_index=4, partition=5, start=11, end=17)
    rows = log_rows(RUN, wanted, list(decode_batches(raw))).to_pylist()
    assert [row["offset"] for row in rows] == [11, 12, 13, 14, 15, 16]
    assert [row["control"] for row in rows] == [None, None, "commit", "abort", "other", None]
    assert [row["transactional"] for row in rows] == [True] * 5 + [False]
    assert [row["sequence"] for row in rows[:2]] == [0, 1]
    assert [(row["producer_id"], row["producer_epoch"]) for row in rows] == [(7, 3)] * 5 + [(-1, -1)]
    assert [row["leader_epoch"] for row in rows] == [-1] * 5 + [8]
    assert [row["valid"] for row in rows] == [True, False, None, None, None, False]
    assert (rows[0]["process"], rows[0]["index"], rows[0]["digest"]) == (1, 1, zlib.crc32(value(1)))


@pytest.fixture
def cluster() -> Iterator[tuple[str, dict[tuple[str, int], list[bytes]]]]:
    """A mock cluster with plain records in it: bootstrap, and the records by place."""
    from confluent_kafka import Producer

    producer = Producer({"test.mock.num.brokers": 2, "log_level": 0, "queue.buffering.max.ms": 1})
    brokers = producer.list_topics(timeout=20).brokers.values()
    held: dict[tuple[str, int], list[bytes]] = {}
    for number in range(200):
        topic_index, partition = number % 2, number // 2 % 2
        entries = held.setdefault((("one", "two")[topic_index], partition), [])
        identity = Identity(
            run=RUN,
            process=0,
            operation=0,
            kind=RecordKind.PLAIN,
            index=number,
            count=200,
            topic_index=topic_index,
            intended_partition=partition,
            send_order=len(entries),
        )
        entries.append(identity.encode(120))
        producer.produce(("one", "two")[topic_index], entries[-1], partition=partition)
    assert producer.flush(30) == 0
    yield ",".join(f"{broker.host}:{broker.port}" for broker in brokers), held
    # The cluster lives inside this producer, so it must live as long as the test.
    producer.flush(1)


def _experiment() -> Experiment:
    topics = tuple(ExperimentTopic(name=name, partitions=2, replication=1, min_in_sync=1) for name in ("one", "two"))
    return Experiment(
        run=RUN,
        scenario="s",
        claim="c",
        requirements=(),
        seed=1,
        started="",
        release="4.3.1",
        runtime="external",
        client="confluent",
        topics=topics,
        has_log=False,
    )


def _ends(held: dict[tuple[str, int], list[bytes]], *, stable: int = 0) -> QuiescentState:
    return QuiescentState(
        ends=tuple(
            PartitionEnd(
                topic=topic,
                partition=partition,
                start=0,
                high_watermark=len(values),
                last_stable_offset=len(values) - stable,
            )
            for (topic, partition), values in held.items()
        )
    )


@pytest.mark.spark
def test_a_capture_holds_what_lies_below_the_pinned_ends(
    spark: SparkSession, cluster: tuple[str, dict[tuple[str, int], list[bytes]]], tmp_path: Path
) -> None:
    """Every record below each pinned end, and none beyond it, goes through Spark workers into Parquet."""
    from verification.sources.schema import DELIVERED
    from verification.spark.capture import capture

    bootstrap, held = cluster
    directory = RunDirectory(tmp_path)
    ends = _ends(held, stable=3)
    capture(spark, directory, bootstrap=bootstrap, captures=ends, experiment=_experiment(), definitions=[])
    rows = spark.read.schema(DELIVERED).parquet(str(directory.committed)).toArrow().to_pylist()
    found = {(row["topic"], row["partition"], row["offset"]): row["digest"] for row in rows}
    assert found == {
        (topic, partition, offset): zlib.crc32(value)
        for (topic, partition), values in held.items()
        for offset, value in enumerate(values[:-3])
    }
    assert len(rows) == len(found)
    assert read_captures(directory.captures) == replace(ends, rows={"committed": len(found)})
    assert all(row["valid"] and row["topic_index"] == ("one", "two").index(row["topic"]) for row in rows)


@pytest.mark.spark
def test_captures_have_small_row_groups(
    spark: SparkSession,
    cluster: tuple[str, dict[tuple[str, int], list[bytes]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Their footers say where something stands: Spark's own row groups would be all that a task writes."""
    from verification.spark import capture as capturing

    monkeypatch.setattr(capturing, "ROW_GROUP_ROWS", 7)
    bootstrap, held = cluster
    directory = RunDirectory(tmp_path)
    capturing.capture(
        spark, directory, bootstrap=bootstrap, captures=_ends(held), experiment=_experiment(), definitions=[]
    )
    footers = [pq.read_metadata(path) for path in directory.committed.glob("*.parquet")]
    sizes = [footer.row_group(number).num_rows for footer in footers for number in range(footer.num_row_groups)]
    assert sum(sizes) == sum(map(len, held.values()))
    assert max(sizes) == 7


@pytest.mark.spark
def test_references_are_resolved_between_reading_and_counting(
    spark: SparkSession,
    cluster: tuple[str, dict[tuple[str, int], list[bytes]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of whole captures, before their sizes are recorded, and for the same row groups."""
    from verification.spark import capture as capturing

    bootstrap, held = cluster
    directory, resolved = RunDirectory(tmp_path), []

    def resolve(of: RunDirectory, _: Experiment, *, row_group_rows: int) -> None:
        resolved.append(((of.committed / "_SUCCESS").exists(), of.captures.exists(), row_group_rows))

    monkeypatch.setattr("verification.evidence.references.resolve", resolve)
    capturing.capture(
        spark, directory, bootstrap=bootstrap, captures=_ends(held), experiment=_experiment(), definitions=[]
    )
    assert resolved == [(True, False, capturing.ROW_GROUP_ROWS)]


@pytest.mark.spark
def test_an_end_that_cannot_be_reached_is_named(
    spark: SparkSession, cluster: tuple[str, dict[tuple[str, int], list[bytes]]], tmp_path: Path
) -> None:
    """A reader that stands still names the capture, the partition and the offset where it stood."""
    from verification.spark.capture import capture

    bootstrap, held = cluster
    ends = QuiescentState(
        ends=tuple(
            PartitionEnd(topic=topic, partition=partition, start=0, high_watermark=60, last_stable_offset=60)
            for topic, partition in held
        )
    )
    with pytest.raises(
        CaptureError, match=r"committed could not be captured: .* waited 2 s .* (one|two)-[01] at 50 of 60"
    ):
        capture(
            spark,
            RunDirectory(tmp_path),
            bootstrap=bootstrap,
            captures=ends,
            experiment=_experiment(),
            definitions=[],
            stall_s=2,
        )


@pytest.mark.spark
def test_every_partition_must_be_pinned(spark: SparkSession, tmp_path: Path) -> None:
    """A partition without a recorded end would be a hole in the capture, so nothing is read."""
    from verification.spark.capture import capture

    with pytest.raises(CaptureError, match="no end is recorded for one-0"):
        capture(
            spark,
            RunDirectory(tmp_path),
            bootstrap="127.0.0.1:1",
            captures=QuiescentState(),
            experiment=_experiment(),
            definitions=[],
        )


def test_counts_are_read_of_records_that_name_an_input_of_the_run() -> None:
    """Foreign records and those of other runs are left out; a record without a count is not."""
    from verification.sources.counts import CountReader
    from verification.sources.ranges import Range, encode

    class Message:
        def __init__(self, offset: int, value: bytes | None) -> None:
            self.offset, self.value = lambda: offset, lambda: value

    def value(run: str, said: bytes) -> bytes:
        named = Identity(
            run=run,
            process=1,
            operation=2,
            kind=RecordKind.PLAIN,
            index=0,
            count=1,
            topic_index=4,
            intended_partition=5,
            send_order=0,
        )
        return named.encode() + said

    here = Range(topic="t", topic_index=3, partition=2, start=0, end=9)
    options = {"bootstrap": "", "isolation": "read_committed", "run": RUN, "ranges": encode([here])}
    reader = CountReader({**options, "tasks": "1", "timeout_s": "1", "settings": "{}"})
    values = (value(RUN, b" 7 key "), value(RUN, b"...."), value("another", b" 8 key"), b"foreign 1 key", None)
    rows = reader._arrow([(here, Message(offset, each)) for offset, each in enumerate(values)]).to_pylist()
    place = {"topic_index": 3, "partition": 2}
    assert rows == [
        {**place, "offset": 0, "key": "key", "count": 7},
        {**place, "offset": 1, "key": None, "count": None},
    ]
