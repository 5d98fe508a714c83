"""pytest hooks of a conformance run: variants of scenarios, their order, and the deferred verdict.

The judge works on the evidence of one scenario while the next one runs. For each item pytest's own order (run, then
report) is kept; only the report of an item waits for its verdict. So pytest counts verdicts, and shows nothing as
passed that was not judged.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from _pytest.runner import runtestprotocol

from runner.config import SUITES
from runner.run_plugin import RunPlugin
from runner.scenarios.planning import in_order, in_profile, summed_up
from runner.scenarios.planning import variants as variants_of
from runner.scenarios.session import ConformanceSession
from runner.selection import narrowed_by, only_lists
from runner.signals import StopRequests
from verification.vocabulary.verdict import ScenarioVerdict, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    """An item that ran, and its reports, until its verdict is there."""

    item: pytest.Item
    reports: list[pytest.TestReport] = field(default_factory=list)


class ConformancePlugin(RunPlugin):
    """Registered when pytest is asked to run `suites`."""

    def __init__(self, session: ConformanceSession, requests: StopRequests) -> None:
        super().__init__(session.record, requests)
        self.session = session
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
        """Keep the scenarios of the profile; a run that is narrowed afterwards is PARTIAL."""
        kept = [item for item in items if in_profile(self.session.config, {mark.name for mark in item.iter_markers()})]
        dropped = [item for item in items if item not in kept]
        self._outside = dropped
        if dropped:
            config.hook.pytest_deselected(items=dropped)
        items[:] = in_order(kept)

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Count the scenarios of the profile that an option (`-k`, `-m`, `--deselect`) leaves out: the run is PARTIAL."""
        self._deselected += sum(1 for item in items if item not in self._outside)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Plan the scenarios that are left after `-k`."""
        self.record.narrowed_by = narrowed_by(session.config, SUITES, self._deselected, "scenarios")
        self.session.plan(session.items)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run each item; report it when its verdict is there."""
        if only_lists(session.config):
            self.session.list_scenarios(session.items)
            return True
        if session.testsfailed:
            raise session.Interrupted(f"{session.testsfailed} errors while collecting scenarios")
        if session.items:
            self.session.console.say(summed_up(self.record.planned.values()))
        if session.items and not self.record.prepare_environment():
            return True
        waiting: deque[Awaiting] = deque()
        items = [item for item in session.items if not self.session.skips(item)]
        try:
            for number, item in enumerate(items):
                self.raise_if_stopped()
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
        # The console printed one sentence about a problem of the environment; a traceback would say less.
        return ("" if report.passed else "broken"), "", ""

    def close(self, *, interrupted: bool) -> None:
        """End clusters, Spark and the judge."""
        self.session.finish(interrupted=interrupted)

    def hurry(self) -> None:
        """Do not wait for a judgement: its evidence is kept and can be judged again."""
        self.session.hurry()
