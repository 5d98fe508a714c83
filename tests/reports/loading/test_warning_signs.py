"""A scenario that was not judged says so, with what looks wrong in its evidence and the command that judges it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from reports.formats import html, summary, terminal
from reports.loading.merge import merge
from reports.loading.run import load_run
from reports.model.run_record import RunState
from tests.support.plans import FAILED, SMOKE
from tests.support.run_directories import make_run
from verification.vocabulary.verdict import Verdict

GOLDEN = Path(__file__).parents[1] / "golden"
OPEN = replace(SMOKE, key="unjudged", verdict=None)


def test_an_unjudged_scenario_names_its_signs_and_the_command(tmp_path: Path) -> None:
    """Page, terminal and summary have them; they are no verdict."""
    run = make_run(tmp_path / "run", [OPEN], state=RunState.INTERRUPTED)
    (shown,) = load_run(run).scenarios
    assert shown.verdict is Verdict.INCONCLUSIVE
    assert shown.reason.startswith("not judged: the run was interrupted; warning signs: ")
    assert shown.judge == f"python -m verification runs/{OPEN.key}"
    report = load_run(run)
    assert shown.judge in terminal.render(report)
    assert shown.judge in summary.render(report)
    page = html.render(report, run)
    assert f"<code>{shown.judge}</code>" in page
    assert page.count("warning signs: ") >= 2


def test_real_evidence_shows_its_signs_without_a_verdict(tmp_path: Path) -> None:
    """The scenario that proves KB-16, without its verdict: a partition had no leader, and commits were left open."""
    (kept,) = GOLDEN.glob("scenarios-*/run/runs/coordinator-commit-while-a-partition-has-no-leader-*")
    shutil.copytree(kept, tmp_path / "evidence")
    (tmp_path / "evidence" / "verdicts.json").unlink()
    (shown,) = load_run(tmp_path / "evidence").scenarios
    assert "no leader was seen for billing-events-" in shown.reason
    assert shown.judge == "python -m verification ."


def test_a_judged_scenario_has_neither(tmp_path: Path) -> None:
    """Its verdict says what the evidence shows."""
    for shown in load_run(make_run(tmp_path, [SMOKE, FAILED])).scenarios:
        assert shown.judge == ""
        assert "warning signs" not in shown.reason


def test_evidence_without_a_history_cannot_be_judged(tmp_path: Path) -> None:
    """No command is offered that could not succeed."""
    run = make_run(tmp_path, [OPEN])
    (run / "runs" / OPEN.key / "history.jsonl").unlink()
    (shown,) = load_run(run).scenarios
    assert (shown.verdict, shown.judge) == (Verdict.ERROR, "")
    assert "warning signs" not in shown.reason


def test_a_merged_report_names_the_directory_from_its_own(tmp_path: Path) -> None:
    """The command is for the directory of the merged runs."""
    runs = [make_run(tmp_path / name, [replace(OPEN, started=f"2026112{name}T090000Z")]) for name in ("1", "2")]
    report = merge(runs, tmp_path / "out")
    assert [each.judge for each in report.scenarios] == [
        f"python -m verification {name}/runs/{OPEN.key}" for name in ("1", "2")
    ]
