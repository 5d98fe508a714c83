"""Keeps `run.json` current, and closes a run: the same for scenarios and for protocol cases.

A run that is killed still says what it had planned, and whatever left no evidence is missed by name. What the run needs
is looked for once, before its first scenario or case; when something is missing that is said once, and none is begun.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

import pytest

from fixtures.errors import OnceproofError, RunDirectoryError, UsageError
from reports.formats import terminal
from reports.model.run_record import Acceptance, Ended, Planned, RunRecord, RunState
from runner.environment import Environment, describe_machine, prepare
from runner.report_files import download, keep_baseline, write_report, written_to
from runner.run_log import RunLog
from verification.vocabulary.verdict import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runner.config import RunConfig
    from runner.console import Console


class RunRecordWriter:
    """The record of one run, on disk after each change.

    `profile`, `command` and `seed` are those of the run's report; `narrowed_by` says what left scenarios or cases out, and
    is empty for a whole run.
    """

    def __init__(
        self,
        config: RunConfig,
        console: Console,
        acceptances: tuple[Acceptance, ...],
        *,
        profile: str,
        command: str,
        seed: int | None,
    ) -> None:
        self.config = config
        self.console = console
        self.narrowed_by = ""
        self.machine: dict[str, str] = {}
        self.environment: Environment | None = None
        self.planned: dict[str, Planned] = {}
        self.ended: dict[str, Ended] = {}
        self._acceptances = acceptances
        self._profile, self._command, self._seed = profile, command, seed
        self._unequipped: OnceproofError | None = None
        self._problems: list[str] = []
        self._log: RunLog | None = None
        self._began = time.monotonic()

    def plan(self, planned: Iterable[Planned]) -> None:
        """Remember what this run means to execute; raises pytest.UsageError when two have one name."""
        for each in planned:
            if each.key in self.planned:
                raise pytest.UsageError(f"Two tests are called {each.key}; rename one of the functions.")
            self.planned[each.key] = each

    def equip(self) -> bool:
        """Have everything that the run needs before it begins; False when it cannot be had, which is then recorded.

        Raises pytest.UsageError for a request that cannot be met as it was written, which leaves no directory behind.
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

    def refuse(self, error: OnceproofError) -> None:
        """Nothing can be begun, and why."""
        self._unequipped = error
        self.ended = {key: Ended(key=key, seconds=0.0, error=f"not run: {error}") for key in self.planned}

    def end(self, ended: Ended) -> None:
        """A scenario or case has ended. Raises RunDirectoryError."""
        self.ended[ended.key] = ended
        with written_to(self.config.directory):
            self._write(RunState.RUNNING)

    def broken(self, *problems: str) -> None:
        """Something outside of any scenario or case went wrong."""
        self._problems += problems

    def finish(self, *, interrupted: bool) -> tuple[ExitCode, list[str]]:
        """Write the report in every format and close the log; the exit code, and the lines to print last."""
        try:
            return self._finish(interrupted=interrupted)
        finally:
            if self._log is not None:
                self._log.close()

    def _finish(self, *, interrupted: bool) -> tuple[ExitCode, list[str]]:
        if not self.planned:
            said = "Interrupted before anything was planned: nothing was started, there is no report."
            code = ExitCode.ENVIRONMENT if interrupted or self._problems else ExitCode.INCONCLUSIVE
            return code, [said] if interrupted else []
        directory = self.config.directory
        try:
            with written_to(directory):
                directory.mkdir(parents=True, exist_ok=True)
                self._write(RunState.INTERRUPTED if interrupted else RunState.FINISHED)
                report = write_report(self.config, self.console.say)
        except RunDirectoryError as error:
            return ExitCode.ENVIRONMENT, [f"There is no report: {self._unequipped or error}"]
        page, code = directory / "report.html", report.judgement.exit_code
        if self._unequipped is not None:
            # The table of what was planned would bury the one sentence that matters.
            return code, [f"Nothing was started (exit code {int(code)}): {self._unequipped}", f"report: {page}"]
        colour = terminal.colour_wanted(self.console.out)
        return code, terminal.render(report, page=page, colour=colour).splitlines()

    def _write(self, state: RunState) -> None:
        config, equipped = self.config, self.environment
        RunRecord(
            started=config.started,
            seed=self._seed,
            profile=self._profile,
            command=self._command,
            release=config.release.version,
            runtime=config.runtime if equipped is None else equipped.runtime,
            clients=tuple(sorted({each.client for each in self.planned.values() if each.client})),
            planned=tuple(self.planned.values()),
            state=state,
            narrowed_by=self.narrowed_by,
            accepted=self._acceptances,
            ended=tuple(self.ended.values()),
            problems=tuple(self._problems),
            machine=self.machine,
            downloads=() if equipped is None else tuple(map(download, equipped.downloads)),
            versions={} if equipped is None else equipped.versions,
            digests={} if equipped is None else equipped.digests,
            expected_s=sum(each.expected_s for each in self.planned.values()),
            duration_s=time.monotonic() - self._began,
        ).write(config.directory / "run.json")
