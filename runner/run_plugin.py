"""The pytest hooks that a run of scenarios and a protocol run share: how it is stopped, ended and reported.

The exit code is that of the report; pytest's own codes are mapped. Its usage error is 4 too. An internal error or an
interruption is 5, unless a violation was proven before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from runner.errors import ENVIRONMENT_ERRORS
from runner.selection import code_of_listing, only_lists
from runner.signals import DeferredSignals, StopRequests, deferred
from verification.vocabulary.verdict import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner.run_record_writer import RunRecordWriter


class RunPlugin:
    """The part of both plugins that needs no knowledge of scenarios or cases."""

    def __init__(self, record: RunRecordWriter, requests: StopRequests) -> None:
        self.record = record
        self._requests = requests
        self._closing_lines: list[str] = []

    def raise_if_stopped(self) -> None:
        """Raise KeyboardInterrupt when the user asked the run to stop: the first one may have been dropped."""
        if self._requests.count:
            raise KeyboardInterrupt

    def close(self, *, interrupted: bool) -> None:
        """End everything that the run started."""

    def hurry(self) -> None:
        """The user asked again while the run is ending: do not wait for work that can be repeated."""

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Iterator[None]:
        """Close the run and write its report: after every fixture is torn down, before the terminal's summary."""
        if only_lists(session.config):
            yield
            session.exitstatus = code_of_listing(exitstatus)
            return
        before = exitstatus == pytest.ExitCode.INTERRUPTED or self._requests.count > 0
        with deferred(asked=int(before), again=self.hurry) as interrupts:
            yield
            session.exitstatus = int(self._finish(exitstatus, interrupts))

    def _finish(self, exitstatus: int, interrupts: DeferredSignals) -> ExitCode:
        try:
            self.close(interrupted=interrupts.asked > 0)
        except ENVIRONMENT_ERRORS as error:
            self.record.broken(f"closing down: {error}")
        if exitstatus == pytest.ExitCode.USAGE_ERROR:
            return ExitCode.USAGE
        if exitstatus == pytest.ExitCode.INTERNAL_ERROR:
            self.record.broken("the harness failed; see its traceback above")
        code, self._closing_lines = self.record.finish(interrupted=interrupts.asked > 0)
        return code

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the decision, the table and the path of the report."""
        for line in self._closing_lines:
            terminalreporter.write_line(line)
