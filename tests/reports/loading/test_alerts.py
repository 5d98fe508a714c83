"""Alerts on metrics in the report: where they fired, and whether any of them shows a finding."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from reports.comparing import results
from reports.formats import html
from reports.formats.charts.alerts import AlertRows
from reports.loading.alerts import alerts
from reports.loading.run import load_run
from reports.model.report import Report
from reports.model.timeline import FiredAlert
from verification.vocabulary.history import UP, History, Metric

NS = 1_000_000_000
LAG = "LastStableOffsetLag"
GOLDEN = Path(__file__).parents[1] / "golden" / "scenarios-4.3.1" / "run"
OFFLINE = FiredAlert(
    name="offline",
    text="OfflinePartitionsCount > 0",
    place="broker 1",
    shows=(),
    began_s=3,
    ended_s=5,
    values=((3.0, 1.0), (5.0, 0.0)),
)
HANGS = replace(OFFLINE, name="late", text="a late transaction", shows=("hung-transaction",), ended_s=None)
#: It was over before the first example began.
BEFORE = replace(HANGS, name="before", began_s=0.0, ended_s=0.1)


def with_alerts(fired: tuple[FiredAlert, ...] | None) -> Report:
    """A real report whose scenario with hanging transactions has these alerts."""
    report = load_run(GOLDEN)
    (chosen,) = (each for each in report.scenarios if {one.anomaly for one in each.findings} & {"hung-transaction"})
    assert chosen.timeline is not None
    changed = replace(chosen, timeline=replace(chosen.timeline, alerts=fired))
    return replace(report, scenarios=tuple(changed if each is chosen else each for each in report.scenarios))


@pytest.mark.parametrize(
    ("fired", "silent", "words"),
    [
        ((OFFLINE, HANGS), False, "<strong>Alerts:</strong> a late transaction (broker 1, first at 3.0 s)."),
        ((OFFLINE, BEFORE), True, "<strong>Silent:</strong> no alert"),
        ((OFFLINE,), True, "<strong>Silent:</strong> no alert"),
        ((), True, "<strong>Silent:</strong> no alert"),
    ],
)
def test_a_finding_says_which_alert_shows_it(fired: tuple[FiredAlert, ...], silent: bool, words: str) -> None:
    """An alert about the fault alone shows no finding."""
    report = with_alerts(fired)
    assert words in html.render(report, GOLDEN)
    (scenario,) = (each for each in json.loads(results.dumps(report))["scenarios"] if "alerts" in each)
    (finding,) = (each for each in scenario["findings"] if each["anomaly"] == "hung-transaction")
    assert finding["silent"] is silent
    assert [each["name"] for each in scenario["alerts"]] == [each.name for each in fired]


def test_without_metrics_the_report_says_nothing_about_alerts() -> None:
    """Older evidence, and containers, have none."""
    report = with_alerts(None)
    page = html.render(report, GOLDEN)
    assert "<strong>Silent:</strong>" not in page
    scenarios = json.loads(results.dumps(report))["scenarios"]
    assert not [each["id"] for each in scenarios if "alerts" in each]
    assert not [one for each in scenarios for one in each["findings"] if "silent" in one]


def test_firings_of_one_alert_are_one_row() -> None:
    """With its brokers and the first partitions, from the first to the last time."""
    late = "PartitionsWithLateTransactionsCount"
    errors = [
        Metric(at_ns=at * NS, source=f"broker {at}", name="ErrorsPerSec", value=value, of=f"{api} PRODUCER_FENCED")
        for at, api in ((1, "EndTxn"), (2, "Produce"), (3, "InitProducerId"))
        for value in (1, 2)
    ]
    metrics = (Metric(at_ns=0, source="broker 1", name=UP, value=1), *errors)
    history = History(run="r", wall_clock_anchor="", anchor_ns=0, entries=metrics)
    fired = alerts(history, lambda at_ns: at_ns / NS)
    assert fired is not None
    assert [(each.name, each.place, each.began_s, each.ended_s) for each in fired] == [
        (
            "fenced",
            "broker 1, broker 2, broker 3: EndTxn PRODUCER_FENCED, InitProducerId PRODUCER_FENCED and 1 more",
            1,
            3,
        )
    ]
    holds = (*metrics, Metric(at_ns=9 * NS, source="broker 2", name=late, value=1))
    fired = alerts(replace(history, entries=holds), lambda at_ns: at_ns / NS)
    assert fired is not None
    assert [(each.name, each.ended_s) for each in fired] == [("fenced", 3), ("late", None)]


def test_the_metric_of_an_alert_is_drawn_as_steps() -> None:
    """The sum of all brokers, of which one answers no more from the third second on."""
    said = [(0, 1, UP, 1), (0, 2, UP, 1), (1, 1, LAG, 4), (2, 2, LAG, 2), (3, 1, UP, 0), (20, 2, LAG, 1)]
    history = History(
        run="r",
        wall_clock_anchor="",
        anchor_ns=0,
        entries=tuple(
            Metric(at_ns=at * NS, source=f"broker {broker}", name=name, value=value) for at, broker, name, value in said
        ),
    )
    (fired,) = alerts(history, lambda at_ns: at_ns / NS) or ()
    assert fired.values == ((1.0, 4.0), (2.0, 6.0), (3.0, 2.0), (20.0, 1.0))
    rows = AlertRows(alerts=(fired,), top=100.0, x=lambda at_s: 10 * at_s, end_s=25.0)
    (path,) = rows.paths()
    assert re.findall(r"[MHV][^MHV]*", path.d) == [
        "M0 116", "H10", "V107.3", "H20", "V103", "H30", "V111.7", "H200", "V113.8", "H250",
    ]  # fmt: skip
    (box,) = rows.boxes()
    assert "at most 6" in box.title
