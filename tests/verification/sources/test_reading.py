"""One log, read in whatever pieces and by whichever source: the same rows.

The log is planted and served by a broker of the tests over real sockets, to `wire` and to librdkafka, and lies on disk
for `segments`.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.planted import log as planted_log
from tests.support.servers.log_broker import LogBroker, log_broker
from tests.support.wire_definitions import definition_jars
from verification.evidence.row_types import Row
from verification.reference.run_index import RunIndex
from verification.vocabulary.errors import CaptureError
from wire.records import decode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from verification.sources.ranges import Range

TOPIC = "orders"
PARTS = planted_log.batches()
LOG = b"".join(PARTS)
END = list(decode(LOG))[-1].next_offset


@pytest.fixture(scope="module")
def broker() -> Iterator[LogBroker]:
    """One partition's log and a second one's."""
    other = b"".join(planted_log.batches(1, rounds=3, seed=2))
    with log_broker({(TOPIC, 0): LOG, (TOPIC, 1): other}) as serving:
        yield serving


def whole(start: int = 0, end: int = END, partition: int = 0) -> Range:
    from verification.sources.ranges import Range

    return Range(topic=TOPIC, topic_index=0, partition=partition, start=start, end=end)


def options(bootstrap: str, ranges: Sequence[Range], **more: str) -> dict[str, str]:
    from verification.sources.ranges import encode

    return {
        "bootstrap": bootstrap,
        "definitions": json.dumps(definition_jars()),
        "run": planted_log.RUN,
        "ranges": encode(ranges),
        "tasks": "2",
        "timeout_s": "20",
        "settings": "{}",
        **more,
    }


def place(row: Row) -> tuple[int, int]:
    return row["partition"], row["offset"]


def rows_of(reader: Any) -> list[Row]:
    """Everything that a reader gives in all of its Spark partitions, in order of place."""
    found = [row for group in reader.partitions() for batch in reader.read(group) for row in batch.to_pylist()]
    return sorted(found, key=place)


def wire_rows(broker: LogBroker, ranges: Sequence[Range], **more: str) -> list[Row]:
    from verification.sources.wire_log import LogReader

    return rows_of(LogReader(options(broker.bootstrap, ranges, **more)))


def outcomes(rows: Sequence[Row]) -> dict[int, str | None]:
    """The outcome of every data record by offset, as the reference judge derives it from rows."""
    nothing: dict[str, list[Row]] = {
        name: [] for name in ("operations", "ends", "observers", "committed", "uncommitted", "observations", "acks")
    }
    case = RunIndex({**nothing, "runs": [{"run": planted_log.RUN, "has_log": True}], "log": list(rows)})
    return {at[2]: spot.outcome for at, spot in case.spots.items() if spot.row and spot.row["control"] is None}


@pytest.mark.parametrize("most", [1, 2, 3, 7, 50, END - 1])
def test_a_log_that_is_read_in_pieces_is_the_log(broker: LogBroker, most: int) -> None:
    """Whatever the length of the pieces, their rows together are those of the unsplit read, and so are the outcomes."""
    from verification.sources.ranges import RangeGroup
    from verification.sources.wire_log import LogReader

    unsplit = wire_rows(broker, [whole()], split_offsets="0")
    reader = LogReader(options(broker.bootstrap, [whole()], split_offsets=str(most)))
    groups = [each for each in reader.partitions() if isinstance(each, RangeGroup)]
    assert len(groups) == -(-END // most)
    # One connection for all pieces: their number does not matter here.
    together = RangeGroup([each for group in groups for each in group.ranges])
    split = sorted((row for batch in reader.read(together) for row in batch.to_pylist()), key=place)
    assert [row["offset"] for row in unsplit] == list(range(END))
    assert split == unsplit
    assert outcomes(split) == outcomes(unsplit)
    assert set(outcomes(split).values()) == {"commit", "abort"}


def test_every_place_where_the_log_is_cut_lies_inside_a_transaction(broker: LogBroker) -> None:
    """At each offset some transaction's marker is still to come: a piece judged by itself would call records open."""
    rows = wire_rows(broker, [whole()], split_offsets="0")
    truth = outcomes(rows)
    for cut in range(1, END - 1):
        alone = outcomes(rows[:cut])
        assert any(outcome == "open" and truth[offset] != "open" for offset, outcome in alone.items())
    inside = [batch for batch in decode(LOG) if batch.count > 1]
    assert {batch.compression for batch in inside} == set(planted_log.CODECS)


def test_a_piece_is_one_that_its_size_says(broker: LogBroker) -> None:
    """Pieces cover every range once, none is longer than asked for, and small captures keep the tasks that they had."""
    from verification.sources.ranges import SPLIT_OFFSETS, split, split_and_grouped

    ranges = [whole(5, 5), whole(0, 10), whole(3, 4), whole(7, 107)]
    pieces = split(ranges, 7)
    assert max(each.length for each in pieces) <= 7
    assert sorted(offset for each in pieces for offset in range(each.start, each.end)) == sorted(
        offset for each in ranges for offset in range(each.start, each.end)
    )
    assert split(ranges, 0) == ranges
    assert len(split_and_grouped([whole(0, SPLIT_OFFSETS)], 2, SPLIT_OFFSETS)) == 1
    groups = split_and_grouped([whole(0, 10 * SPLIT_OFFSETS), whole(0, 9, partition=1)], 2, SPLIT_OFFSETS)
    assert len(groups) == 11
    assert max(sum(each.length for each in group.ranges) for group in groups) <= SPLIT_OFFSETS + 9
    assert len(split_and_grouped([whole(0, 10 * SPLIT_OFFSETS)], 2, 0)) == 1


