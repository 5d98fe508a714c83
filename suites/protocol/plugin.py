"""pytest hooks of a protocol sweep: cases by generation, clusters by needs, one line per case, the exit code."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from fixtures.errors import OnceproofError
from fixtures.tools import machine_report
from suites.config import RunConfig
from suites.console import Console
from suites.equipment import prepare
from suites.protocol.case import Needs
from suites.protocol.generations import Generation
from suites.protocol.sweep import ENVIRONMENT_ERRORS, Case, Sweep
from verification.script import ScriptVerdict
from verification.verdict import ExitCode, Verdict, code_of, exit_code

if TYPE_CHECKING:
    from collections.abc import Sequence


class ProtocolPlugin:
    """Registered when pytest is asked to run `suites/protocol`."""

    def __init__(self, config: RunConfig, console: Console) -> None:
        self.config = config
        self.console = console
        self.planned: set[str] = set()
        self.verdicts: dict[str, ScriptVerdict] = {}
        self.listing = False
        self._sweep: Sweep | None = None
        self._closing: list[str] = []
        self._began = time.monotonic()

    def pytest_report_header(self) -> list[str]:
        """The configuration, before anything starts."""
        facts = machine_report(self.config.release)
        return [
            f"onceproof: protocol of Kafka {self.config.release.version}, runtime {self.config.runtime}",
            f"scripts and report: {self.config.directory}",
            *(f"{fact.name}: {fact.value}" for fact in facts),
        ]

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """A case that exists in several generations is performed in each."""
        marker = metafunc.definition.get_closest_marker("generations")
        wanted = (None,) if marker is None else marker.args
        metafunc.fixturenames[:] = ["generation"]
        metafunc.parametrize("generation", wanted, ids=["any" if each is None else str(each) for each in wanted])

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Cases with equal needs follow each other; the most modest cluster comes first."""
        order = sorted(
            {_needs(each).describe(): _needs(each) for each in items}.items(), key=lambda pair: pair[1].brokers
        )
        places = {name: number for number, (name, _) in enumerate(order)}
        items.sort(key=lambda item: places[_needs(item).describe()])

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """What is left after `-k` is what this sweep means to perform."""
        self.planned = {case_of(item, self.config).key for item in session.items}
        if len(self.planned) < len(session.items):
            raise pytest.UsageError("Two protocol cases have one name; rename one of the functions.")

    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Have everything that the sweep needs, or say in one sentence what is missing."""
        if session.config.option.collectonly or self.listing:
            self._list(session.items)
            return True
        if session.testsfailed or not session.items:
            return None
        try:
            self.config.directory.mkdir(parents=True, exist_ok=True)
            equipment = prepare(self.config, self.console)
        except OnceproofError as error:
            self._closing = [f"Nothing was started (exit code {int(ExitCode.ENVIRONMENT)}): {error}"]
            return True
        self._sweep = Sweep(equipment, self.config.directory, release=self.config.release.version)
        return None

    def _list(self, items: Sequence[pytest.Item]) -> None:
        for item in items:
            case = case_of(item, self.config)
            self.console.say(f"{case.key}  ({', '.join(case.requirements)})  {case.needs.describe()}")
            self.console.say(f"    {case.claim}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool:
        """Perform the case; its verdict is pytest's outcome."""
        assert self._sweep is not None, "cases are performed once everything that they need is there"
        case = case_of(pyfuncitem, self.config)
        began = time.monotonic()
        try:
            verdict = self._sweep.perform(case)
        except ENVIRONMENT_ERRORS as error:
            verdict = ScriptVerdict(
                case=case.key, verdict=Verdict.ERROR, reason=str(error), violated=(), requirements=()
            )
        self.verdicts[case.key] = verdict
        word = verdict.verdict.name.replace("_", " ")
        self.console.say(f"{word:14} {case.key}  {time.monotonic() - began:.1f} s  {verdict.reason}")
        if verdict.verdict is Verdict.NOT_APPLICABLE:
            pytest.skip(verdict.reason)
        if verdict.verdict is not Verdict.PASS:
            pytest.fail(f"{word}: {verdict.reason}", pytrace=False)
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """End the cluster and map the exit code."""
        if self._sweep is not None:
            self._sweep.close()
        if self.listing or exitstatus == pytest.ExitCode.USAGE_ERROR:
            return
        session.exitstatus = int(self._exit_code(exitstatus))
        counts = Counter(each.verdict for each in self.verdicts.values())
        told = ", ".join(f"{count} {verdict.name.replace('_', ' ')}" for verdict, count in sorted(counts.items()))
        self._closing.append(
            f"{told or 'no case'} in {time.monotonic() - self._began:.0f} s, exit code {session.exitstatus}"
        )

    def _exit_code(self, exitstatus: int) -> ExitCode:
        """The one table's code: a case without a verdict is an error, and a sweep that decided nothing is no pass."""
        codes = [code_of(each.verdict) for each in self.verdicts.values() if each.verdict is not Verdict.NOT_APPLICABLE]
        ended_early = exitstatus in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR)
        missing = self.planned - set(self.verdicts)
        if missing and not self._closing:
            self._closing.append(f"without a verdict: {', '.join(sorted(missing))}")
        if ended_early or missing:
            codes.append(ExitCode.ENVIRONMENT)
        return exit_code(codes)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """What came of it, last."""
        for line in self._closing:
            terminalreporter.write_line(line)


def _needs(item: pytest.Item) -> Needs:
    marker = item.get_closest_marker("needs")
    found = Needs() if marker is None else marker.args[0]
    assert isinstance(found, Needs)
    return found


def case_of(item: pytest.Item, config: RunConfig) -> Case:
    """The case that a collected function is."""
    assert isinstance(item, pytest.Function)
    generation = item.callspec.params["generation"]
    assert generation is None or isinstance(generation, Generation)
    family = item.path.stem.removeprefix("test_").replace("_", "-")
    name = item.originalname.removeprefix("test_").replace("_", "-")
    marker = item.get_closest_marker("requirement")
    return Case(
        key="-".join([family, name, *([] if generation is None else [generation.lower()])]),
        claim=" ".join((item.function.__doc__ or "").split()),
        requirements=() if marker is None else marker.args,
        generation=generation,
        needs=_needs(item),
        play=item.function,
        replay=f'tox -e protocol -- --kafka {config.release.version} -k "{item.originalname}"',
    )
