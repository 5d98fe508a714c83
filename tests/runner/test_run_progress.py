"""How long a run takes: scenarios and cases side by side, each in their lanes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from reports.model.run_record import Ended, Planned
from runner.run_progress import RunProgress, estimated_s, summed_up
from verification.vocabulary.verdict import Verdict


def planned(key: str, expected_s: float, *, case: bool = False, control: bool = False) -> Planned:
    """One experiment."""
    return Planned(key=key, scenario=key, claim="", expected_s=expected_s, case=case, control=control)


CONFIG: Any = SimpleNamespace(lanes=2, case_lanes=1, case_lanes_at_last=3, given=None)
PLANNED = {each.key: each for each in (planned("a", 300.0), planned("b", 180.0, control=True))}
CASES = {key: planned(key, 150.0, case=True) for key in ("c", "d", "e")}


def test_cases_fill_the_lanes_that_scenarios_leave() -> None:
    """Two lanes of scenarios need 240 s. Of 450 s of cases one lane does as much by then, and three lanes do the rest."""
    assert estimated_s(PLANNED.values(), CONFIG) == 240.0
    assert estimated_s([*PLANNED.values(), CASES["c"]], CONFIG) == 240.0
    assert estimated_s([*PLANNED.values(), *CASES.values()], CONFIG) == 310.0
    last = replace(planned("f", 30.0, case=True), alone=True)
    assert estimated_s([*PLANNED.values(), *CASES.values(), last], CONFIG) == 340.0
    assert summed_up(PLANNED.values(), CONFIG) == "2 scenarios, 1 of them controls: about 4 min, in 2 lanes"
    only_cases: Any = SimpleNamespace(lanes=2, case_lanes=3, case_lanes_at_last=3, given=None)
    assert summed_up(CASES.values(), only_cases) == "3 protocol cases: about 2 min, in 3 lanes"


def test_a_scenario_fills_one_lane() -> None:
    """The other lane is empty. A window of `watch` waits for the one before, in two lanes and for twice its time."""
    assert estimated_s([PLANNED["a"]], CONFIG) == 300.0
    watch: Any = SimpleNamespace(**vars(CONFIG) | {"given": SimpleNamespace(windows=3, until_stopped=False)})
    assert estimated_s([planned("window", 2 * 60.0)], watch) == 60.0
    assert estimated_s([planned(f"window {number}", 2 * 60.0) for number in range(3)], watch) == 180.0


def test_a_watch_goes_on_until_it_is_stopped() -> None:
    """Neither the line nor the plan names a time."""
    watch: Any = SimpleNamespace(**vars(CONFIG) | {"given": SimpleNamespace(windows=2, until_stopped=True)})
    assert summed_up(PLANNED.values(), watch) == "windows until Ctrl-C, at most 2"
    progress = RunProgress(PLANNED, {"a": Ended(key="a", seconds=1.0)}, watch)
    assert progress.line() == "1 have ended │ 0.0 min, until Ctrl-C"


def test_experiments_that_have_ended_need_no_time() -> None:
    """The line says how many are left, how long they take, and how many failed with which anomalies."""
    ended = {"a": Ended(key="a", seconds=1.0)}
    verdicts = [Verdict.PASS]
    anomalies: Counter[str] = Counter()
    progress = RunProgress(PLANNED, ended, CONFIG, verdicts, anomalies)
    assert progress.line() == "1 of 2 have ended │ 0.0 min, about 3 min left"
    verdicts.append(Verdict.FAIL)
    assert progress.line() == "1 of 2 have ended, 1 FAIL │ 0.0 min, about 3 min left"
    anomalies.update(["lost-write", "duplicate"])
    assert progress.line() == "1 of 2 have ended, 1 FAIL (1 duplicate, 1 lost-write) │ 0.0 min, about 3 min left"
    with_cases = RunProgress(PLANNED | CASES, ended, CONFIG, verdicts, anomalies)
    assert with_cases.line().startswith("1 of 5 have ended, 1 FAIL │ ")


def test_an_experiment_that_runs_alone_takes_less_and_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """An upgrade takes minutes: its time so far is no longer left. Once it is late, the next one will be as slow."""
    alone: Any = SimpleNamespace(lanes=1, case_lanes=1, case_lanes_at_last=2, given=None)
    now = [0.0]
    monkeypatch.setattr("runner.run_progress.time.monotonic", lambda: now[0])
    progress = RunProgress(PLANNED, ended := dict[str, Ended](), alone)
    lines = []
    for now[0] in (0.0, 120.0, 1200.0):
        lines.append(progress.line())
    assert [line.split("about ")[1] for line in lines] == ["8 min left", "6 min left", "12 min left"]
    ended["a"] = Ended(key="a", seconds=1200.0)
    assert progress.line() == "1 of 2 have ended │ 20.0 min, about 12 min left"