def test_a_worker_needs_no_jar(broker: LogBroker) -> None:
    """With the definitions in its options the reader reads the same log, and there is no path among its options."""
    from verification.sources.wire_log import READER_APIS, LogReader
    from verification.spark.capture import definition_texts as definitions_of
    from wire.messages import Definitions

    spoken = definitions_of(definition_jars())
    asked = options(broker.bootstrap, [whole()], definitions=spoken)
    assert not any(jar in text for text in asked.values() for jar in definition_jars())
    # As a session hands it to a worker.
    reader = pickle.loads(pickle.dumps(LogReader(asked)))  # noqa: S301 - our own
    assert rows_of(reader) == wire_rows(broker, [whole()])
    assert Definitions.load(*json.loads(spoken)).apis() == sorted(READER_APIS)
    for jars, said in (
        ((), "no jar was given"),
        (("nowhere.jar",), "cannot read message definitions from nowhere.jar"),
    ):
        with pytest.raises(CaptureError, match=said):
            definitions_of(jars)


def test_segments_hold_what_fetch_gives(broker: LogBroker, tmp_path: Path) -> None:
    """Files of one segment or of many are read to the same rows as the leader's answers, and so is a part of them."""
    from verification.sources.segments import SegmentReader

    expected = wire_rows(broker, [whole()])
    for each in (1, 4, 1000):
        directory = planted_log.data_directory(tmp_path / str(each), 1)
        planted_log.write_segments(directory / f"{TOPIC}-0", PARTS, each=each)
        disk = {"directory": str(directory), "run": planted_log.RUN, "tasks": "3"}
        for start, end in ((0, END), (END // 3, END // 2), (1, 2)):
            reader = SegmentReader({**disk, "ranges": options(broker.bootstrap, [whole(start, end)])["ranges"]})
            assert rows_of(reader) == expected[start:end]


def test_a_client_is_given_the_records_that_count(broker: LogBroker) -> None:
    """A librdkafka consumer gets all data under read_uncommitted, and committed data under read_committed."""
    from verification.evidence.columns import DELIVERED
    from verification.sources.client import ClientReader

    log = [row for row in wire_rows(broker, [whole()], split_offsets="3") if row["control"] is None]
    outcome = outcomes(wire_rows(broker, [whole()]))
    for isolation in ("read_uncommitted", "read_committed"):
        given = rows_of(ClientReader(options(broker.bootstrap, [whole()], isolation=isolation)))
        counted = [row for row in log if isolation == "read_uncommitted" or outcome[row["offset"]] == "commit"]
        assert given == [{name: row[name] for name in DELIVERED} for row in counted]
    assert 0 < len(counted) < len(log)


@pytest.mark.spark
def test_one_option_chooses_who_reads(spark: SparkSession, broker: LogBroker, tmp_path: Path) -> None:
    """The three sources give the same frame of the same log through Spark's workers, where they show the same."""
    from pyspark.errors import AnalysisException

    from verification.evidence.columns import DELIVERED
    from verification.spark.worker_code import ship

    ship(spark)
    other = broker.logs[TOPIC, 1]
    ranges = [whole(), whole(0, other.end, partition=1)]
    directory = planted_log.data_directory(tmp_path, 1)
    planted_log.write_segments(directory / f"{TOPIC}-0", PARTS, each=20)
    planted_log.write_segments(directory / f"{TOPIC}-1", [other.raw])
    common = options(
        broker.bootstrap, ranges, directory=str(directory), isolation="read_uncommitted", split_offsets="100"
    )

    def read(source: str) -> list[Row]:
        frame = spark.read.format("onceproof").option("source", source).options(**common).load()
        return sorted(frame.toArrow().to_pylist(), key=place)

    wire = read("wire")
    assert len(wire) == END + other.end
    assert read("segments") == wire
    assert read("client") == [{name: row[name] for name in DELIVERED} for row in wire if row["control"] is None]
    with pytest.raises(AnalysisException, match="there is no source tape; there are wire, client, segments, connector"):
        read("tape")
    with pytest.raises(AnalysisException, match=r"connector is no reader of onceproof; .* gives its frame"):
        read("connector")


def test_a_range_that_a_replica_does_not_have_is_refused(broker: LogBroker, tmp_path: Path) -> None:
    """A deleted beginning and an end that the log does not reach are said, and never read as less."""
    from verification.sources.segments import SegmentReader

    directory = planted_log.data_directory(tmp_path, 1, log_start={(TOPIC, 0): 5})
    planted_log.write_segments(directory / f"{TOPIC}-0", PARTS)
    disk = {"directory": str(directory), "run": planted_log.RUN, "tasks": "1"}
    for wanted, said in ((whole(), "begins at 5; what lay from 0 on"), (whole(5, END + 1), f"ends at {END}, not at")):
        reader = SegmentReader({**disk, "ranges": options(broker.bootstrap, [wanted])["ranges"]})
        with pytest.raises(CaptureError, match=said):
            rows_of(reader)
