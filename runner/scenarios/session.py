"""A conformance run from its first line to its last: what is planned, what ended how, and the report.

The session keeps `run.json` current, so that a run that is killed still says what it had planned. It opens the
laboratory when the first scenario needs it and closes it before the report is written.
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
from runner.scenarios.planning import LOCAL_ONLY, listed, planned_of, scenario_of, summed_up
from runner.scenarios.scenario import Scenario
from verification.vocabulary.verdict import ExitCode, ScenarioVerdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runner.signals import DeferredSignals

LOG = logging.getLogger(__name__)
#: Four scenarios are judged in 20 s, on a machine under heavy load in some minutes; the rest of a run waits no longer.
JUDGED_WITHIN_S = 600.0


class ConformanceSession:
    """The state of one run."""

    def __init__(self, config: RunConfig, console: Console, acceptances: tuple[Acceptance, ...]) -> None:
        self.config = config
        self.console = console
        self.record = RunRecordWriter(
            config, console, acceptances, profile=config.profile, command=config.replay, seed=config.seed
        )
        self.listing = False
        self._scenarios: dict[str, Scenario] = {}
        self._broken: dict[str, str] = {}
        self._laboratory: RunResources | None = None
        self._closing: list[str] = []

    # -- planning ----------------------------------------------------------------------------------------------

    def plan(self, items: Sequence[pytest.Item]) -> None:
        """Remember every scenario that this run means to execute; raises pytest.UsageError for a wrong one."""
        planned = [planned_of(item, self.config) for item in items]
        self.record.plan(planned)
        self._scenarios = {each.key: scenario_of(item, self.config) for each, item in zip(planned, items, strict=True)}
        if planned and not self.listing:
            self.console.say(summed_up(planned))

    def list_scenarios(self, items: Sequence[pytest.Item]) -> None:
        """Print ids, requirements, claims and estimates; start nothing."""
        for line in listed([planned_of(item, self.config) for item in items]):
            self.console.say(line)

    def header(self) -> list[str]:
        """What is about to be done; what the machine has is looked at when the scenarios are known."""
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
        return self._conduct(key, self._scenarios[key])

    def _conduct(self, key: str, scenario: Scenario) -> Future[ScenarioVerdict]:
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
            where = scenario_run.phase_name if scenario_run else "opening the laboratory"
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

    def passes_over(self, item: pytest.Item) -> bool:
        """Whether a scenario cannot be tried on the runtime of this run; that is said, and is in the report."""
        equipped = self.record.environment
        if equipped is None or equipped.runtime == Runtime.LOCAL or item.get_closest_marker(LOCAL_ONLY) is None:
            return False
        key = planned_of(item, self.config).key
        reason = f"not run on {equipped.runtime}: it needs brokers that are processes of this machine (--runtime local)"
        self.record.ended[key] = Ended(key=key, seconds=0.0, inapplicable=reason)
        self.console.say(f"NOT APPLICABLE {key}: {reason}")
        return True

    def _open(self) -> RunResources:
        if self._laboratory is None:
            environment = self.record.environment
            assert environment is not None, "scenarios are run once everything that they need is there"
            self._laboratory = RunResources(self.config, self.console, environment=environment)
        return self._laboratory

    def judge_now(self) -> None:
        """Judge what is left: no scenario follows."""
        if self._laboratory is not None:
            self._laboratory.judge_now()

    def conclude(
        self, item: pytest.Item, reports: Sequence[pytest.TestReport], judgement: Future[ScenarioVerdict] | None
    ) -> ScenarioVerdict | None:
        """Say how a scenario ended; None when it has no verdict because the environment broke it."""
        planned = planned_of(item, self.config)
        if judgement is None or judgement.cancelled():
            reason = self._broken.get(planned.key) or _failure(reports)
            self.console.say(f"ERROR         {planned.key}: {reason}")
            return None
        if not wait([judgement], timeout=JUDGED_WITHIN_S).done:
            assert self._laboratory is not None, "somebody judges"
            self._laboratory.abandon_judge()
            log = self._laboratory.spark_log
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
        """There is no verdict, and the report says why."""
        self.record.ended[key] = replace(self.record.ended[key], error=f"judge: {reason}")
        self.console.say(f"ERROR         {key}: the judge failed: {reason}")

    # -- ending ------------------------------------------------------------------------------------------------

    def hurry(self) -> None:
        """Somebody asked twice: what is being judged is not waited for; clusters and clients are ended all the same."""
        if self._laboratory is not None:
            self._laboratory.hurry()

    def close(self, *, in_peace: bool = False) -> None:
        """End clusters, Spark and the judge; `in_peace` says that there is time for what the next run profits from."""
        if self._laboratory is not None:
            self._laboratory.close()
            if in_peace:
                self._laboratory.keep_classes()
            self._laboratory = None

    def finish(self, exitstatus: int, interrupts: DeferredSignals) -> int:
        """Close everything, write the report in every format, and return the exit code."""
        if interrupts.asked and self._laboratory is not None:
            self.console.say("Interrupted: finishing the current judgement, then stopping the brokers")
        try:
            self.close(in_peace=not interrupts.asked)
        except ENVIRONMENT_ERRORS as error:
            self.record.broken(f"closing down: {error}")
        if exitstatus == pytest.ExitCode.USAGE_ERROR:
            return ExitCode.USAGE
        if exitstatus == pytest.ExitCode.INTERNAL_ERROR:
            self.record.broken("the harness failed; its traceback stands above")
        code, self._closing = self.record.finish(interrupted=interrupts.asked > 0)
        return code

    def closing_lines(self) -> list[str]:
        """What is printed last."""
        return self._closing


def _failure(reports: Sequence[pytest.TestReport]) -> str:
    failed = next((report for report in reports if report.failed), None)
    if not reports:
        return "interrupted before it ended"
    return "it has no verdict" if failed is None else str(failed.longrepr).strip().splitlines()[-1]
