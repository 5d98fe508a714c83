"""The coordinator rows: states of the transaction log in the right place, as a chart, as words and as a table."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from reports.formats import html, trace
from reports.formats.charts.coordinators import IDS_MAX, CoordinatorRows, chosen, height
from reports.formats.charts.lanes import draw_lanes
from reports.formats.charts.shapes import LEFT, WIDTH
from reports.loading.run import load_run
from reports.loading.timeline_builder import timeline
from reports.model.timeline import Coordinator, Leadership, StateSpan, Timeline, TransactionalIdStates
from tests.support.plans import FAILED, STARTED
from tests.support.planted.evidence import entries as planted
from tests.support.planted.evidence import transaction_log
from tests.support.run_directories import make_run
from verification.evidence import transaction_log_file
from verification.evidence.run_directory import RunDirectory
from verification.evidence.transaction_log_file import TransactionLog
from verification.vocabulary.history import History
from verification.vocabulary.transaction_log import Entry, State

ANCHORED = History(
    run=FAILED.run, wall_clock_anchor=STARTED, anchor_ns=5_000_000_000_000, entries=tuple(planted(FAILED))
)


def drawn(log: TransactionLog | None, over: History = ANCHORED) -> Timeline:
    """The timeline of the planted history with a transaction log."""
    told = timeline(over, log)
    assert told is not None
    return told


def of_states(*steps: tuple[State, int], leader_epochs: Sequence[int] = ()) -> TransactionLog:
    """One id of the planted history, with the milliseconds from its beginning to each of its states."""
    whole = transaction_log(FAILED)
    (zero_ms,) = {each.appended_ms for each in whole.entries if each.offset == 0 and each.partition == 0}
    entries = tuple(
        Entry(
            partition=0,
            offset=offset,
            transactional_id=f"{FAILED.run}-0",
            state=state,
            leader_epoch=leader_epochs[offset] if leader_epochs else 5,
            appended_ms=zero_ms - 10 + at_ms,
        )
        for offset, (state, at_ms) in enumerate(steps)
    )
    return replace(whole, entries=entries)


def test_states_stand_until_the_next_record() -> None:
    """Open from the first partition, completing from the decision; repeated states are one span."""
    (of,) = drawn(
        of_states(
            (State.EMPTY, 0),
            (State.ONGOING, 1_000),
            (State.ONGOING, 2_000),
            (State.PREPARE_COMMIT, 4_000),
            (State.COMPLETE_COMMIT, 4_500),
            (State.ONGOING, 9_000),
            (State.PREPARE_ABORT, 9_250),
        )
    ).coordinators
    assert [each.transactional_id for each in of.ids] == ["0"]
    assert [(each.state, each.began_s, each.ended_s) for each in of.ids[0].spans] == [
        ("Ongoing", 1.0, 4.0),
        ("PrepareCommit", 4.0, 4.5),
        ("Ongoing", 9.0, 9.25),
        ("PrepareAbort", 9.25, 24.0),
    ]
    assert (of.ids[0].decided, of.ids[0].open_s, of.ids[0].completing_s) == (2, 3.0, 14.75)


def test_coordinators_are_named_where_they_are_known() -> None:
    """A leadership has its broker where the metadata was asked, and otherwise its leader epoch."""
    steps = [(State.EMPTY, 0), (State.ONGOING, 1_000), (State.PREPARE_ABORT, 3_000), (State.COMPLETE_ABORT, 5_000)]
    (of,) = drawn(of_states(*steps, leader_epochs=(5, 5, 6, 7))).coordinators
    assert [(each.leader, each.began_s, each.ended_s) for each in of.leaderships] == [
        ("broker 2", 0.0, 3.0),
        ("broker 3", 3.0, 5.0),
        ("leader epoch 7", 5.0, 5.0),
    ]
    assert of.leaders == "broker 2, then broker 3, then leader epoch 7"


def test_ids_of_others_are_left_out_and_count_for_who_led() -> None:
    """Ids of other runs are not drawn, but their records show leaderships."""
    steps = [(State.EMPTY, 0), (State.EMPTY, 500)]
    log = of_states(*steps, leader_epochs=(5, 6))
    mine, other = log.entries[0], replace(log.entries[1], transactional_id="another-app's")
    (of,) = drawn(replace(log, entries=(mine, other))).coordinators
    assert ([each.transactional_id for each in of.ids], len(of.leaderships)) == (["0"], 2)
    assert drawn(replace(log, entries=(other,))).coordinators == ()


def test_coordinators_without_a_date_are_not_drawn() -> None:
    """Without the transaction log, or without a wall clock of the history, there are no rows."""
    assert drawn(None).coordinators == ()
    assert drawn(transaction_log(FAILED), replace(ANCHORED, wall_clock_anchor="yesterday")).coordinators == ()


def test_the_picture_stays_in_its_box_and_says_the_same_in_words() -> None:
    """Every shape is inside the chart; the description names coordinators and the longest completion with its id."""
    told = drawn(transaction_log(FAILED))
    drawing = draw_lanes(told, None)
    for box in drawing.boxes:
        assert 0 <= box.x <= box.x + box.width <= WIDTH
        assert 0 <= box.y <= box.y + box.height <= drawing.height
    for path in drawing.paths:
        assert all(LEFT - 1 <= float(x) <= WIDTH for x in re.findall(r"[MH](-?[\d.]+)", path.d))
    assert {"state open", "state commit", "state abort"} <= {path.kind for path in drawing.paths}
    assert "coordinator 0 with 2 transactional ids was broker 2, then broker 3; its longest completion took" in (
        drawing.description
    )
    assert drawing.height == draw_lanes(replace(told, coordinators=()), None).height + height(told.coordinators) + 26


def many(count: int, each: int) -> tuple[Coordinator, ...]:
    """A coordinator with ids that take longer and longer to complete."""
    leadership = Leadership(leader_epoch=1, broker=None, began_s=0, ended_s=20)
    ids = tuple(
        TransactionalIdStates(
            transactional_id=f"{number:02}",
            spans=tuple(
                StateSpan(state=state, began_s=at / each * 20, ended_s=at / each * 20 + number / 1_000)
                for at in range(each)
                for state in ("Ongoing", "PrepareCommit", "PrepareAbort")
            ),
        )
        for number in range(count)
    )
    return (Coordinator(partition=0, leaderships=(leadership,), ids=ids),)


def test_a_picture_has_room_for_the_slowest_ids() -> None:
    """Of more ids than fit, those with the longest completions are kept, in their order."""
    (of,) = chosen(many(IDS_MAX + 5, 2))
    assert [each.transactional_id for each in of.ids] == [f"{number:02}" for number in range(5, IDS_MAX + 5)]


@pytest.mark.parametrize("each", [10, 4_000])
def test_thousands_of_transactions_are_as_many_bytes_as_pixels(each: int) -> None:
    """A row of 800 pixels has at most one line per two pixels, however many transactions a run has."""
    part = CoordinatorRows(coordinators=many(1, each), top=0, x=lambda at_s: LEFT + at_s * 40)
    assert [path.d.count("M") <= min(each, 401) for path in part.paths()] == [True] * 3


def test_the_page_and_the_trace_have_the_coordinators(tmp_path: Path) -> None:
    """The table has ids, coordinators and times; the trace has a thread per id, also for ids that the page leaves out."""
    run = make_run(tmp_path / "run", (FAILED,))
    report = load_run(run)
    page = html.render(report, run)
    assert "<summary>Coordinators as a table</summary>" in page
    assert "<td>broker 2, then broker 3</td>" in page
    assert "The coordinator's moves are in the proofs" not in page
    events = json.loads(trace.dumps(report))["traceEvents"]
    names = {each["args"]["name"] for each in events if each["name"] == "thread_name"}
    assert {f"coordinator {number % 2} of id {number}" for number in range(4)} <= names
    assert {"Ongoing", "PrepareCommit", "PrepareAbort"} == {
        each["name"] for each in events if each.get("cat") == "coordinator"
    }


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda run: run.transaction_log.write_bytes(b"junk"), "cannot be read as a transaction log"),
        (
            lambda run: transaction_log_file.write(
                run.transaction_log, transaction_log(replace(FAILED, key="another-app"))
            ),
            "transaction_log.jsonl.gz belongs to run",
        ),
    ],
)
def test_a_log_that_does_not_belong_here_is_named(damage: object, said: str, tmp_path: Path) -> None:
    """A damaged or foreign log draws nothing, and the report names it."""
    assert callable(damage)
    run = make_run(tmp_path / "run", (FAILED,))
    damage(RunDirectory(run / "runs" / FAILED.key))
    report = load_run(run)
    assert [said in each.text for each in report.problems] == [True]
    assert report.scenarios[0].timeline is not None
    assert report.scenarios[0].timeline.coordinators == ()
