"""How long a run takes: scenarios and cases side by side, each in their lanes."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from reports.model.run_record import Ended, Planned
from runner.run_progress import RunProgress, estimated_s, summed_up


def planned(key: str, expected_s: float, *, case: bool = False, control: bool = False) -> Planned:
    """One experiment."""
    return Planned(key=key, scenario=key, claim="", expected_s=expected_s, case=case, control=control)


CONFIG: Any = SimpleNamespace(lanes=2, case_lanes=1)
PLANNED = {each.key: each for each in (planned("a", 300.0), planned("b", 180.0, control=True))}
CASES = {key: planned(key, 150.0, case=True) for key in ("c", "d", "e")}


def test_the_longer_of_both_kinds_counts() -> None:
    """Two lanes of scenarios need 240 s, one lane of cases 450 s."""
    assert estimated_s(PLANNED.values(), CONFIG) == 240.0
    assert estimated_s([*PLANNED.values(), *CASES.values()], CONFIG) == 450.0
    last = replace(planned("f", 30.0, case=True), alone=True)
    assert estimated_s([*PLANNED.values(), *CASES.values(), last], CONFIG) == 480.0
    assert summed_up(PLANNED.values(), CONFIG) == "2 scenarios, 1 of them controls: about 4 min, in 2 lanes"
    assert summed_up(CASES.values(), CONFIG) == "3 protocol cases: about 8 min, in 1 lane"


def test_experiments_that_have_ended_need_no_time() -> None:
    """The line says how many are left and how long they take."""
    ended = {"a": Ended(key="a", seconds=1.0)}
    assert RunProgress(PLANNED, ended, CONFIG).line() == "1 of 2 have ended │ 0.0 min, about 2 min left"


def test_an_experiment_that_runs_alone_takes_less_and_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """An upgrade takes minutes: its time so far is no longer left. Once it is late, the next one will be as slow."""
    alone: Any = SimpleNamespace(lanes=1, case_lanes=1)
    now = [0.0]
    monkeypatch.setattr("runner.run_progress.time.monotonic", lambda: now[0])
    progress = RunProgress(PLANNED, ended := dict[str, Ended](), alone)
    lines = []
    for now[0] in (0.0, 120.0, 1200.0):
        lines.append(progress.line())
    assert [line.split("about ")[1] for line in lines] == ["8 min left", "6 min left", "12 min left"]
    ended["a"] = Ended(key="a", seconds=1200.0)
    assert progress.line() == "1 of 2 have ended │ 20.0 min, about 12 min left"
