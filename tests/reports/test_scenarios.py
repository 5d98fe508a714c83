"""The section of a scenario shows its history and findings: availability, lanes, the log, the guarantees."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from reports.comparing.results import dumps
from reports.deciding.matrix import columns, groups
from reports.formats import html
from reports.formats.charts.lanes import draw_lanes
from reports.formats.charts.shapes import WIDTH
from reports.formats.page_budget import DETAILED_MIN
from reports.loading.finding_records import read
from reports.loading.log_context import ROWS_MAX, around
from reports.loading.merge import merge
from reports.loading.run import load_run
from reports.loading.timeline_builder import timeline
from reports.model.timeline import Timeline
from tests.support.plans import (
    ANCHOR,
    EVERY_VERDICT,
    FAILED,
    FAULT_BEGAN_S,
    FAULT_HEALED_S,
    SECOND,
    SMOKE,
    Plan,
    found,
)
from tests.support.planted.evidence import entries
from tests.support.run_directories import make_run
from verification.vocabulary.history import (
    Action,
    Entry,
    FaultRecord,
    History,
    Intent,
    Operation,
    Outcome,
    ProcessRecord,
    Sample,
    Settled,
)
from verification.vocabulary.verdict import Verdict, Violation


def commit(at_s: float, took_s: float = 0.1, outcome: Outcome = Outcome.OK) -> Operation:
    """A transaction with a time of the commit request and a later answer."""
    asked = ANCHOR + round(at_s * SECOND)
    return Operation(
        process=1,
        operation=round(at_s * 10),
        action=Action.TRANSACTION,
        outcome=outcome,
        stage="done",
        invoked_ns=asked,
        decided_ns=asked,
        completed_ns=asked + round(took_s * SECOND),
        intent=Intent.COMMIT,
    )


def timeline_of(*entries_: Entry, outputs: Collection[str] = ()) -> Timeline:
    """The timeline of a history of these entries and a fault from 10 s to 20 s."""
    fault = FaultRecord(
        step=1, fault="f", description="", target="", began_ns=ANCHOR + 10 * SECOND, healed_ns=ANCHOR + 20 * SECOND
    )
    start = ProcessRecord(
        process=1, role="producer", client="", site="", started_ns=ANCHOR, ended_ns=ANCHOR + 30 * SECOND, end=""
    )
    history = History(run="r", wall_clock_anchor="", anchor_ns=ANCHOR, entries=(start, fault, *entries_))
    drawn = timeline(history, outputs=outputs)
    assert drawn is not None
    return drawn


def test_availability_is_what_the_commits_say() -> None:
    """The gap runs from the last commit before the fault to the first after it; latencies belong to the request."""
    before = [commit(each) for each in range(1, 10)]
    after = [commit(each, 0.2) for each in range(23, 30)]
    (row,) = timeline_of(*before, commit(12, 10.5), commit(14, 1, Outcome.FAIL), *after).unavailability
    assert (row.gap_began_s, row.gap_ended_s) == (9.1, 22.5)
    assert row.recovered_s == 2.5
    assert (row.before.count, row.before.p50_ms, row.before.p99_ms) == (9, 100.0, 100.0)
    assert (row.during.count, row.during.p99_ms) == (1, 10_500.0)
    assert (row.after.count, row.after.p50_ms) == (7, 200.0)


def test_what_never_commits_again_never_recovered() -> None:
    """Without a commit after the heal recovery is None, and the gap runs to the last sign of a client."""
    (row,) = timeline_of(commit(1), commit(28, 1, Outcome.FAIL)).unavailability
    assert row.recovered_s is None
    assert row.gap_ended_s == 29.0
    assert row.after.count == 0
    assert row.after.p50_ms is None


def test_a_history_without_commits_has_no_figures() -> None:
    """Without commits or faults there are no figures."""
    assert timeline_of(commit(3, outcome=Outcome.FAIL)).unavailability == ()


def look(at_s: float, partition: int, decided: int) -> Sample:
    """A sample of the output."""
    at_ns = ANCHOR + round(at_s * SECOND)
    ends = {"high_watermark": decided, "last_stable_offset": decided}
    return Sample(at_ns=at_ns, topic="r-out", partition=partition, leader=1, **ends)


def test_the_availability_of_a_pipeline_is_that_of_the_partition_that_waited_longest() -> None:
    """The client's commits are those of the feeder. A look that finds nothing more decided is no commit."""
    going = [look(each, 0, each) for each in range(1, 29)]
    stood = [look(each, 1, min(each, 11) if each < 25 else each) for each in range(1, 29)]
    (row,) = timeline_of(*(commit(each) for each in range(1, 28)), *going, *stood, outputs={"r-out"}).unavailability
    assert (row.gap_began_s, row.gap_ended_s, row.recovered_s) == (11.0, 25.0, 5.0)
    assert (row.before.count, row.before.p50_ms) == (9, None)
    (never,) = timeline_of(*going, *stood[:12], outputs={"r-out"}).unavailability
    assert (never.gap_ended_s, never.recovered_s) == (28.0, None)
    nothing = [look(each, 1, 0) for each in range(1, 29)]
    (empty,) = timeline_of(*going, *nothing, outputs={"r-out"}).unavailability
    assert (empty.gap_s, empty.recovered_s) == (27.0, None), "a partition in which nothing was ever decided"


