"""Alerts on metrics fire as those of a monitoring system, and each says which anomalies it can show."""

from __future__ import annotations

import pytest

from verification.alerts.firing import fired, has_metrics
from verification.alerts.rules import STANDS_S, load
from verification.vocabulary.history import UP, Entry, History, Metric, Sample

NS = 1_000_000_000
LAG, LATE, ERRORS = "LastStableOffsetLag", "PartitionsWithLateTransactionsCount", "ErrorsPerSec"


def stated(at_s: float, name: str, value: float, of: str = "", source: str = "broker 1") -> Metric:
    return Metric(at_ns=round(at_s * NS), source=source, name=name, value=value, of=of)


def looked(at_s: float) -> Sample:
    """A look at a partition, which says that sampling went on."""
    return Sample(at_ns=round(at_s * NS), topic="orders", partition=0, leader=1, high_watermark=9, last_stable_offset=4)


def firings(*entries: Entry) -> list[tuple[str, str, str, float, float | None]]:
    """(alert, source, part, first second, last second) of every alert that fired."""
    history = History(run="r", wall_clock_anchor="", anchor_ns=0, entries=entries)
    return [
        (each.alert.name, each.source, each.of, each.began_ns / NS, each.ended_ns and each.ended_ns / NS)
        for each in fired(history)
    ]


def test_a_value_above_0_fires_at_once_until_it_is_0() -> None:
    """From its first to its last time; open at the end if it still holds."""
    back = (stated(3, LATE, 1), stated(5, LATE, 0), stated(7, LATE, 2))
    assert firings(stated(1, LATE, 0), *back) == [("late", "broker 1", "", 3.0, None)]
    assert firings(*back, stated(9, LATE, 0)) == [("late", "broker 1", "", 3.0, 9.0)]
    assert firings(stated(1, LATE, 0)) == []


def test_a_broker_that_no_longer_answers_ends_what_it_stated() -> None:
    """Its old values are no alert, and its counts begin anew."""
    assert firings(stated(1, LATE, 1), stated(4, UP, 0)) == [("late", "broker 1", "", 1.0, 4.0)]
    fenced = "EndTxn PRODUCER_FENCED"
    counts = (stated(1, ERRORS, 1, fenced), stated(4, UP, 0), stated(6, UP, 1), stated(6, ERRORS, 3, fenced))
    assert firings(*counts) == []
    assert firings(*counts, stated(8, ERRORS, 4, fenced)) == [("fenced", "broker 1", fenced, 8.0, 8.0)]


def test_a_count_fires_when_it_rises() -> None:
    """Only for the answers that the alert is about, and not for what was counted before the run."""
    fenced, busy = "Produce INVALID_PRODUCER_EPOCH", "AddPartitionsToTxn CONCURRENT_TRANSACTIONS"
    rise = (stated(1, ERRORS, 7, fenced), stated(2, ERRORS, 8, fenced), stated(9, ERRORS, 9, fenced))
    assert firings(*rise) == [("fenced", "broker 1", fenced, 2.0, 9.0)]
    assert firings(stated(1, ERRORS, 7, busy), stated(2, ERRORS, 8, busy)) == []


def test_a_bound_takes_the_place_of_0() -> None:
    """A value fires above it, and a count when it rises by more between two readings."""
    ids = [stated(at, "ProducerIdCount", value) for at, value in ((1, 99_999), (2, 100_001), (3, 100_000))]
    assert firings(*ids) == [("producer-ids", "broker 1", "", 2.0, 3.0)]
    assert firings(*ids[::2]) == []
    retries = [stated(at, "record-retry-total", value) for at, value in ((1, 0), (2, 200), (3, 400), (4, 601))]
    assert firings(*retries) == [("record-retries", "broker 1", "", 4.0, 4.0)]
    assert firings(*retries[:3]) == []


@pytest.mark.parametrize("end_s", [STANDS_S, STANDS_S + 2])
def test_a_lag_fires_when_it_has_not_fallen_for_long(end_s: float) -> None:
    """Open transactions of a busy partition let its lag rise and fall; one that hangs lets it only rise."""
    place = "r-orders-0"
    hangs = [stated(1, LAG, 4, place), stated(3, LAG, 9, place), looked(1 + end_s)]
    assert firings(*hangs) == [("stable-offset", "broker 1", place, 1.0 + STANDS_S, None)]
    assert firings(*hangs[:2], looked(STANDS_S)) == []
    moves = [stated(at, LAG, value, place) for at, value in ((1, 4), (9, 3), (17, 8), (20, 0), (60, 2))]
    assert firings(*moves, looked(61)) == []
    ends = [*hangs, stated(2 + end_s, LAG, 0, place)]
    assert firings(*ends) == [("stable-offset", "broker 1", place, 1.0 + STANDS_S, 2.0 + end_s)]


def test_without_metrics_nothing_is_known() -> None:
    """No alert fired, and none could."""
    history = History(run="r", wall_clock_anchor="", anchor_ns=0, entries=(looked(1),))
    assert not has_metrics(history)
    assert fired(history) == ()


def test_every_alert_has_a_source_and_a_condition() -> None:
    """The condition begins with the name of the metric, so that an operator finds it."""
    for alert in load().values():
        assert alert.text.startswith(alert.metric)
        assert alert.source.startswith(("KIP-", "documentation: ", "code: "))
