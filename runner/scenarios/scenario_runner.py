"""Runs the scenarios of one lane, one after the other, and hands their evidence to the judge.

Ctrl-C reaches the main thread only, so `interrupt` raises KeyboardInterrupt in the thread of the lane. The scenario then
heals its faults, ends its clients and seals its evidence, as after any error.
"""

from __future__ import annotations

import ctypes
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager

from reports.model.run_record import Ended
from runner.errors import ENVIRONMENT_ERRORS
from runner.lanes import ENDED_WITHIN_S, Performer
from runner.resources import ScenarioLane
from runner.run_record_writer import RunRecordWriter
from runner.scenarios.given_run import GivenScenarioRun
from runner.scenarios.mock_run import MockScenarioRun
from runner.scenarios.phases import run_scenario
from runner.scenarios.scenario import Scenario
from runner.scenarios.scenario_run import ScenarioRun
from verification.evidence.run_directory import RunDirectory
from verification.vocabulary.verdict import ScenarioVerdict

LOG = logging.getLogger(__name__)
Judgement = Future[ScenarioVerdict]


class ScenarioRunner(Performer[Scenario, Judgement]):
    """Runs scenarios on the cluster of a lane."""

    def __init__(
        self,
        lane: ScenarioLane,
        record: RunRecordWriter,
        judge_later: Callable[[RunDirectory], Judgement],
        *,
        repeats: int = 0,
    ) -> None:
        """`repeats` is the number of a repetition, whose end the caller records."""
        self._lane = lane
        self._record = record
        self._judge_later = judge_later
        self._repeats = repeats
        self._changing = threading.Lock()
        self._running: int | None = None
        self._interrupted = self._complete = False
        self._idle = threading.Event()
        self._idle.set()

    def perform_together(self, tasks: Sequence[Scenario]) -> list[Judgement]:
        """Run a single scenario; returns its judgement, which is made later. Raises the errors of a run."""
        (scenario,) = tasks
        with self._interruptible():
            directory = self._run(scenario)
        self._complete = True
        return [self._judge_later(directory)]

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        with self._changing:
            if self._interrupted:
                raise KeyboardInterrupt
            self._running = threading.get_ident()
            self._idle.clear()
        try:
            yield
        finally:
            self._end_interruptible()

    def _end_interruptible(self) -> None:
        with self._changing:
            self._running = None
            self._idle.set()

    def _run(self, scenario: Scenario) -> RunDirectory:
        console, key, began = self._lane.console, scenario.key, time.monotonic()
        place = f"[repetition {self._repeats}]" if self._repeats else self._record.place(key)
        console.detail(f"{place} {key}", indent=0)
        error = ""
        given = GivenScenarioRun if self._lane.config.given else ScenarioRun
        scenario_run = (MockScenarioRun if scenario.mock else given)(scenario, self._lane)
        expected_s = self._record.planned[key].expected_s
        console.follow(key, lambda: f"{place} {scenario_run.status(expected_s)}")
        try:
            directory = run_scenario(scenario_run)
            # The evidence is complete: Ctrl-C must not keep it from being judged.
            self._end_interruptible()
        except ENVIRONMENT_ERRORS as problem:
            error = "; ".join([f"{scenario_run.phase_name}: {problem}", *getattr(problem, "__notes__", ())])
            LOG.exception("%s broke", key)
            raise
        except KeyboardInterrupt as interruption:
            self._record.broken(*getattr(interruption, "__notes__", []))
            raise
        else:
            return directory
        finally:
            console.unfollow(key)
            if not self._repeats:
                self._record.end(Ended(key=key, seconds=time.monotonic() - began, error=error))

    def interrupt(self) -> None:
        """Raise KeyboardInterrupt in the thread of a running scenario, once; no other scenario begins."""
        with self._changing:
            if not self._interrupted and self._running is not None:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self._running), ctypes.py_object(KeyboardInterrupt)
                )
            self._interrupted = True

    def discard(self, task: Scenario) -> None:
        """Keep the evidence of an interrupted scenario: it shows how far the scenario came."""

    def close(self) -> None:
        """Wait until a scenario that was interrupted has ended, then end the cluster, unless the user keeps it."""
        self._idle.wait(ENDED_WITHIN_S)
        if self._lane.config.stays_up and self._complete:
            self._record.last_words += self._lane.clusters.leave_running()
        self._lane.clusters.close()
