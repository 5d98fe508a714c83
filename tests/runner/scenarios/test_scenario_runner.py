"""Ctrl-C reaches a scenario in its lane: the scenario ends as after any error, and no other begins."""

from __future__ import annotations

import io
import threading
import time
from collections import deque
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fixtures.errors import EnvironmentProblemError
from runner.console import Console
from runner.lanes import Lanes, Queue
from runner.scenarios import scenario_runner
from runner.scenarios.scenario_runner import ScenarioRunner

WITHIN_S = 20.0


class RecordStandIn:
    """The record of a run with two scenarios, which keeps what it is given."""

    def __init__(self) -> None:
        self.planned = {key: SimpleNamespace(expected_s=25.0) for key in ("first", "second")}
        self.ended: dict[str, Any] = {}
        self.problems: list[str] = []
        self.last_words: list[str] = []

    def place(self, key: str) -> str:
        """Its place in the plan."""
        return f"[{list(self.planned).index(key) + 1}/2]"

    def end(self, ended: Any) -> None:
        """Keep it."""
        self.ended[ended.key] = ended

    def broken(self, *problems: str) -> None:
        """Keep them."""
        self.problems += problems


def lane_of(
    monkeypatch: pytest.MonkeyPatch, run_scenario: Any, *, stays_up: bool = False
) -> tuple[Lanes[Any, Any], RecordStandIn, list[str]]:
    """A lane with two scenarios that are run by `run_scenario`, and the order in which clusters and scenarios end."""
    order: list[str] = []
    clusters: Any = SimpleNamespace(
        close=lambda: order.append("cluster"), leave_running=lambda: [f"left after {order.count('scenario')}"]
    )
    console = Console(out=io.StringIO(), live=False)
    lane: Any = SimpleNamespace(
        console=console, clusters=clusters, config=SimpleNamespace(stays_up=stays_up, given=None)
    )
    record = RecordStandIn()
    started: Any = SimpleNamespace(phase_name="nemesis", status=lambda _: "")
    monkeypatch.setattr(scenario_runner, "ScenarioRun", lambda *_: started)
    monkeypatch.setattr(scenario_runner, "run_scenario", lambda _: run_scenario(order))
    scenarios = [SimpleNamespace(key=key, mock=False) for key in record.planned]
    runner = ScenarioRunner(lane, record, lambda _: Future())  # type: ignore[arg-type]
    queue: Queue[Any] = Queue(deque([each] for each in scenarios))
    return Lanes([queue], lambda _: runner, lanes=1, helped_from=1), record, order


def test_an_interrupted_scenario_heals_before_its_cluster_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its `finally` is run to the end, and the second scenario never begins."""
    running = threading.Event()

    def run(order: list[str]) -> Path:
        try:
            running.set()
            deadline = time.monotonic() + WITHIN_S
            while time.monotonic() < deadline:
                time.sleep(0.01)
        finally:
            time.sleep(0.2)
            order.append("scenario")
        return Path()

    lanes, record, order = lane_of(monkeypatch, run)
    lanes.start()
    assert running.wait(WITHIN_S)
    lanes.close()
    assert isinstance(lanes.outcomes["first"].exception(WITHIN_S), KeyboardInterrupt)
    assert order[:2] == ["scenario", "cluster"]
    assert list(record.ended) == ["first"]
    assert not lanes.outcomes["second"].done()


def test_a_scenario_that_breaks_lets_the_next_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    """The record says in which phase it broke; the future has the error."""
    begun: list[int] = []

    def run(_: list[str]) -> Path:
        begun.append(1)
        if len(begun) == 1:
            raise EnvironmentProblemError("The disk is full.")
        return Path()

    lanes, record, _ = lane_of(monkeypatch, run)
    lanes.start()
    assert lanes.outcomes["second"].result(WITHIN_S) is not None
    lanes.close()
    assert isinstance(lanes.outcomes["first"].exception(), EnvironmentProblemError)
    assert record.ended["first"].error == "nemesis: The disk is full."
    assert record.ended["second"].error == ""


@pytest.mark.parametrize(("stays_up", "breaks"), [(True, False), (False, False), (True, True)])
def test_a_cluster_is_left_running_only_after_a_whole_run(
    monkeypatch: pytest.MonkeyPatch, stays_up: bool, breaks: bool
) -> None:
    """The user asked for it, and the scenario came to its end; the words about it are printed last."""

    def run(order: list[str]) -> Path:
        order.append("scenario")
        if breaks:
            raise EnvironmentProblemError("The disk is full.")
        return Path()

    lanes, record, order = lane_of(monkeypatch, run, stays_up=stays_up)
    lanes.start()
    lanes.outcomes["second"].exception(WITHIN_S)
    lanes.close()
    assert ("left after 2" in record.last_words) is (stays_up and not breaks)
    assert "cluster" in order