def test_lanes_hold_every_operation_and_stay_in_their_box() -> None:
    """Each process has a lane with its operations in order, and the chart marks the first example."""
    history = History(run="r", wall_clock_anchor="", anchor_ns=ANCHOR, entries=tuple(entries(SMOKE)))
    drawn = timeline(history)
    assert drawn is not None
    assert sum(len(each.acts) for each in drawn.lanes) == len(history.of(Operation))
    for lane in drawn.lanes:
        assert all(a.ended_s <= b.began_s for a, b in zip(lane.acts, lane.acts[1:], strict=False))
    picture = draw_lanes(drawn, 6.5)
    assert any(line.kind == "violation" for line in picture.lines)
    assert {path.kind for path in picture.paths} >= {"act ok", "act fail", "act info", "high", "stable"}
    assert any("has no leader" in box.title for box in picture.boxes)
    assert any("no node answered" in box.title for box in picture.boxes)
    for box in picture.boxes:
        assert box.x >= 0
        assert box.x + box.width <= WIDTH
        assert box.y + box.height <= picture.height
    assert "first example" in picture.description


def test_a_stuck_lso_is_in_the_timeline() -> None:
    """A partition that only fencing released, and one that nothing released, are distinguished."""
    rows = [
        Settled(
            topic=f"r-{name}",
            partition=0,
            bound_s=4.0,
            waited_s=4.1,
            high_watermark=9,
            last_stable_offset=5 if fencing or name == "stuck" else 9,
            before_fencing=fencing,
        )
        for name in ("stuck", "freed")
        for fencing in (True, False)
    ]
    assert [(each.place, each.released) for each in timeline_of(commit(1), *rows).stuck_lsos] == [
        ("stuck-0", False),
        ("freed-0", True),
    ]


def test_the_log_around_a_violation_shows_what_differs(tmp_path: Path) -> None:
    """Of twenty records the hidden one and the marker next to it are always shown."""
    run = make_run(tmp_path, (FAILED,))
    path = run / "runs" / FAILED.key / "findings" / "hidden-committed" / "records.jsonl"
    violation = Violation(
        anomaly="hidden-committed", process=0, operation=60, topic="billing-events", partition=0, offset=1042
    )
    shown = around(read(path), violation, FAILED.run)
    assert len(shown.rows) == ROWS_MAX
    assert shown.count == 21
    assert "billing-events-0@1042" in [each.place for each in shown.rows if each.committed == "0"]
    assert any(each.what == "marker: abort" for each in shown.rows)
    path.write_text("{", encoding="utf-8")
    assert "truncated, or not written by Onceproof" in around(read(path), violation, "").problem
    assert any("records.jsonl" in each.text for each in load_run(run).problems)


def test_the_page_shows_the_minimal_witness(tmp_path: Path) -> None:
    """A finding shows the log entries, their readers and the answer to the client; older verdicts have no witness."""
    older = replace(FAILED, findings=tuple(replace(each, witness=None) for each in FAILED.findings))
    new, old = (
        html.render(load_run(run), run)
        for run in (make_run(tmp_path / "new", (FAILED,)), make_run(tmp_path / "old", (older,)))
    )
    assert "Witness of the first example" not in old
    proof = new[new.index("Witness of the first example: the fewest log entries") :]
    proof = proof[: proof.index("The log around the first example")]
    for timeline_of in (
        "billing-events-0@1042",
        "record (outcome: commit)",
        "id 1000, epoch 3",
        "read_uncommitted capture, live billing-events",
    ):
        assert timeline_of in proof
    assert "commit marker" in proof
    assert "unknown (info) witness-committed" in proof
    assert [proof.count(each) for each in (">6.0 s<", ">6.1 s<")] == [1, 1], "times count from the start of the run"


