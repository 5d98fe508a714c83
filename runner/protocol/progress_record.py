"""The record of a sweep, kept current: what is planned, what ended how, and the report at the end.

It is the same `run.json` as that of a run of scenarios, so a sweep that is killed still says what it had planned, and
a case that left no script is missed by name.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fixtures.errors import OnceproofError, RunDirectoryError
from reports.formats import terminal
from reports.model.run_record import Acceptance, Ended, Planned, RunRecord, RunState
from runner.config import RunConfig
from runner.report_files import download, keep_baseline, write_report, written_to
from verification.vocabulary.verdict import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runner.console import Console
    from runner.environment import Environment
    from runner.protocol.case_runner import Case

PROFILE = "protocol"


class ProgressRecord:
    """Remembers a sweep on disk; `narrowed_by` says what left cases out, empty for a whole one."""

    def __init__(self, config: RunConfig, acceptances: tuple[Acceptance, ...] = ()) -> None:
        self.config = config
        self.narrowed_by = ""
        self.machine: dict[str, str] = {}
        self.unequipped: OnceproofError | None = None
        self._acceptances = acceptances
        self._equipment: Environment | None = None
        self._planned: tuple[Planned, ...] = ()
        self._ended: list[Ended] = []
        self._problems: list[str] = []
        self._began = time.monotonic()

    @property
    def command(self) -> str:
        """The command that repeats the sweep."""
        config = self.config
        narrowed = f' -k "{config.keyword}"' if config.keyword else ""
        return f"tox -e protocol -- --kafka {config.release.version} --runtime {config.runtime}{narrowed}"

    def plan(self, cases: Iterable[Case]) -> None:
        """Remember what this sweep means to perform."""
        self._planned = tuple(
            Planned(
                key=each.key,
                scenario=each.key,
                claim=each.claim,
                requirements=each.requirements,
                case=True,
                replay=each.replay,
            )
            for each in cases
        )

    def begin(self, environment: Environment) -> None:
        """Everything is there. Raises RunDirectoryError."""
        self._equipment = environment
        with written_to(self.config.directory):
            keep_baseline(self.config)
            self._write(RunState.RUNNING)

    def refuse(self, error: OnceproofError) -> None:
        """Nothing can be begun, and why."""
        self.unequipped = error
        self._ended = [Ended(key=each.key, seconds=0.0, error=f"not run: {error}") for each in self._planned]

    def ended(self, key: str, seconds: float, error: str = "") -> None:
        """A case ended; `error` is what kept it from leaving a script. Raises RunDirectoryError."""
        self._ended.append(Ended(key=key, seconds=seconds, error=error))
        with written_to(self.config.directory):
            self._write(RunState.RUNNING)

    def broken(self, problem: str) -> None:
        """Something outside of any case went wrong."""
        self._problems.append(problem)

    def finish(self, *, interrupted: bool, console: Console) -> tuple[ExitCode, list[str]]:
        """Write the report; the exit code and what is printed last."""
        if not self._planned:
            return (ExitCode.ENVIRONMENT if interrupted or self._problems else ExitCode.INCONCLUSIVE), ["no case"]
        try:
            with written_to(self.config.directory):
                self.config.directory.mkdir(parents=True, exist_ok=True)
                self._write(RunState.INTERRUPTED if interrupted else RunState.FINISHED)
                report = write_report(self.config, console.say)
        except RunDirectoryError as error:
            return ExitCode.ENVIRONMENT, [f"There is no report: {self.unequipped or error}"]
        page, code = self.config.directory / "report.html", report.judgement.exit_code
        if self.unequipped is not None:
            return code, [f"Nothing was started (exit code {int(code)}): {self.unequipped}", f"report: {page}"]
        return code, terminal.render(report, page=page, colour=terminal.colour_wanted(console.out)).splitlines()

    def _write(self, state: RunState) -> None:
        config, equipped = self.config, self._equipment
        RunRecord(
            started=config.started,
            seed=None,
            profile=PROFILE,
            command=self.command,
            release=config.release.version,
            runtime=config.runtime if equipped is None else equipped.runtime,
            clients=(),
            planned=self._planned,
            state=state,
            narrowed_by=self.narrowed_by,
            accepted=self._acceptances,
            ended=tuple(self._ended),
            problems=tuple(self._problems),
            machine=self.machine,
            downloads=() if equipped is None else tuple(map(download, equipped.downloads)),
            versions={} if equipped is None else equipped.versions,
            digests={} if equipped is None else equipped.digests,
            duration_s=time.monotonic() - self._began,
        ).write(config.directory / "run.json")
