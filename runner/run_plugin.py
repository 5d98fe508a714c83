"""The pytest plugin of a run: it plans scenarios and protocol cases, and reports each as soon as its verdict is known.

Experiments run in the background, several at a time. pytest's own order (run, then report) is kept for each of them, but
its turn comes when its verdict is known. So pytest counts verdicts, and shows nothing as passed that was not judged.

The exit code is that of the report; pytest's own codes are mapped. Its usage error is 4 too. An internal error or an
interruption is 5, unless a violation was proven before.
"""

from __future__ import annotations

import time
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

import pytest

from fixtures.errors import OnceproofError
from runner.config import PROTOCOL
from runner.console import Console
from runner.errors import ENVIRONMENT_ERRORS
from runner.experiments import Experiments
from runner.run_progress import RunProgress, summed_up
from runner.selection import code_of_listing, narrowed_by, only_lists
from runner.signals import DeferredSignals, StopRequests, deferred
from verification.vocabulary.verdict import ExitCode, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from runner.protocol.experiments import ProtocolExperiments
    from runner.run_record_writer import RunRecordWriter

#: Ctrl-C ends the wait for a verdict at once. This bounds the wait after one that Python dropped (`StopRequests`).
LOOK_EVERY_S, LOOK_AGAIN_S = 0.5, 0.1
#: Repetitions take no more than a quarter of the time of a run. A minute is enough for one or two scenarios of a short run.
REPEATED_WITHIN_S, REPEATED_SHARE = 60.0, 0.25
WORDS = {
    Verdict.PASS: "pass",
    Verdict.NOT_APPLICABLE: "not applicable",
    Verdict.INCONCLUSIVE: "inconclusive",
    Verdict.ERROR: "error",
    Verdict.FAIL: "violation",
}


