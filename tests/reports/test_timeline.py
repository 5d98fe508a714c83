"""The timeline counts the operations of the history, and the chart stays inside its box for any history."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reports.formats.charts.rates import draw
from reports.formats.charts.shapes import WIDTH
from reports.loading.process_lanes import curves
from reports.loading.timeline_builder import BINS_MAX, fault_rows, timeline
from tests.support.plans import ANCHOR, END_S, SECOND, SMOKE
from tests.support.planted.evidence import entries
from verification.vocabulary.history import Action, Entry, FaultRecord, History, Operation, Outcome, Sample


def history(*extra: Entry) -> History:
    """The planted history with more entries."""
    return History(run="r", wall_clock_anchor="", anchor_ns=ANCHOR, entries=(*entries(SMOKE), *extra))


def operation(at_s: float, outcome: Outcome = Outcome.OK, action: Action = Action.TRANSACTION) -> Operation:
    """One operation that completes at once."""
    at_ns = ANCHOR + int(at_s * SECOND)
    return Operation(
        process=9,
        operation=int(at_s),
        action=action,
        outcome=outcome,
        stage="done",
        invoked_ns=at_ns,
        completed_ns=at_ns,
    )


def test_every_operation_but_init_is_counted_once() -> None:
    """The bars hold all operations by outcome; set-up is left out."""
    planted = history(operation(3, action=Action.INIT), operation(4, Outcome.FAIL))
    drawn = timeline(planted)
    assert drawn is not None
    wanted = [each for each in planted.of(Operation) if each.action is not Action.INIT]
    for outcome in Outcome:
        counted = sum(getattr(each, outcome.value) for each in drawn.bins)
        assert counted == sum(1 for each in wanted if each.outcome is outcome)


def test_the_lag_is_the_worst_partition_and_skips_unanswered_samples() -> None:
    """A sample without an answer makes no point; the largest lag is kept."""
    silent = Sample(at_ns=ANCHOR, topic="t", partition=1, leader=-1, high_watermark=-1, last_stable_offset=-1)
    behind = replace(silent, at_ns=ANCHOR + SECOND, high_watermark=5_000, last_stable_offset=0)
    drawn = timeline(history(silent, behind))
    assert drawn is not None
    assert max(each.records for each in drawn.lags) == 5_000
    assert all(each.records >= 0 for each in drawn.lags)


def test_an_lso_that_stands_still_lags_until_it_moves() -> None:
    """Samples are recorded on change: an unchanged partition lags in every bin and at the end, while others change."""
    standing = Sample(at_ns=ANCHOR, topic="t", partition=1, leader=1, high_watermark=900, last_stable_offset=0)
    others = [
        replace(standing, at_ns=ANCHOR + at_s * SECOND, partition=2, high_watermark=at_s, last_stable_offset=at_s)
        for at_s in (1, 5, 9)
    ]
    bare = History(run="r", wall_clock_anchor="", anchor_ns=ANCHOR, entries=(standing, *others))
    drawn = timeline(bare)
    assert drawn is not None
    assert {each.records for each in drawn.lags} == {900}
    assert (drawn.lags[0].at_s, drawn.lags[-1].at_s) == (0, 9)
    moved = replace(standing, at_ns=ANCHOR + 9 * SECOND + 1, last_stable_offset=900)
    drawn = timeline(replace(bare, entries=(*bare.entries, moved)))
    assert drawn is not None
    assert [each.records for each in drawn.lags[-2:]] == [900, 0], "at the end it had come to rest"


def test_partitions_of_coordinators_are_no_curves() -> None:
    """Their leaders are sampled in an upgrade, for the judge; they have no ends to draw."""
    own = Sample(at_ns=ANCHOR, topic="t", partition=1, leader=1, high_watermark=9, last_stable_offset=9)
    other = replace(own, topic="__transaction_state", high_watermark=-1, last_stable_offset=-1)
    history = History(run="r", wall_clock_anchor="", anchor_ns=ANCHOR, entries=(own, other))
    assert [each.topic for each in curves(history, float)] == ["t"]


def test_an_unhealed_unconfirmed_fault_stays_open() -> None:
    """No time is invented for a fault without proof and without a heal."""
    record = FaultRecord(step=2, fault="cut", description="", target="broker 1", began_ns=ANCHOR + 9 * SECOND)
    rows = fault_rows(history(record))
    assert [(each.step, each.confirmed_s, each.healed_s) for each in rows] == [(1, 7.0, 14.0), (2, None, None)]


@pytest.mark.parametrize(
    ("at_s", "era"), [(3, "before"), (5.9, "before"), (6, "during"), (14, "during"), (14.1, "after"), (20, "after")]
)
@pytest.mark.parametrize("outcome", list(Outcome))
def test_an_operation_belongs_to_the_time_at_which_it_completed(at_s: float, era: str, outcome: Outcome) -> None:
    """One more operation is one more before, during or after the fault, from its beginning to its heal."""
    with_it, without = timeline(history(operation(at_s, outcome))), timeline(history())
    assert with_it is not None
    assert without is not None
    assert [each.name for each in with_it.periods] == ["before", "during", "after"]
    counts = zip(with_it.periods, without.periods, strict=True)
    more = {a.name: (a.ok - b.ok, a.fail - b.fail, a.info - b.info) for a, b in counts}
    one = tuple(int(each is outcome) for each in (Outcome.OK, Outcome.FAIL, Outcome.INFO))
    assert more == {"before": (0, 0, 0), "during": (0, 0, 0), "after": (0, 0, 0), era: one}


@pytest.mark.parametrize("end_s", [END_S, 3_000, 90_000_000])
def test_the_chart_stays_in_its_box_and_below_its_number_of_bars(end_s: float) -> None:
    """Long runs, absurd times and many faults never draw outside the chart or thousands of bars."""
    faults = [
        FaultRecord(step=n, fault="f", description="x" * 300, target="t", began_ns=ANCHOR + n * SECOND)
        for n in range(20)
    ]
    drawn = timeline(history(operation(end_s), *faults))
    assert drawn is not None
    assert len(drawn.bins) <= BINS_MAX + 2
    drawing = draw(drawn)
    for box in drawing.boxes:
        assert box.x >= 0
        assert box.x + box.width <= WIDTH
        assert box.y >= 0
        assert box.y + box.height <= drawing.height
    assert all(0 <= text.x <= WIDTH for text in drawing.texts)
    assert len(drawing.texts) < 100


def test_an_empty_history_has_no_timeline() -> None:
    """A history that was truncated before its first entry is harmless."""
    assert timeline(History(run="r", wall_clock_anchor="", anchor_ns=0, entries=())) is None
