"""A decision for each window of `watch`, with the acts of others, on the page and in the terminal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from reports.deciding.windows import MOVED, PROFILE, STEP, windows
from reports.formats import html, terminal
from reports.loading.run import load_run
from reports.model.report import FaultRow, Report
from tests.support.plans import SMOKE, found
from tests.support.run_directories import make_run
from verification.vocabulary.verdict import Decision, Verdict


def act(fault: str, description: str, at_s: float, *, proof: str = "seen in the metadata") -> FaultRow:
    """An act of others at a moment."""
    return FaultRow(
        step=1,
        fault=fault,
        description=description,
        target="the cluster",
        began_s=at_s,
        confirmed_s=at_s,
        healed_s=at_s,
        proof=proof,
        error="",
    )


def watched(directory: Path) -> Report:
    """A watch of three windows: one passed, one has a violation, one was not decided."""
    lost = replace(SMOKE, key="b", verdict=Verdict.FAIL, findings=(found(),))
    report = load_run(make_run(directory, [SMOKE, lost, replace(SMOKE, key="c", verdict=Verdict.INCONCLUSIVE)]))
    step = replace(report.scenarios[0].faults[0], fault=STEP)
    acts = (
        act("BrokerGone", "broker 2 left the cluster", 7.0, proof="back after 3.6 s"),
        *(act(MOVED, f"leader of billing-events-{each} moved 2 → 1", 7.5) for each in range(3)),
    )
    scenarios = (replace(each, faults=(step, *(acts if each.key == "b" else ()))) for each in report.scenarios)
    return replace(report, profile=PROFILE, scenarios=tuple(scenarios))


def test_each_window_has_a_decision_its_time_and_the_acts_of_others(tmp_path: Path) -> None:
    """Moves of leaders are counted; the time is that of a clock, to compare with the logs of an operator."""
    decided = windows(watched(tmp_path))
    assert [each.decision for each in decided] == [Decision.GO, Decision.NO_GO, Decision.UNDECIDED]
    assert [each.seen for each in decided] == [
        (),
        ("broker 2 left the cluster, back after 3.6 s", "3 leaders moved"),
        (),
    ]
    assert decided[0].when == "09:00:07 to 09:00:14 UTC"
    assert decided[0].gap_s is not None


def test_windows_stand_in_the_order_of_time(tmp_path: Path) -> None:
    """Two lanes begin them in any order; one without a time comes last."""
    report = watched(tmp_path)
    first, second, third = report.scenarios
    assert second.timeline is not None
    earlier = replace(second, timeline=replace(second.timeline, began_us=second.timeline.began_us - 1_000_000))
    ordered = windows(replace(report, scenarios=(replace(first, timeline=None), third, earlier)))
    assert [each.scenario.key for each in ordered] == [second.key, third.key, first.key]


def test_windows_are_on_the_page_and_in_the_terminal(tmp_path: Path) -> None:
    """In place of scenarios and controls; another run has none."""
    report = watched(tmp_path)
    page, text = html.render(report, tmp_path), terminal.render(report)
    assert "<h2>Windows</h2>" in page
    assert "<h2>Controls</h2>" not in page
    assert "broker 2 left the cluster, back after 3.6 s" in page
    assert "NO-GO      09:00:07 to 09:00:14 UTC  b  broker 2 left the cluster" in text
    other = replace(report, profile="quick")
    assert windows(other) == ()
    assert "<h2>Windows</h2>" not in html.render(other, tmp_path)
