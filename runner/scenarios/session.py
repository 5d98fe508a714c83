"""A conformance run: plans its scenarios, runs each of them, and prints each verdict.

It opens the resources that scenarios share (clusters, Spark, the judge) when the first scenario needs them, and closes
them before the report is written.
"""

from __future__ import annotations

import logging
import time
from concurrent.futures import Future, wait
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from reports.model.run_record import Acceptance, Ended
from runner.config import RunConfig, Runtime
from runner.console import Console
from runner.errors import ENVIRONMENT_ERRORS
from runner.resources import RunResources
from runner.run_record_writer import RunRecordWriter
from runner.scenarios.phases import run_scenario
from runner.scenarios.planning import LOCAL_ONLY, listed, planned_of, scenario_of
from runner.scenarios.scenario import Scenario
from verification.vocabulary.verdict import ScenarioVerdict

if TYPE_CHECKING:
    from collections.abc import Sequence

LOG = logging.getLogger(__name__)
#: Four scenarios are judged in 20 s, on a machine under heavy load in some minutes. A run waits no longer.
JUDGED_WITHIN_S = 600.0


class ConformanceSession:
    """The state of one run."""

    def __init__(self, config: RunConfig, console: Console, acceptances: tuple[Acceptance, ...]) -> None:
        self.config = config
        self.console = console
        self.record = RunRecordWriter(
            config, console, acceptances, profile=config.profile, command=config.replay, seed=config.seed
        )
        self._scenarios: dict[str, Scenario] = {}
        self._broken: dict[str, str] = {}
        self._resources: RunResources | None = None

    # -- planning ----------------------------------------------------------------------------------------------

    def plan(self, items: Sequence[pytest.Item]) -> None:
        """Read and record every planned scenario; raises pytest.UsageError for a wrong one."""
        planned = [planned_of(item, self.config) for item in items]
        self.record.plan(planned)
        self._scenarios = {each.key: scenario_of(item, self.config) for each, item in zip(planned, items, strict=True)}

    def list_scenarios(self, items: Sequence[pytest.Item]) -> None:
        """Print ids, requirements, claims and estimates; start nothing."""
        for line in listed([planned_of(item, self.config) for item in items]):
            self.console.say(line)

    def header(self) -> list[str]:
        """The configuration of the run. The machine is looked at later, when the scenarios are known."""
        config = self.config
        return [
            f"onceproof: Kafka {config.release.version}, runtime {config.runtime}, client {config.client}, "
            f"profile {config.profile}, seed {config.seed}",
            f"evidence and report: {config.directory}",
        ]

    # -- running -----------------------------------------------------------------------------------------------

    def run(self, item: pytest.Item) -> Future[ScenarioVerdict]:
        """Run the scenario that a test describes and hand its evidence to the judge."""
        key = planned_of(item, self.config).key
        return self._run(key, self._scenarios[key])

    def _run(self, key: str, scenario: Scenario) -> Future[ScenarioVerdict]:
        from runner.scenarios.mock_run import MockScenarioRun
        from runner.scenarios.scenario_run import ScenarioRun

        began = time.monotonic()
        place = f"[{len(self.record.ended) + 1}/{len(self.record.planned)}]"
        self.console.detail(f"{place} {key}", indent=0)
        error = ""
        scenario_run: ScenarioRun | None = None
        try:
            resources = self._open()
            scenario_run = (MockScenarioRun if scenario.mock else ScenarioRun)(scenario, resources)
            shown = scenario_run.status
            expected_s = self.record.planned[key].expected_s
            self.console.follow(lambda: f"{place} {shown(expected_s)}")
            directory = run_scenario(scenario_run)
            return resources.judge_later(directory)
        except ENVIRONMENT_ERRORS as problem:
            where = scenario_run.phase_name if scenario_run else "opening the resources"
            error = "; ".join([f"{where}: {problem}", *getattr(problem, "__notes__", ())])
            self._broken[key] = error
            LOG.exception("%s broke", key)
            raise
        except KeyboardInterrupt as interruption:
            self.record.broken(*getattr(interruption, "__notes__", []))
            raise
        finally:
            self.console.unfollow()
            self.record.end(Ended(key=key, seconds=time.monotonic() - began, error=error))

    def skips(self, item: pytest.Item) -> bool:
        """Whether a scenario cannot be run on this runtime; if so, that is printed and recorded."""
        environment = self.record.environment
        if environment is None or environment.runtime == Runtime.LOCAL or item.get_closest_marker(LOCAL_ONLY) is None:
            return False
        key = planned_of(item, self.config).key
        reason = (
            f"not run on {environment.runtime}: it needs brokers that are processes of this machine (--runtime local)"
        )
        self.record.ended[key] = Ended(key=key, seconds=0.0, inapplicable=reason)
        self.console.say(f"NOT APPLICABLE {key}: {reason}")
        return True

    def _open(self) -> RunResources:
        if self._resources is None:
            environment = self.record.environment
            assert environment is not None, "the environment is prepared before the first scenario"
            self._resources = RunResources(self.config, self.console, environment=environment)
        return self._resources

    def judge_now(self) -> None:
        """Judge the scenarios that are left: no other follows."""
        if self._resources is not None:
            self._resources.judge_now()

    def conclude(
        self, item: pytest.Item, reports: Sequence[pytest.TestReport], judgement: Future[ScenarioVerdict] | None
    ) -> ScenarioVerdict | None:
        """Print and return the verdict of a scenario; None when the environment or the judge failed."""
        planned = planned_of(item, self.config)
        if judgement is None or judgement.cancelled():
            reason = self._broken.get(planned.key) or _failure(reports)
            self.console.say(f"ERROR         {planned.key}: {reason}")
            return None
        if not wait([judgement], timeout=JUDGED_WITHIN_S).done:
            assert self._resources is not None, "the scenario was handed to the judge"
            self._resources.abandon_judge()
            log = self._resources.spark_log
            self._unjudged(planned.key, f"it did not end within {JUDGED_WITHIN_S:.0f} s; {log} may say why")
            return None
        error = judgement.exception()
        if error is not None:
            self._unjudged(planned.key, str(error))
            return None
        verdict = judgement.result()
        word = ("DETECTED" if verdict.convicted else "MISSED") if verdict.control else verdict.verdict.name
        seconds = self.record.ended[planned.key].seconds
        self.console.say(f"{word:13} {planned.key}  {seconds:.0f} s  {verdict.reason}")
        return verdict

    def _unjudged(self, key: str, reason: str) -> None:
        """Record why there is no verdict."""
        self.record.ended[key] = replace(self.record.ended[key], error=f"judge: {reason}")
        self.console.say(f"ERROR         {key}: the judge failed: {reason}")

    # -- ending ------------------------------------------------------------------------------------------------

    def hurry(self) -> None:
        """Do not wait for a judgement; clusters and clients are still ended."""
        if self._resources is not None:
            self._resources.hurry()

    def close(self, *, keep_classes: bool = False) -> None:
        """End clusters, Spark and the judge; with `keep_classes` also take the time to speed up the next run's start."""
        if self._resources is not None:
            self._resources.close()
            if keep_classes:
                self._resources.keep_classes()
            self._resources = None

    def finish(self, *, interrupted: bool) -> None:
        """Close everything; after an interruption say so, because a judgement in flight is finished first."""
        if interrupted and self._resources is not None:
            self.console.say("Interrupted: finishing the current judgement, then stopping the brokers")
        self.close(keep_classes=not interrupted)


def _failure(reports: Sequence[pytest.TestReport]) -> str:
    failed = next((report for report in reports if report.failed), None)
    if not reports:
        return "interrupted before it ended"
    return "it has no verdict" if failed is None else str(failed.longrepr).strip().splitlines()[-1]
