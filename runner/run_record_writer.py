"""Writes `run.json` after each change, prepares the environment of a run, and ends it with the report.

Runs of scenarios and protocol runs use the same writer. After a run was killed, `run.json` still has the plan, so the
report names every scenario or case that left no evidence. The environment is prepared once, before the first scenario
or case. If that fails, one sentence says why, and none is begun.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from fixtures.clusters.locks.releases import fetch_release
from fixtures.errors import OnceproofError, RunDirectoryError, UsageError
from reports.formats import terminal
from reports.model.run_record import Acceptance, Ended, Planned, RunRecord, RunState
from runner import checkout
from runner.config import Runtime
from runner.environment import Environment, describe_machine, prepare
from runner.given.preflight import preflight
from runner.report_files import download, keep_baseline, write_report, written_to
from runner.run_log import RunLog
from runner.run_progress import estimated_s
from verification.vocabulary.verdict import ExitCode, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runner.config import RunConfig
    from runner.console import Console


class RunRecordWriter:
    """The record of one run, on disk after each change.

    `left_out` says how many repetitions do not fit into a night, and `options` have all facts of the plan that the report
    names. `narrowed_by` names the arguments that left scenarios or cases out, and is empty for a whole run. `withdrawn` are
    the keys that the user left out by an early end. `anomalies` of scenarios that failed are for the live line, each with
    the number of these scenarios. `last_words` are printed after the report.
    """

    def __init__(
        self,
        config: RunConfig,
        console: Console,
        acceptances: tuple[Acceptance, ...],
    ) -> None:
        self.config = config
        self.console = console
        self.narrowed_by = ""
        self.left_out = ""
        self.options: dict[str, str] = {}
        self.withdrawn: set[str] = set()
        self.anomalies: Counter[str] = Counter()
        self.last_words: list[str] = []
        self.machine: dict[str, str] = {}
        self.environment: Environment | None = None
        self.planned: dict[str, Planned] = {}
        self.ended: dict[str, Ended] = {}
        self._acceptances = acceptances
        self._refused: OnceproofError | None = None
        self._problems: list[str] = []
        self._log: RunLog | None = None
        self._began = time.monotonic()
        self._writing = threading.Lock()
        self._suite = checkout.tool()

    def plan(self, planned: Iterable[Planned]) -> None:
        """Add the scenarios or cases of this run; raises pytest.UsageError when two have one name."""
        for each in planned:
            if each.key in self.planned:
                raise pytest.UsageError(f"Two tests are called {each.key}; rename one of the functions.")
            self.planned[each.key] = each

    def prepare_environment(self) -> bool:
        """Fetch and find everything that the run needs. When that fails, record it and return False.

        Raises pytest.UsageError for a request that cannot be met as it was written; then no directory is left behind.
        """
        directory = self.config.directory
        self.machine = describe_machine(self.config, self.console)
        try:
            with written_to(directory):
                directory.mkdir(parents=True, exist_ok=True)
            self.environment = prepare(self.config, self.console)
            with written_to(directory):
                self._log = RunLog(directory)
                keep_baseline(self.config)
                self._write(RunState.RUNNING)
        except UsageError as error:
            with contextlib.suppress(OSError):
                directory.rmdir()
            raise pytest.UsageError(str(error)) from None
        except OnceproofError as error:
            self.refuse(error)
            return False
        return True

    def look_at_given_cluster(self) -> bool:
        """Look at the cluster of the user and print what was found; False when it is not fit, which is printed, too.

        Raises pytest.UsageError for a cluster that cannot carry a run.
        """
        assert self.config.given is not None, "only `--bootstrap` has a cluster to look at"
        try:
            preflight(
                self.config.given,
                fetch_release(self.config.release),
                only_requests=self.config.only_requests,
                say=self.console.say,
            )
        except UsageError as error:
            raise pytest.UsageError(str(error)) from None
        except OnceproofError as error:
            self.console.say(str(error))
            return False
        return True

    def refuse(self, error: OnceproofError) -> None:
        """Record that nothing can be begun, and why."""
        self._refused = error
        self.ended = {key: Ended(key=key, seconds=0.0, error=f"not run: {error}") for key in self.planned}

    def end(self, ended: Ended) -> None:
        """Record the end of a scenario or case; any thread may do so. Raises RunDirectoryError."""
        with self._writing, written_to(self.config.directory):
            self.ended[ended.key] = ended
            self._write(RunState.RUNNING)

    def end_again(self, key: str, verdict: Verdict, reason: str) -> None:
        """Record and print the verdict of a repetition."""
        ended = self.ended[key]
        self.end(replace(ended, repeats=(*ended.repeats, verdict.name)))
        self.console.say(f"{verdict.name:14} {key}, repetition {len(ended.repeats) + 1}, alone: {reason}")

    def place(self, key: str) -> str:
        """The place of a scenario in the plan, such as `[3/28]`."""
        scenarios = [each.key for each in self.planned.values() if not each.case]
        return f"[{scenarios.index(key) + 1}/{len(scenarios)}]"

    def broken(self, *problems: str) -> None:
        """Record problems outside of any scenario or case."""
        self._problems += problems

    def finish(self, *, interrupted: bool) -> tuple[ExitCode, list[str]]:
        """Write the report in every format and close the log. Returns the exit code and the lines to print last."""
        try:
            return self._finish(interrupted=interrupted)
        finally:
            if self._log is not None:
                self._log.close()

    def _finish(self, *, interrupted: bool) -> tuple[ExitCode, list[str]]:
        # Only now, when no other thread reads them.
        for key in self.withdrawn:
            del self.planned[key]
            self.ended.pop(key, None)
        if not self.planned:
            line = "Interrupted before anything was planned: nothing was started, there is no report."
            code = ExitCode.ENVIRONMENT if interrupted or self._problems else ExitCode.INCONCLUSIVE
            return code, [line] if interrupted else []
        directory = self.config.directory
        try:
            with written_to(directory):
                directory.mkdir(parents=True, exist_ok=True)
                self._write(RunState.INTERRUPTED if interrupted else RunState.FINISHED)
                report = write_report(self.config, self.console.say)
        except RunDirectoryError as error:
            return ExitCode.ENVIRONMENT, [f"There is no report: {self._refused or error}"]
        page, code = directory / "report.html", report.judgement.exit_code
        if self._refused is not None:
            # The table of planned scenarios would hide the one sentence that matters.
            return code, [f"Nothing was started (exit code {int(code)}): {self._refused}", f"report: {page}"]
        colour = terminal.colour_wanted(self.console.out)
        return code, [*terminal.render(report, page=page, colour=colour).splitlines(), *self.last_words]

    def _write(self, state: RunState) -> None:
        config, environment = self.config, self.environment
        # To repeat the run takes the runtime that was used, not the one that would be chosen today.
        used = config if environment is None else replace(config, runtime=Runtime(environment.runtime))
        RunRecord(
            started=config.started,
            seed=config.recorded_seed,
            profile=config.recorded_profile,
            command=used.command,
            suite=self._suite,
            release=config.release.version,
            runtime=config.runtime if environment is None else environment.runtime,
            clients=tuple(sorted({each.client for each in self.planned.values() if each.client})),
            planned=tuple(self.planned.values()),
            state=state,
            narrowed_by=self.narrowed_by,
            options=self.options,
            accepted=self._acceptances,
            ended=tuple(self.ended.values()),
            problems=tuple(self._problems),
            machine=self.machine,
            downloads=() if environment is None else tuple(map(download, environment.downloads)),
            versions={} if environment is None else environment.versions,
            digests={} if environment is None else environment.digests,
            expected_s=estimated_s(self.planned.values(), config),
            duration_s=time.monotonic() - self._began,
            strict=config.strict,
        ).write(config.directory / "run.json")