def test_the_page_leads_to_the_first_violation(tmp_path: Path) -> None:
    """The jump targets are in the same article; the first example names its operation; passes have no jumps."""
    run = make_run(tmp_path, (SMOKE, FAILED))
    page = html.render(load_run(run), run)
    assert page.count('class="jump"') == 2
    assert f'href="#first-{FAILED.key}"' in page
    assert page.index(f'href="#timeline-{FAILED.key}"') < page.index(f'<figure id="timeline-{FAILED.key}"')
    article = page[page.index(f'<article id="{FAILED.key}"') :]
    first = article[article.index(f'id="first-{FAILED.key}"') :][:900]
    assert "process 0, operation 60" in first
    assert "its operation began 6.0 s after the start" in first
    assert FAULT_BEGAN_S == 6
    assert FAULT_HEALED_S == 14


def test_the_matrix_has_a_column_per_subject_and_every_sentence(tmp_path: Path) -> None:
    """Two releases have a column each with their own verdicts; untested rows and limitations are marked."""
    new = make_run(tmp_path / "new", (SMOKE, FAILED))
    passing = replace(FAILED, verdict=Verdict.PASS, findings=(), release="4.2.1", started="20261122T090000Z")
    old = make_run(tmp_path / "old", (passing,), release="4.2.1", started="20261122T090000Z")
    report = merge((new, old), tmp_path / "out")
    assert [each.part for each in columns(report)] == ["4.3.1-local", "4.2.1-local"]
    lines = {line.row.id: line for group in groups(report) for line in group.lines}
    assert len(lines) == len(report.requirements)
    assert [cell.verdict for cell in lines["ISO-01"].cells] == [Verdict.FAIL, Verdict.PASS]
    page = html.render(report, tmp_path / "out")
    assert "documented limitation" in page
    assert "UNTESTED" in page


def test_a_stochastic_pass_says_in_how_many_runs(tmp_path: Path) -> None:
    """A stochastic pass says `no violation in N scenarios` with the seeds, in its row and in the limits of a pass."""
    plan = Plan(key="a", requirements=("TXN-25",))
    report = load_run(make_run(tmp_path, (plan, replace(plan, key="b", seed=9))))
    strengths = {line.row.id: line.strength for group in groups(report) for line in group.lines if line.strength}
    assert strengths == {"TXN-25": "no violation in 2 scenarios (seeds 7, 9; 2 faults, 360 operations during them)"}
    page = html.render(report, tmp_path)
    assert "Evidence for each pass" in page


@pytest.mark.deep
def test_two_hundred_cases_stay_below_two_megabytes(tmp_path: Path) -> None:
    """A nightly run of 200 scenarios, some violated with all details, stays a small page."""
    failing = 4
    passing = [replace(SMOKE, key=f"family-some-longer-scenario-name-{n}-confluent-7") for n in range(200 - failing)]
    failed = [replace(FAILED, key=f"family-a-scenario-that-fails-{n}-java-7") for n in range(failing)]
    report = load_run(make_run(tmp_path, (*passing, *failed)))
    assert len(html.render(report, tmp_path).encode("utf-8")) < 2_000_000


@pytest.mark.deep
def test_two_hundred_violations_stay_below_two_megabytes(tmp_path: Path) -> None:
    """A release that fails everything by one bug: some are detailed, and the only place of another reason is one of them."""
    failed = [replace(FAILED, key=f"family-a-scenario-that-fails-{n}-java-7") for n in range(199)]
    other = replace(FAILED, key="the-only-duplicate", findings=(found("duplicate"), found("torn-transaction")))
    report = load_run(make_run(tmp_path, (*failed, other)))
    page = html.render(report, tmp_path)
    assert len(page.encode("utf-8")) < 2_000_000
    full, short = page.count('<figure id="timeline-'), page.count("Shortened, because many scenarios failed")
    assert (full + short, full >= DETAILED_MIN) == (200, True)
    assert '<figure id="timeline-the-only-duplicate"' in page
    assert page.count("The first example</strong>") == 200
    links = re.findall(r'href="#([^"]+)"', page)
    assert {f'id="{each}"' for each in links} <= set(re.findall(r'id="[^"]+"', page))
    # A dozen of them are all detailed.
    few = load_run(make_run(tmp_path / "few", failed[:12]))
    assert "Shortened, because many scenarios failed" not in html.render(few, tmp_path / "few")


def test_availability_is_in_the_results(tmp_path: Path) -> None:
    """Programs get the same figures as readers."""
    body = json.loads(dumps(load_run(make_run(tmp_path, EVERY_VERDICT))))
    (row,) = body["scenarios"][0]["availability"]
    assert row["longest_gap_s"] > 0
    assert set(row["commit_latency"]) == {"before", "during", "after"}
