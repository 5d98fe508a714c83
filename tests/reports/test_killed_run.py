"""A run that was killed: judged and rendered later, it says so."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from reports.comparing import baseline
from reports.comparing.compare import against
from reports.formats import terminal
from reports.formats.write import write_all
from reports.loading.run import load_run
from reports.model.change import ChangeKind
from reports.model.run_record import RunState
from reports.model.wording import scenario_word
from tests.support.damaged_runs import cut_history
from tests.support.plans import CONTROL, FAILED, SMOKE, Plan
from tests.support.rendered_runs import SCHEMA, page_of
from tests.support.run_directories import make_run
from verification.evidence.run_directory import RunDirectory
from verification.judge.judge import judge
from verification.vocabulary.verdict import Decision, ExitCode, Verdict

DURING = Plan(key="coordinator-crash", ended=False, verdict=None)
#: Evidence that is refused needs no session.
NO_SPARK: Any = None


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A run that was killed during its second scenario, which the judge has seen since."""
    run = make_run(tmp_path, (SMOKE, DURING), state=RunState.RUNNING)
    directory = RunDirectory(run / "runs" / DURING.key)
    cut_history(directory)
    judge(NO_SPARK, [directory])
    return run


def test_the_scenario_of_the_kill_says_so(killed: Path) -> None:
    """Its verdict is an error for one reason, in words; the verdict belongs to the scenario's own run."""
    report = load_run(killed)
    scenario = report.scenarios[1]
    assert scenario.verdict is Verdict.ERROR
    assert scenario.reason.startswith(
        "the run was interrupted or killed during this scenario, so it cannot be judged: history.jsonl has no footer"
    )
    assert str(killed) not in scenario.reason
    assert not [problem for problem in report.problems if "verdicts.json" in problem.text]
    assert "it was killed, or it is still running" in " ".join(problem.text for problem in report.problems)
    assert report.judgement.exit_code is ExitCode.ENVIRONMENT


@pytest.mark.parametrize("state", [RunState.INTERRUPTED, RunState.RUNNING])
def test_a_control_that_did_not_run_was_not_missed(tmp_path: Path, state: RunState) -> None:
    """It says so as a scenario does, on every face and against a baseline; without it the run is no GO."""
    write_all(load_run(make_run(tmp_path / "before", (SMOKE, CONTROL))), tmp_path / "before")
    run = make_run(tmp_path / "now", (SMOKE, replace(CONTROL, present=False, ended=False)), state=state)
    report = against(load_run(run), baseline.read(tmp_path / "before"))
    (control,) = report.controls
    assert (scenario_word(control), control.reason) == (
        "INCONCLUSIVE",
        f"not run, because the run was {state.cut_short}",
    )
    assert (report.judgement.decision, report.judgement.exit_code) == (Decision.UNDECIDED, ExitCode.ENVIRONMENT)
    assert [each.kind for _, one in report.comparisons for each in one.changes if each.id == CONTROL.key] == [
        ChangeKind.NEWLY_INCONCLUSIVE
    ]
    write_all(report, run)
    results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    jsonschema.validate(results, SCHEMA)
    assert [(each["convicted"], each["result"]) for each in results["controls"]] == [(False, "INCONCLUSIVE")]
    faces = [page_of(run).text, terminal.render(report), *(path.read_text() for path in run.glob("*.[mjx]*"))]
    assert len(faces) > 5
    assert not [face for face in faces if "MISSED" in face]


def test_the_headline_of_a_killed_run_says_so(killed: Path) -> None:
    """Decision, terminal, summary and page have the words of the problem, and none that it was interrupted."""
    report = load_run(killed)
    write_all(report, killed)
    words = "killed, or it is still running"
    assert report.judgement.why.startswith(f"The run was {words}; 1 of 2 scenarios could not be decided")
    heads = {
        "terminal": terminal.render(report).partition("scenarios\n")[0],
        "summary": (killed / "summary.md").read_text(encoding="utf-8").partition("Subject")[0],
        "page": page_of(killed).text.partition("Subject")[0],
    }
    for name, head in heads.items():
        assert words in head, name
        # A reason names the scenario during which it happened.
        assert "interrupted" not in head.replace("interrupted or killed", "").replace("run interrupted", ""), name


def test_a_violation_of_a_killed_run_says_so_too(tmp_path: Path) -> None:
    """The violation decides, and the end of the run is named next to it."""
    why = load_run(make_run(tmp_path, (FAILED,), state=RunState.RUNNING)).judgement.why
    assert why.endswith("In addition, the run was killed, or it is still running.")
