"""A run that was killed: judged and rendered later, it says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reports.loading.run import load_run
from reports.model.run_record import RunState
from tests.support.damaged_runs import cut_history
from tests.support.plans import SMOKE, Plan
from tests.support.run_directories import make_run
from verification.evidence.run_directory import RunDirectory
from verification.judge.judge import judge
from verification.vocabulary.verdict import ExitCode, Verdict

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
