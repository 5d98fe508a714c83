"""The after-window is full when every floor that counts from the heal on is met, not when time has passed."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from fixtures.workloads.counters import Progress
from runner.scenarios import phases

FLOORS = {"ok_after": 5, "transactions_after": 3, "records": 10, "transactions": 4}


class ScenarioRun:
    """A run whose workload makes one step per look."""

    def __init__(self, steps: list[Progress]) -> None:
        self.steps = steps
        self.looks = 0
        self.inputs = 0
        self.scenario = SimpleNamespace(observe_s=0.0)
        self.workload = SimpleNamespace(progress=self.progress)

    def progress(self) -> Progress:
        """The next step; the last one stays."""
        self.looks += 1
        return self.steps[min(self.looks, len(self.steps)) - 1]

    def floor(self, name: str) -> int:
        """A floor of this test."""
        return FLOORS[name]

    def input_ends(self) -> tuple[int, ...]:
        """One end for each input."""
        return (1,) * self.inputs

    def input_lag(self, marks: tuple[int, ...]) -> int:
        """Nothing is ever copied."""
        return len(marks)


def looks(*steps: Progress, monkeypatch: pytest.MonkeyPatch) -> int:
    """The number of looks at the progress until the window was full."""
    monkeypatch.setattr(phases.time, "sleep", lambda _: None)
    scenario_run: Any = ScenarioRun(list(steps))
    phases.await_after_window(scenario_run)
    return int(scenario_run.looks)


def test_appends_do_not_fill_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """While only the feeder works, the window goes on until transactions are back, however many there were before."""
    healed = Progress(ok=100, transactions=90, records=1_000)
    alone = Progress(ok=150, transactions=92, records=2_000)
    back = Progress(ok=160, transactions=93, records=2_000)
    assert looks(healed, alone, alone, back, monkeypatch=monkeypatch) == 4


def test_it_ends_although_nothing_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The window has a bound: the judge reports too little coverage."""
    monkeypatch.setattr(phases, "AFTER_WINDOW_WITHIN_S", 0.01)
    monkeypatch.setattr(phases, "STANDSTILL_S", 0.0)
    assert looks(Progress(ok=100), monkeypatch=monkeypatch) > 1


@pytest.mark.parametrize(
    ("need", "every_s", "inputs", "ends_after_s"),
    [(40, 8, 0, 240), (5, math.inf, 0, 60), (5, 4, 0, 20), (5, 4, 1, 120)],
)
def test_a_slow_machine_has_more_time_as_long_as_something_comes_in(
    need: int, every_s: float, inputs: int, ends_after_s: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One transaction in eight seconds is too slow, and none is a standstill; with one in four the floor is met.

    Inputs that nothing copies are waited for twice as long.
    """
    clock = [0.0]
    monkeypatch.setattr(phases.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(phases.time, "sleep", lambda _: clock.__setitem__(0, clock[0] + 1))
    monkeypatch.setitem(FLOORS, "transactions_after", need)

    def progress() -> Progress:
        done = int(clock[0] // every_s)
        return Progress(ok=100 + done, transactions=90 + done, records=1_000)

    scenario_run: Any = ScenarioRun([])
    scenario_run.workload.progress = progress
    scenario_run.inputs = inputs
    phases.await_after_window(scenario_run)
    assert clock[0] == ends_after_s
