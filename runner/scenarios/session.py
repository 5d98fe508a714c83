"""A conformance run from its first line to its last: what is planned, what ended how, and the report.

The session keeps `run.json` current, so that a run that is killed still says what it had planned. It opens the
laboratory when the first scenario needs it and closes it before the report is written.
"""

from __future__ import annotations

import contextlib
import logging
import time
from concurrent.futures import Future, wait
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from chaos.errors import ChaosError
from fixtures.clusters.errors import ClusterError
from fixtures.errors import OnceproofError, RunDirectoryError, UsageError
from fixtures.processes.keeper import ProcessError
from reports.formats import terminal
from reports.model.run_record import Acceptance, Ended, Planned, RunRecord, RunState
from runner.config import RunConfig, Runtime
from runner.console import Console
from runner.environment import Environment, describe_machine, prepare
from runner.report_files import download, keep_baseline, write_report, written_to
from runner.resources import RunResources
from runner.run_log import RunLog
from runner.scenarios.phases import run_scenario
from runner.scenarios.planning import LOCAL_ONLY, listed, planned_of, scenario_of, summed_up
from runner.scenarios.scenario import Scenario
from verification.vocabulary.errors import VerificationError
from verification.vocabulary.verdict import ExitCode, ScenarioVerdict
from wire.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runner.signals import DeferredSignals

LOG = logging.getLogger(__name__)
#: Four scenarios are judged in 20 s, on a machine under heavy load in some minutes; the rest of a run waits no longer.
JUDGED_WITHIN_S = 600.0
#: Errors that are about the machine, the network or us, and end one scenario, not the run.
ENVIRONMENT_ERRORS = (OnceproofError, ClusterError, ChaosError, ProcessError, VerificationError, WireError, OSError)


