"""The live line: its changing parts fit a narrow terminal, and a log without a terminal gets all of it."""

from __future__ import annotations

import io
import time
from types import SimpleNamespace
from typing import Any

import pytest

from fixtures.workloads.counters import Progress
from runner import console as consoles
from runner.console import Console, fitted
from runner.scenarios.scenario_run import ScenarioRun

PROGRESS = Progress(ok=1234, aborted=56, fail=7, info=8, records=40_000)
FAULT = "Crash the leader of billing-events-0 (SIGKILL), restart it after 8 s"


def scenario_run(elapsed_s: float) -> ScenarioRun:
    """A run with a long name, in a phase with a long name, under a fault that takes many words."""
    made = object.__new__(ScenarioRun)
    made.began = time.monotonic() - elapsed_s
    made.scenario = SimpleNamespace(name="coordinator/commit-while-a-partition-has-no-leader")  # type: ignore[assignment]
    made.phase_name, made.fault_text = "await LSO = high watermark", FAULT
    workload: Any = SimpleNamespace(progress=lambda: PROGRESS)
    made._workload = workload
    return made


@pytest.mark.parametrize("width", [80, 100, 120])
def test_time_counts_and_phase_fit_a_terminal(width: int) -> None:
    """At 80 columns the line still shows elapsed time, outcomes and phase."""
    shown = fitted(f"[12/28] {scenario_run(12).status(25)}", width)
    assert shown.startswith("[12/28] 12 of 25 s │ 1234 ok, 56 aborted, 7 failed, 8 unknown │ await ")
    assert len(shown) < width


def test_the_whole_line_has_scenario_and_fault() -> None:
    """On a wide terminal the fault is cut last, or not at all."""
    assert scenario_run(3).status(25).endswith(f"coordinator/commit-while-a-partition-has-no-leader │ {FAULT}")
    assert scenario_run(3).status().startswith("3 s │ ")


def shown_on(*, live: bool, monkeypatch: pytest.MonkeyPatch) -> str:
    """The output of a console that follows a status for some refreshes."""
    monkeypatch.setattr(consoles, "LIVE_EVERY_S", 0.01)
    monkeypatch.setattr(consoles, "HEARTBEAT_EVERY_S", 0.02)
    out = io.StringIO()
    console = Console(out=out, live=live, width=20)
    console.follow("a scenario", lambda: f"12 of 25 s │ {FAULT}")
    deadline = time.monotonic() + 10
    while "12 of 25 s" not in out.getvalue() and time.monotonic() < deadline:
        time.sleep(0.01)
    console.say("PASS")
    console.unfollow("a scenario")
    return out.getvalue()


def test_a_terminal_has_one_line_that_is_rewritten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The live line is cut to the width with a mark, erased before a line that stays, and gone in the end."""
    text = shown_on(live=True, monkeypatch=monkeypatch)
    assert "12 of 25 s │ Crash" in text
    assert FAULT not in text
    assert "…" in text
    assert "\r\x1b[2KPASS\n" in text
    assert text.endswith(("PASS\n", "\r\x1b[2K"))


def test_a_log_has_a_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a terminal the whole line is printed from time to time."""
    text = shown_on(live=False, monkeypatch=monkeypatch)
    assert f"    … 12 of 25 s │ {FAULT}\n" in text
    assert "\x1b" not in text


def test_every_lane_has_a_line_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two live lines are erased together, and the one that is left goes on alone."""
    monkeypatch.setattr(consoles, "LIVE_EVERY_S", 0.01)
    out = io.StringIO()
    console = Console(out=out, live=True, width=40)
    console.follow("run", lambda: "2 of 28 have ended")
    console.follow("lane", lambda: "drain")
    deadline = time.monotonic() + 10
    while "2 of 28 have ended\ndrain" not in out.getvalue() and time.monotonic() < deadline:
        time.sleep(0.01)
    console.say("PASS")
    assert "\r\x1b[2K\x1b[1A\x1b[2KPASS\n" in out.getvalue()
    console.unfollow("lane")
    alone = len(out.getvalue())
    while "2 of 28 have ended\r" not in out.getvalue()[alone + 40 :] and time.monotonic() < deadline:
        time.sleep(0.01)
    console.unfollow("run")
    assert "drain" not in out.getvalue()[alone + 40 :]
    assert out.getvalue().endswith("\r\x1b[2K")