class RunPlugin:
    """Registered when pytest is asked to run a part of `suites`."""

    def __init__(
        self, record: RunRecordWriter, requests: StopRequests, *, scenarios: Experiments, cases: ProtocolExperiments
    ) -> None:
        self.record = record
        self._requests = requests
        self._scenarios, self._cases = scenarios, cases
        self._outside: set[pytest.Item] = set()
        self._deselected = 0
        self._ends_early = False
        self._ended: SimpleQueue[pytest.Item] = SimpleQueue()
        self._closing_lines: list[str] = []
        self._verdicts: list[Verdict] = []

    @property
    def console(self) -> Console:
        """The console of the run."""
        return self.record.console

    def _kind(self, item: pytest.Item | pytest.Function) -> Experiments:
        return self._cases if PROTOCOL in item.path.parents else self._scenarios

    # -- planning ----------------------------------------------------------------------------------------------

    def pytest_report_header(self) -> list[str]:
        """The configuration, before anything starts. The machine is looked at later, when the experiments are known."""
        return self.record.config.header

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Repeat a test for everything with which it is performed: clients, seeds or transaction versions."""
        self._kind(metafunc.definition).parametrize(metafunc)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item], config: pytest.Config) -> None:
        """Keep the experiments of the profile; a run that is narrowed afterwards is PARTIAL."""
        kept = [
            *self._scenarios.chosen([item for item in items if self._kind(item) is self._scenarios]),
            *self._cases.chosen([item for item in items if self._kind(item) is self._cases]),
        ]
        self._outside = set(items) - set(kept)
        if self._outside:
            config.hook.pytest_deselected(items=[item for item in items if item in self._outside])
        items[:] = kept
        if self.record.config.upgrade is not None:
            self._select(items, config)
            # Applied to stages; pytest, which knows only names of tests, must not apply it as well.
            config.option.keyword = ""
        elif self.record.config.pipelines_asked:
            self._select(items, config)

    def _select(self, items: list[pytest.Item], config: pytest.Config) -> None:
        """Keep the stages of an upgrade, or the pipelines, that options select."""
        left_out = set(items) - set(self._scenarios.asked_for(items))
        if left_out:
            config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Count the experiments of the profile that an option (`-k`, `-m`, `--deselect`) leaves out: the run is PARTIAL."""
        self._deselected += sum(1 for item in items if item not in self._outside)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Plan the experiments that are left after `-k`."""
        whole = self.record.config.directories
        session.config.option.keyword = self.record.config.keyword
        stop_after = self.record.config.upgrade_options.stop_after
        self.record.narrowed_by = narrowed_by(session.config, whole, self._deselected, stop_after=stop_after)
        self.record.plan(self._kind(item).planned(item) for item in session.items)
        for kind, items in self._by_kind(session.items):
            kind.check(items)

    def _by_kind(self, items: Sequence[pytest.Item]) -> Iterator[tuple[Experiments, list[pytest.Item]]]:
        for kind in (self._scenarios, self._cases):
            if own := [item for item in items if self._kind(item) is kind]:
                yield kind, own

    # -- running -----------------------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Begin all experiments; report each when its verdict is there."""
        if only_lists(session.config):
            for kind, items in self._by_kind(session.items):
                for line in kind.listed(items):
                    self.console.say(line)
            self._sum_up()
            if session.config.option.dry_run and not self._looks_fit(session.items):
                session.testsfailed = 1
            return True
        if session.testsfailed:
            raise session.Interrupted(f"{session.testsfailed} errors while collecting")
        if not session.items:
            return True
        self._sum_up()
        if self.record.prepare_environment():
            self._perform(session.items)
        return True

    def _sum_up(self) -> None:
        """How much is run, how long that takes, and what a night leaves out."""
        self.console.say(summed_up(self.record.planned.values(), self.record.config))
        if self.record.left_out:
            self.console.say(f"left out: {self.record.left_out}; the report names them")

    def _looks_fit(self, items: Sequence[pytest.Item]) -> bool:
        """Look at the cluster of the user, and say what can be performed there; whether it is fit."""
        if not self.record.look_at_given_cluster():
            return False
        for kind, own in self._by_kind(items):
            try:
                for line in kind.left_out(own):
                    self.console.say(line)
            except OnceproofError as error:
                self.console.say(str(error))
                return False
        self.console.say("dry run: nothing was created")
        return True

    def _perform(self, items: Sequence[pytest.Item]) -> None:
        """Perform most items side by side, and then, when all lanes are empty, those that run alone."""
        record = self.record
        progress = RunProgress(record.planned, record.ended, record.config, self._verdicts, record.anomalies)
        alone = [item for item in items if self._kind(item).alone(item)]
        self.console.follow("run", progress.line)
        began_s = time.monotonic()
        try:
            for together in ([item for item in items if item not in alone], alone):
                self._perform_together(together)
            self._repeat(items, within_s=max(REPEATED_WITHIN_S, REPEATED_SHARE * (time.monotonic() - began_s)))
        finally:
            self.console.unfollow("run")

    def _repeat(self, items: Sequence[pytest.Item], *, within_s: float) -> None:
        """Repeat each violation that no known bug explains, alone: whether it is a race. Nothing begins after `within_s`."""
        environment, repeats = self.record.environment, self.record.config.repeats
        assert environment is not None, "the environment was prepared"
        found = [item for item in items if repeats and self._kind(item).unexplained(item)]
        until_s = time.monotonic() + within_s
        for number in range(1, repeats + 1):
            for item in found:
                if self._ends_early or time.monotonic() > until_s:
                    return
                ended: SimpleQueue[pytest.Item] = SimpleQueue()
                try:
                    self._kind(item).begin_again(item, number, environment, ended.put)
                    while ended.empty():
                        self._raise_if_stopped()
                        time.sleep(LOOK_AGAIN_S)
                except BaseException:
                    self._break_off()
                    raise
                self._kind(item).conclude_again(item)

    def _perform_together(self, items: Sequence[pytest.Item]) -> None:
        environment = self.record.environment
        assert environment is not None, "the environment was prepared"
        waiting = set(items)
        try:
            for kind, own in self._by_kind(items):
                kind.begin(own, environment, self._ended.put)
            self._requests.end_early = self._scenarios.end_early
            while waiting:
                self._raise_if_stopped()
                if self._requests.ended_early and not self._ends_early:
                    self._withdraw_rest()
                if all(self._kind(item) is self._cases for item in waiting):
                    self._cases.spread()
                with suppress(Empty):
                    item = self._ended.get(timeout=LOOK_EVERY_S)
                    waiting.discard(item)
                    self._report(item)
        finally:
            self._requests.end_early = None
            if waiting:
                self._break_off()

    def _raise_if_stopped(self) -> None:
        """Raise KeyboardInterrupt when the user asked the run to stop: the first one may have been dropped."""
        if self._requests.count:
            raise KeyboardInterrupt

    def _withdraw_rest(self) -> None:
        """The window that is watched ends normally, and no other one begins."""
        self._ends_early = True
        self.console.unfollow("run")
        self.console.say("Ending: this window becomes the last one and is judged; Ctrl-C again breaks it off")
        self._scenarios.withdraw_rest()

    def _break_off(self) -> None:
        """Interrupt everything that runs, and report the experiments that have ended by then."""
        self.console.say("Interrupted: healing faults, ending clients and brokers, judging complete evidence")
        with deferred(asked=1, again=self.hurry, requests=self._requests):
            for kind in (self._scenarios, self._cases):
                kind.stop()
            with suppress(Empty):
                while True:
                    self._report(self._ended.get_nowait())

    def _report(self, item: pytest.Item) -> None:
        """Let pytest report the verdict, if there is one.

        Its own protocol of a test also names the test in a variable of the environment, and removes that at the end. A lane
        that reads the environment meanwhile, as `requests` does for proxies, gets a KeyError: seen with containers.
        Nothing else of it is needed: an experiment has no fixtures, and what its test does is over.
        """
        if self._kind(item).withdrawn(item):
            return
        ended = pytest.CallInfo.from_call(
            lambda: item.ihook.pytest_pyfunc_call(pyfuncitem=item),
            when="call",
            reraise=(pytest.exit.Exception, KeyboardInterrupt),
        )
        report = item.ihook.pytest_runtest_makereport(item=item, call=ended)
        item.ihook.pytest_runtest_logreport(report=report)
        if report.failed and "verdict" not in dict(report.user_properties):
            # A mistake of ours. Without this, the end of the run would only count it.
            self.console.say(f"ERROR          {item.name}\n{report.longreprtext}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool:
        """Take the verdict of an experiment that has ended as the outcome of the test."""
        verdict = self._kind(pyfuncitem).conclude(pyfuncitem)
        self._verdicts.append(verdict)
        pyfuncitem.user_properties.append(("verdict", WORDS[verdict]))
        if verdict > Verdict.PASS:
            pytest.fail(WORDS[verdict], pytrace=False)
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport | pytest.CollectReport) -> tuple[str, str, str] | None:
        """Count by verdict; the console already printed the line."""
        if isinstance(report, pytest.CollectReport):
            return None  # a file that cannot be imported is pytest's to report
        words = dict(report.user_properties).get("verdict")
        if report.when == "call" and isinstance(words, str):
            return words, "", ""
        return ("" if report.passed else "broken"), "", ""

    # -- ending ------------------------------------------------------------------------------------------------

    def hurry(self) -> None:
        """The user asked again while the run is ending: do not wait for work that can be repeated."""
        for kind in (self._scenarios, self._cases):
            kind.hurry()

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Iterator[None]:
        """Close the run and write its report: after every fixture is torn down, before the terminal's summary."""
        if only_lists(session.config):
            yield
            session.exitstatus = code_of_listing(exitstatus)
            return
        before = exitstatus == pytest.ExitCode.INTERRUPTED or self._requests.count > 0
        with deferred(asked=int(before), again=self.hurry, requests=self._requests) as interrupts:
            yield
            session.exitstatus = int(self._finish(exitstatus, interrupts))

    def _finish(self, exitstatus: int, interrupts: DeferredSignals) -> ExitCode:
        for kind in (self._scenarios, self._cases):
            try:
                kind.close(interrupted=interrupts.asked > 0)
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
