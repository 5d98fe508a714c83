"""The cost of transactions: rows from cells, the sentences of the page, plots, stored lines, and bad options."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock
from xml.etree import ElementTree as Xml

import pytest
from confluent_kafka import KafkaException

from benchmarks.cost import __main__ as command
from benchmarks.cost import (
    completion,
    delivery,
    loading,
    memory,
    pending,
    producer_ids,
    protocols,
    replication,
    streams,
    throughput,
)
from benchmarks.cost.cost_cluster import CostCluster
from benchmarks.cost.memory import ReaderFigures
from benchmarks.cost.page import SECTIONS, page, plots, tables
from benchmarks.cost.plot import Plot, PlotCurve, curve_of
from benchmarks.cost.producing import Batching, WritingCell, checked, send
from benchmarks.cost.rows import CostRow, PartFigures, next_to
from benchmarks.cost.steady_pace import SteadyPace
from benchmarks.measuring.errors import WorthlessRateError
from benchmarks.measuring.jvm_heap import total_of
from benchmarks.measuring.ratio import Ratio, Unit
from fixtures.clusters.locks.releases import default_release
from reports.model.timeline import Latency
from verification.vocabulary.verdict import ExitCode
from wire.values import TopicPartition

MACHINE = ("Kafka 4.4.0, Java 17, commit abc1234, 2026-01-02", "2 processors")
SVG = "{http://www.w3.org/2000/svg}"


def cell(per_s: float, commits_ms: tuple[float, ...] = (), partitions: int = 10) -> WritingCell:
    """Two seconds of writing; each commit left a marker in each partition."""
    return WritingCell(
        records=round(per_s * 2),
        seconds=2.0,
        commits_ms=commits_ms,
        markers=partitions * len(commits_ms),
        marker_bytes=78,
    )


def writing(name: str, at: float, costs: tuple[float, ...], commit_ms: float, partitions: int = 10) -> CostRow:
    """A row whose transactional producer is slower by each of the factors."""
    pairs = [(cell(100_000), cell(100_000 / cost, (commit_ms,) * 100, partitions)) for cost in costs]
    return throughput.row(name, at, pairs)


def reading(batching: Batching, committed_ms: float) -> CostRow:
    """A row in which read_uncommitted takes 4 ms, with one slow record in fifty."""
    levels = {delivery.COMMITTED: [committed_ms] * 100, delivery.UNCOMMITTED: [4.0] * 98 + [9.0] * 2}
    levels |= {delivery.IDEMPOTENT: [3.0] * 98 + [8.0] * 2}
    return delivery.row(batching, [levels] * 3)


def figures() -> dict[str, PartFigures]:
    """All parts, with figures that are easy to find on a page."""
    plain = Ratio(subject="idempotent producer", against="plain producer", unit=Unit.RECORDS_PER_S, pairs=((9.5, 10),))
    tail = replace(plain, unit=Unit.MILLISECONDS, pairs=((12.0, 10.0),))
    turns = {each: [{"with": [each / 100 + 1.0], "without": [1.0]}] * 3 for each in pending.PENDING}
    rows: dict[str, tuple[CostRow, ...]] = {
        "throughput": (
            writing("transactions of 1 record", 1, (800.0, 900.0, 700.0), 25.0),
            writing("transactions of 100 records", 100, (12.0, 15.0, 11.0), 26.0),
            writing("transactions of 100 ms", 0, (1.25, 1.6, 1.0), 27.0),
        ),
        "partitions": (
            writing("transactions that write to 1 partition", 1, (9.0,) * 3, 11.0, 1),
            writing("transactions that write to 100 partitions", 100, (90.0,) * 3, 222.0, 100),
        ),
        "replication": (
            *(replication.of_replicas(each, [(cell(90_000), cell(10_000, (9.0,) * 20))] * 3) for each in (1, 3)),
            replication.of_acks([(60_000.0, 50_000.0)] * 3),
        ),
        "completion": (completion.row(10, [{completion.LAST: [9.0], completion.ANSWER: [4.0]}] * 3),),
        "memory": (
            memory.row(
                200_000,
                [
                    {
                        delivery.COMMITTED: ReaderFigures(at_commit=0, most_kb=60_000),
                        delivery.UNCOMMITTED: ReaderFigures(at_commit=199_000, most_kb=50_000),
                    }
                ]
                * 3,
            ),
        ),
        "streams": (streams.row(100, [(10_000.0, 25_000.0)] * 3), streams.row(1_000, [(20_000.0, 25_000.0)] * 3)),
        "protocols": (
            protocols.row(1, [{"protocol 1": [8.0], "commit 1": [4.0], "protocol 2": [6.0], "commit 2": [5.0]}] * 3),
        ),
        "delivery": (reading(Batching(records=1), 31.0), reading(Batching(seconds=10.0), 9_950.0)),
        "idempotence": (
            CostRow(name="at full speed", at=0, ratio=plain),
            CostRow(name="at 1000 records/s", at=1_000, ratio=tail),
        ),
        "producer-ids": producer_ids.rows(
            100_000, restarts=[(9.0, 6.0)] * 3, heaps=[(90_000.0, 60_000.0)] * 3, snapshot_bytes=4_600_000
        ),
        "loading": (loading.row(10_000, [{"with ids": [333.0], "without": [44.0]}] * 3),),
        "pending": tuple(pending.row(each, found) for each, found in turns.items()),
    }
    return {name: PartFigures(part=name, machine=MACHINE, rows=each) for name, each in rows.items()}


def sentence(part: str) -> str:
    """The bold sentence of a part."""
    (found,) = re.findall(r"^\*\*(.*)\*\*$", page({part: figures()[part]}), re.MULTILINE)
    return str(found)


def test_the_cost_is_the_throughput_without_transactions_divided_by_that_with_them() -> None:
    """The median of the pairs, latencies over all cells, counts per transaction."""
    row = writing("transactions of 100 records", 100, (12.0, 15.0, 11.0), 26.0)
    assert row.ratio.median == pytest.approx(12.0, rel=1e-3)
    assert (row.ratio.least, row.ratio.most) == pytest.approx((11.0, 15.0), rel=1e-3)
    assert row.latencies["commit"] == Latency(count=300, p50_ms=26.0, p99_ms=26.0)
    assert row.counts == {"records": 166.7, "markers": 10.0, "marker bytes": 78}


def test_the_times_of_delivery_are_over_all_rounds_and_the_ratio_is_of_their_medians() -> None:
    """A round with a slow median moves the spread."""
    others = {delivery.UNCOMMITTED: [2.0] * 3, delivery.IDEMPOTENT: [1.0] * 3}
    rounds = [{delivery.COMMITTED: [each] * 3, **others} for each in (10.0, 12.0, 40.0)]
    row = delivery.row(Batching(records=100), rounds)
    assert row.ratio.values == (5.0, 6.0, 20.0)
    assert row.latencies[delivery.COMMITTED].p50_ms == 12.0
    assert row.at == 100.0, "a hundred records are gathered in a tenth of a second"
    assert delivery.row(Batching(seconds=0.1), rounds).at == 100.0


def test_a_lower_throughput_is_given_in_percent_with_its_spread() -> None:
    """Equal rates are no loss, and a faster transactional producer is a gain."""
    ratio = Ratio(subject="a", against="b", unit=Unit.RECORDS_PER_S, pairs=((125, 100), (100, 100), (80, 100)))
    assert next_to(ratio) == "lower by 0 % (-25 … 20 %)"
    ratio = Ratio(subject="a", against="b", unit=Unit.RECORDS_PER_S, pairs=((125, 100), (80, 100), (80, 100)))
    assert next_to(ratio) == "higher by 25 % (-20 … 25 %)"


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("throughput", "800 times as many as with 1 record, 12.0 times as many as with 100 in a transaction."),
        ("throughput", "that with them is lower by 20 % (0 … 38 %) with a commit every 100 ms."),
        ("partitions", "Median time of a commit by partitions in the transaction: 11.0 ms with 1, 222 ms with 100."),
        ("partitions", " % of the offsets), each of 78 bytes."),
        ("replication", "against that with them: 9.00 times with 1 replica, 9.00 times with 3 replicas."),
        ("replication", "with acks=1 writes 1.20 times as many records per second as with acks=all."),
        ("completion", "with 10 partitions 9.00 ms and 9.00 ms, where the answer takes 4.00 ms and 4.00 ms"),
        (
            "memory",
            "Behind a transaction of 200 000 records a read_committed consumer took 60 MB of memory, 1.20 times",
        ),
        ("memory", "it was 200\u202f000 records behind, the other one 1\u202f000."),
        ("streams", "2.50 times as many with a commit every 100 ms, 1.25 times as many with a commit every 1 s."),
        ("protocols", "each partition: with 1 partition 6.00 ms against 8.00 ms, 0.75 times as long."),
        ("protocols", "EndTxn alone takes 5.00 ms against 4.00 ms with 1 partition."),
        ("delivery", "has 99 % of the records within 9950 ms with a commit every 10 s."),
        ("delivery", "within 9.00 ms even with a commit every 10 s"),
        ("delivery", "With 1 record in a transaction the medians are 31.0 ms and 4.00 ms."),
        ("delivery", "an idempotent producer without transactions take 3.00 ms, and 99 % of them 8.00 ms."),
        ("idempotence", "writes 0.95 times as many records per second as a plain one (0.95 … 0.95)"),
        ("idempotence", "its p99 of acknowledgement is 1.20 times as long"),
        ("producer-ids", "With 100 000 producer ids a broker takes 1.50 times as long to start (1.50 … 1.50)"),
        ("producer-ids", "Each id takes 300 bytes of heap and 46 bytes of a snapshot"),
        ("loading", "answers after 333 ms with 10 000 transactional ids, and after 44.0 ms without any"),
        ("pending", "11.0 times as long with require_stable as without when 1 000 transactions hold pending offsets"),
    ],
)
def test_a_sentence_says_what_was_measured(part: str, expected: str) -> None:
    """Every number of the sentence comes from the figures."""
    assert expected in sentence(part)


def test_the_live_heap_is_that_of_the_last_line_of_a_histogram() -> None:
    """Anything else is no figure."""
    assert total_of("0\n num #instances #bytes\n  1:  2  64  [B\nTotal            12           4096\n") == 4096
    with pytest.raises(WorthlessRateError, match="instead of a class histogram"):
        total_of("101\nOperation not permitted")


def test_a_sentence_changes_with_its_figures() -> None:
    """No number of the claim or of an earlier run is part of the text."""
    part = figures()["throughput"]
    other = (*part.rows[:-1], writing("transactions of 100 ms", 0, (2.0,) * 3, 27.0))
    assert "that with them is lower by 50 % (50 … 50 %) with" in page({"throughput": replace(part, rows=other)})


def test_the_page_has_every_part_with_its_tables_its_plot_and_its_machine() -> None:
    """A part that was not measured is left out; the published claim stands as a claim."""
    parts = figures()
    text = page(parts)
    for name, section in SECTIONS.items():
        assert f"## {section.title}" in text
        assert all(table in text for table in tables(parts[name]))
    assert text.count(MACHINE[0]) == len(SECTIONS) == len(command.PARTS)
    assert {f"]({name})" in text for name in plots(parts)} == {True}
    assert "claims 3 % lower throughput" in text
    assert "protocol 1" in text
    alone = page({"pending": parts["pending"]})
    assert SECTIONS["pending"].title in alone
    assert SECTIONS["throughput"].title not in alone


def test_a_plot_is_one_file_without_scripts() -> None:
    """Well-formed, described in words, with a name for each setting and nothing from elsewhere."""
    drawn = plots(figures())
    assert set(drawn) == {"cost-throughput.svg", "cost-partitions.svg", "cost-delivery.svg"}
    for text in drawn.values():
        root = Xml.fromstring(text)  # noqa: S314 - our own text
        assert root.tag == f"{SVG}svg"
        assert not root.findall(f".//{SVG}script")
        assert not re.search(r"href|onload|url\(", text)
        assert root.findtext(f"{SVG}desc")
    root = Xml.fromstring(drawn["cost-delivery.svg"])  # noqa: S314 - our own text
    labels = [each.text for each in root.iter(f"{SVG}text")]
    assert {"1 record", "every 10 s", "read_committed p99", "idempotent p50"} <= set(labels)


def test_a_curve_stays_inside_its_axes() -> None:
    """The axis is logarithmic: ten times as much is one step; whiskers count too."""
    plot = Plot(
        settings=("1", "2"),
        axis="x",
        unit="ms",
        curves=(PlotCurve(name="a", kind="subject", values=(1.0, 100.0), spread=((0.5, 2.0), (90.0, 2_000.0))),),
    )
    ticks = [each.text for each in plot.draw().texts if each.anchor == "end"]
    assert ticks[:-1] == ["0.1", "1", "10", "100", "1000", "10000"]
    assert [each.d.count("L") for each in plot.draw().paths] == [1, 0]
    assert [each.d.count("L") for each in replace(plot, breaks=(1,)).draw().paths] == [0, 0]
    assert plot.described() == "a (ms): 1.00 at 1, 100 at 2."
    assert {plot.draw().lines[place].y1 for place in (0, 5)} == {44.0, 284.0}


def test_a_curve_without_a_value_is_refused() -> None:
    """A gap would look like a figure between its neighbours."""
    with pytest.raises(ValueError, match="no value for every setting"):
        curve_of("commit p50", "subject", [1.0, None])


def test_lines_are_kept_and_the_newest_of_a_part_counts(tmp_path: Path) -> None:
    """Parts are measured one by one; the page is made of all of them."""
    parts = figures()
    command.published([parts["delivery"], parts["pending"]], tmp_path)
    newer = replace(parts["pending"], machine=("another machine",))
    found = command.published([newer], tmp_path)
    assert found == {"delivery": parts["delivery"], "pending": newer}
    assert (tmp_path / "cost-delivery.svg").is_file()
    lines = (tmp_path / "cost.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["part"] for line in lines] == ["delivery", "pending"]


@pytest.mark.parametrize(
    ("batching", "name", "full"),
    [
        (Batching(records=1), "1 record", [False, True]),
        (Batching(records=10_000), "10 000 records", [False, False]),
        (Batching(seconds=0.01), "10 ms", [False, False]),
        (Batching(seconds=10.0), "10 s", [False, False]),
    ],
)
def test_a_transaction_is_full_by_its_records_or_its_time(batching: Batching, name: str, full: list[bool]) -> None:
    """Also one without records, when its time has passed."""
    assert batching.name == name
    assert [batching.full(records, time.monotonic()) for records in (0, 1)] == full
    assert batching.full(0, time.monotonic() - 11) is (batching.seconds is not None)


def test_no_turn_of_a_pace_is_made_up_for() -> None:
    """After a commit that took long, records do not come in a burst."""
    pace = SteadyPace(50.0)
    pace.wait()
    time.sleep(0.1)
    began_s = time.monotonic()
    for _ in range(4):
        pace.wait()
    assert time.monotonic() - began_s >= 0.05


def test_a_full_queue_is_waited_for() -> None:
    """The record is sent once, when there is room."""
    full = MagicMock()
    full.produce.side_effect = [BufferError, BufferError, None]
    send(full, "t", 3)
    assert full.poll.call_count == 2
    assert full.produce.call_args.kwargs == {"partition": 3}


def at(end: int) -> dict[TopicPartition, int]:
    """The ends of a topic with one partition."""
    return {TopicPartition("t", 0): end}


@pytest.mark.parametrize(
    ("end", "commits", "sound"),
    [(100, [], True), (103, [5.0] * 3, True), (102, [5.0] * 3, False), (99, [], False), (101, [], False)],
)
def test_a_rate_without_its_records_in_the_log_is_refused(end: int, commits: list[float], sound: bool) -> None:
    """A lost or doubled record of a producer without transactions, or a transaction without a marker, is no figure."""
    cluster = MagicMock(spec=CostCluster)
    cluster.ends.side_effect = [at(0), at(end)]
    cluster.marker_bytes.return_value = 78
    if sound:
        found = checked(cluster, "t", 1, lambda: (100, commits))
        assert (found.records, found.markers) == (100, len(commits))
    else:
        with pytest.raises(WorthlessRateError, match="100 records and"):
            checked(cluster, "t", 1, lambda: (100, commits))


def test_the_ends_of_a_log_wait_for_the_markers() -> None:
    """The last stable offset of a partition reaches the high watermark with the last marker."""
    client = MagicMock()
    client.list_offsets.side_effect = [at(9), at(5), at(10), at(10)]
    assert CostCluster(MagicMock(), MagicMock(), client).ends("t", 1) == at(10)


def test_an_error_of_a_client_is_one_of_the_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then no figure is published, and the exit code is not that of a violation."""

    def fail(*_: object) -> Any:
        raise KafkaException("no broker")

    monkeypatch.setitem(command.PARTS, "delivery", fail)
    options = command.CostOptions(parts=("delivery",), rounds=3, release=default_release())
    with pytest.raises(WorthlessRateError, match="no broker"):
        command.measured("delivery", MagicMock(spec=CostCluster), options, print)


@pytest.mark.parametrize("arguments", [["--repeat", "2"], ["--only", "nothing"], ["--kafka", "four"]])
def test_bad_options_end_with_4(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence and the usage code, before anything is started."""
    try:
        code: Any = command.BENCHMARK.main(arguments)
    except SystemExit as left:
        code = left.code
    assert code == ExitCode.USAGE
    assert capsys.readouterr().err.count("\n") == 1
