"""pytest hooks of a conformance run: options, variants, the deferred verdict, the report, the exit code.

A scenario's verdict comes from the judge, which works on its evidence while the next scenario runs. pytest's own order
(run, then report) is kept for each item, only the reporting of an item waits for its verdict. So pytest's counts tell
the truth, and nothing is shown as passed that was not judged.

Exit codes are those of `verification.vocabulary.verdict`; pytest's own are mapped: its usage error is 4 too, no tests is 2,
an internal error or an interruption is 5, unless a violation was proven before.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from _pytest.runner import runtestprotocol

from runner.config import SUITES
from runner.scenarios.planning import in_order, in_profile
from runner.scenarios.planning import variants as variants_of
from runner.scenarios.session import ConformanceSession
from runner.selection import code_of_listing, narrowed_by, only_lists
from runner.signals import StopRequests, deferred
from verification.vocabulary.verdict import ScenarioVerdict, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SESSION = pytest.StashKey[ConformanceSession]()
JUDGEMENT = pytest.StashKey[Future[ScenarioVerdict]]()

WORDS = {
    Verdict.PASS: "pass",
    Verdict.NOT_APPLICABLE: "not applicable",
    Verdict.INCONCLUSIVE: "inconclusive",
    Verdict.ERROR: "error",
    Verdict.FAIL: "violation",
}


@dataclass
class Awaiting:
    """An item that ran, and its reports, until the judge has spoken."""

    item: pytest.Item
    reports: list[pytest.TestReport] = field(default_factory=list)


class ConformancePlugin:
    """Registered when pytest is asked to run `suites`."""

    def __init__(self, session: ConformanceSession, requests: StopRequests) -> None:
        self.session = session
        self._requests = requests
        self._outside: list[pytest.Item] = []
        self._deselected = 0

    def pytest_report_header(self) -> list[str]:
        """The configuration, before anything starts."""
        return self.session.header()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run a scenario once per client and seed that the profile asks for."""
        if "variant" in metafunc.fixturenames:
            marks = {mark.name for mark in metafunc.definition.iter_markers()}
            variants = variants_of(self.session.config, marks)
            metafunc.parametrize("variant", variants, ids=[str(each) for each in variants])

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item], config: pytest.Config) -> None:
        """Keep what the profile runs; a run that is narrowed afterwards is PARTIAL."""
        kept = [item for item in items if in_profile(self.session.config, {mark.name for mark in item.iter_markers()})]
        dropped = [item for item in items if item not in kept]
        self._outside = dropped
        if dropped:
            config.hook.pytest_deselected(items=dropped)
        items[:] = in_order(kept)

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Whatever leaves scenarios of the profile out (`-k`, `-m`, `--deselect`) makes the run PARTIAL."""
        self._deselected += sum(1 for item in items if item not in self._outside)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """What is left after `-k` is what this run means to execute."""
        self.session.record.narrowed_by = narrowed_by(session.config, SUITES, self._deselected, "scenarios")
        self.session.plan(session.items)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run each item; log it when its verdict is there."""
        if only_lists(session.config, listing=self.session.listing):
            self.session.list_scenarios(session.items)
            return True
        if session.testsfailed:
            raise session.Interrupted(f"{session.testsfailed} errors while collecting scenarios")
        if session.items and not self.session.record.equip():
            return True
        waiting: deque[Awaiting] = deque()
        items = [item for item in session.items if not self.session.passes_over(item)]
        try:
            for number, item in enumerate(items):
                if self._requests.count:
                    # Whoever asked is still waiting: the exception was dropped on its way.
                    raise KeyboardInterrupt
                following = items[number + 1] if number + 1 < len(items) else None
                waiting.append(Awaiting(item))
                waiting[-1].reports = runtestprotocol(item, log=False, nextitem=following)
                self._log(waiting, wait=False)
        finally:
            self.session.judge_now()
            self._log(waiting, wait=True)
        return True

    def _log(self, waiting: deque[Awaiting], *, wait: bool) -> None:
        while waiting:
            judgement = waiting[0].item.stash.get(JUDGEMENT, None)
            if judgement is not None and not judgement.done() and not wait:
                return
            done = waiting.popleft()
            verdict = self.session.conclude(done.item, done.reports, judgement)
            for report in done.reports:
                if report.when == "call" and verdict is not None:
                    report.outcome = "passed" if verdict.verdict <= Verdict.PASS else "failed"
                    report.user_properties.append(("verdict", WORDS[verdict.verdict]))
                done.item.ihook.pytest_runtest_logreport(report=report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Count by verdict; the console already printed the line."""
        words = dict(report.user_properties).get("verdict")
        if report.when == "call" and isinstance(words, str):
            return words, "", ""
        # What the environment broke was said in a sentence by the console; a traceback would say less.
        return ("" if report.passed else "broken"), "", ""

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Iterator[None]:
        """After every fixture is torn down and before the terminal's summary: write the report, set the exit code."""
        if only_lists(session.config, listing=self.session.listing):
            yield
            session.exitstatus = code_of_listing(exitstatus)
            return
        before = exitstatus == pytest.ExitCode.INTERRUPTED or self._requests.count > 0
        with deferred(asked=int(before), again=self.session.hurry) as interrupts:
            yield
            session.exitstatus = self.session.finish(exitstatus, interrupts)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The decision, the table, the path of the report."""
        for line in self.session.closing_lines():
            terminalreporter.write_line(line)