class ConformanceSession:
    """The state of one run."""

    def __init__(self, config: RunConfig, console: Console, acceptances: tuple[Acceptance, ...]) -> None:
        self.config = config
        self.console = console
        self.listing = False
        self.narrowed_by = ""
        self.machine: dict[str, str] = {}
        self.began = time.monotonic()
        self._planned: dict[str, Planned] = {}
        self._scenarios: dict[str, Scenario] = {}
        self._ended: dict[str, Ended] = {}
        self._broken: dict[str, str] = {}
        self._problems: list[str] = []
        self._acceptances = acceptances
        self._laboratory: RunResources | None = None
        self._equipment: Environment | None = None
        self._unequipped: OnceproofError | None = None
        self._closing: list[str] = []
        self._log: RunLog | None = None

    # -- planning ----------------------------------------------------------------------------------------------

    def plan(self, items: Sequence[pytest.Item]) -> None:
        """Remember every scenario that this run means to execute; raises pytest.UsageError for a wrong one."""
        for item in items:
            planned = planned_of(item, self.config)
            if planned.key in self._planned:
                raise pytest.UsageError(f"Two scenarios are called {planned.key}; rename one of the functions.")
            self._planned[planned.key] = planned
            self._scenarios[planned.key] = scenario_of(item, self.config)
        if self._planned and not self.listing:
            self.console.say(summed_up(self._planned.values()))

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
        place = f"[{len(self._ended) + 1}/{len(self._planned)}]"
        self.console.detail(f"{place} {key}", indent=0)
        error = ""
        scenario_run: ScenarioRun | None = None
        try:
            resources = self._open()
            scenario_run = (MockScenarioRun if scenario.mock else ScenarioRun)(scenario, resources)
            shown = scenario_run.status
            expected_s = self._planned[key].expected_s
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
            self._problems += getattr(interruption, "__notes__", [])
            raise
        finally:
            self.console.unfollow()
            self._ended[key] = Ended(key=key, seconds=time.monotonic() - began, error=error)
            self._write(RunState.RUNNING)

    def equip(self) -> bool:
        """Have everything that the run needs before its first scenario; False when it cannot be had.

        What is missing is then said once, and no scenario is begun. Raises pytest.UsageError for a request that
        cannot be met as it was written, which leaves no directory behind.
        """
        directory = self.config.directory
        self.machine = describe_machine(self.config, self.console)
        try:
            with written_to(directory):
                directory.mkdir(parents=True, exist_ok=True)
            self._equipment = prepare(self.config, self.console)
            with written_to(directory):
                self._log = RunLog(directory)
                keep_baseline(self.config)
                self._write(RunState.RUNNING)
        except UsageError as error:
            with contextlib.suppress(OSError):
                directory.rmdir()
            raise pytest.UsageError(str(error)) from None
        except OnceproofError as error:
            self._unequipped = error
            self._ended = {key: Ended(key=key, seconds=0.0, error=f"not run: {error}") for key in self._planned}
            return False
        return True

    def passes_over(self, item: pytest.Item) -> bool:
        """Whether a scenario cannot be tried on the runtime of this run; that is said, and is in the report."""
        equipped = self._equipment
        if equipped is None or equipped.runtime == Runtime.LOCAL or item.get_closest_marker(LOCAL_ONLY) is None:
            return False
        key = planned_of(item, self.config).key
        reason = f"not run on {equipped.runtime}: it needs brokers that are processes of this machine (--runtime local)"
        self._ended[key] = Ended(key=key, seconds=0.0, inapplicable=reason)
        self.console.say(f"NOT APPLICABLE {key}: {reason}")
        return True

    def _open(self) -> RunResources:
        if self._laboratory is None:
            assert self._equipment is not None, "scenarios are run once everything that they need is there"
            self._laboratory = RunResources(self.config, self.console, environment=self._equipment)
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
        seconds = self._ended[planned.key].seconds
        self.console.say(f"{word:13} {planned.key}  {seconds:.0f} s  {verdict.reason}")
        return verdict

    def _unjudged(self, key: str, reason: str) -> None:
        """There is no verdict, and the report says why."""
        self._ended[key] = replace(self._ended[key], error=f"judge: {reason}")
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
        try:
            return self._finish(exitstatus, interrupts)
        finally:
            if self._log is not None:
                self._log.close()

    def _finish(self, exitstatus: int, interrupts: DeferredSignals) -> int:
        if interrupts.asked and self._laboratory is not None:
            self.console.say("Interrupted: finishing the current judgement, then stopping the brokers")
        try:
            self.close(in_peace=not interrupts.asked)
        except ENVIRONMENT_ERRORS as error:
            self._problems.append(f"closing down: {error}")
        if exitstatus == pytest.ExitCode.USAGE_ERROR:
            return ExitCode.USAGE
        if exitstatus == pytest.ExitCode.INTERNAL_ERROR:
            self._problems.append("the harness failed; its traceback stands above")
        if not self._planned:
            if interrupts.asked:
                self._closing = ["Interrupted before anything was planned: nothing was started, there is no report."]
            return ExitCode.ENVIRONMENT if interrupts.asked or self._problems else ExitCode.INCONCLUSIVE
        try:
            with written_to(self.config.directory):
                return self._report(RunState.INTERRUPTED if interrupts.asked else RunState.FINISHED)
        except RunDirectoryError as error:
            self._closing = [f"There is no report: {self._unequipped or error}"]
            return ExitCode.ENVIRONMENT

    def _report(self, state: RunState) -> ExitCode:
        directory = self.config.directory
        directory.mkdir(parents=True, exist_ok=True)
        self._write(state)
        report = write_report(self.config, self.console.say)
        page = directory / "report.html"
        if self._unequipped is None:
            colour = terminal.colour_wanted(self.console.out)
            self._closing = terminal.render(report, page=page, colour=colour).splitlines()
        else:
            # The table of what was planned would bury the one sentence that matters.
            code = report.judgement.exit_code
            self._closing = [f"Nothing was started (exit code {code}): {self._unequipped}", f"report: {page}"]
        return report.judgement.exit_code

    def closing_lines(self) -> list[str]:
        """What is printed last."""
        return self._closing

    def _write(self, state: RunState) -> None:
        config = self.config
        equipped = self._equipment
        RunRecord(
            started=config.started,
            seed=config.seed,
            profile=config.profile,
            command=config.replay,
            release=config.release.version,
            runtime=config.runtime if equipped is None else equipped.runtime,
            clients=tuple(sorted({each.client for each in self._planned.values()})),
            planned=tuple(self._planned.values()),
            state=state,
            narrowed_by=self.narrowed_by,
            accepted=self._acceptances,
            ended=tuple(self._ended.values()),
            problems=tuple(self._problems),
            machine=self.machine,
            downloads=() if equipped is None else tuple(map(download, equipped.downloads)),
            versions={} if equipped is None else equipped.versions,
            digests={} if equipped is None else equipped.digests,
            expected_s=sum(each.expected_s for each in self._planned.values()),
            duration_s=time.monotonic() - self.began,
        ).write(config.directory / "run.json")


def _failure(reports: Sequence[pytest.TestReport]) -> str:
    failed = next((report for report in reports if report.failed), None)
    if not reports:
        return "interrupted before it ended"
    return "it has no verdict" if failed is None else str(failed.longrepr).strip().splitlines()[-1]
