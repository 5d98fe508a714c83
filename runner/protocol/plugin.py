"""pytest hooks of a protocol run: cases by transaction version, clusters by needs, one line per case, report, exit code.

The exit code is that of the report, which is made from the files on disk. A planned case without files is an ERROR. A run
in which nothing applied is INCONCLUSIVE. A violation that was proven before an interruption stays proven.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from reports.model.run_record import Ended, Planned
from runner.config import SUITES, RunConfig
from runner.console import Console
from runner.environment import Environment
from runner.protocol.case_runner import CaseRunner, ProtocolCase
from runner.protocol.shared_outages import OUTAGES
from runner.protocol.toolkit.case import Needs
from runner.protocol.workers import WorkerPool, queues
from runner.run_plugin import RunPlugin
from runner.run_record_writer import RunRecordWriter
from runner.selection import narrowed_by, only_lists
from runner.signals import StopRequests
from verification.vocabulary.verdict import Verdict
from wire.transaction_versions import TransactionVersion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reports.model.run_record import Acceptance

PROFILE = "protocol"
_CASES = SUITES / "protocol"


class ProtocolPlugin(RunPlugin):
    """Registered when pytest is asked to run `suites/protocol`."""

    def __init__(
        self,
        config: RunConfig,
        console: Console,
        requests: StopRequests,
        acceptances: tuple[Acceptance, ...] = (),
    ) -> None:
        self.config = config
        self.console = console
        narrowed = f' -k "{config.keyword}"' if config.keyword else ""
        command = f"tox -e protocol -- --kafka {config.release.version} --runtime {config.runtime}{narrowed}"
        super().__init__(
            RunRecordWriter(config, console, acceptances, profile=PROFILE, command=command, seed=None), requests
        )
        self._deselected = 0
        self._workers: WorkerPool | None = None

    def pytest_report_header(self) -> list[str]:
        """The configuration, before anything starts."""
        return [
            f"onceproof: protocol of Kafka {self.config.release.version}, runtime {self.config.runtime}",
            f"scripts and report: {self.config.directory}",
        ]

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """A case with several transaction versions is performed in each."""
        marker = metafunc.definition.get_closest_marker("versions")
        wanted = (None,) if marker is None else marker.args
        metafunc.fixturenames[:] = ["transaction_version"]
        metafunc.parametrize(
            "transaction_version", wanted, ids=["any" if each is None else str(each) for each in wanted]
        )

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Report cases in the order in which they are begun, those of the longest queue last.

        Workers help with the longest queue until the end. If it were reported earlier, a hundred other cases would be
        reported only after it, long after they ended.
        """
        found = queues([case_of(item, self.config) for item in items])
        longest = max(found, key=lambda queue: len(queue.cases), default=None)
        found.sort(key=lambda queue: queue is longest)
        places = {case.key: number for number, case in enumerate(case for queue in found for case in queue.cases)}
        items.sort(key=lambda item: places[case_of(item, self.config).key])

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Every option that leaves cases out (`-k`, `-m`, `--deselect`) makes the run PARTIAL."""
        self._deselected += len(items)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Plan the cases that are left after `-k`."""
        cases = [case_of(item, self.config) for item in session.items]
        self.record.narrowed_by = narrowed_by(session.config, _CASES, self._deselected, "cases")
        self.record.plan(map(planned_of, cases))

    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Get everything that the run needs, or name the missing thing in one sentence."""
        if only_lists(session.config):
            self._list(session.items)
            return True
        if session.testsfailed or not session.items:
            return None
        if not self.record.prepare_environment():
            return True
        assert self.record.environment is not None, "`equip` set the environment"
        self._workers = WorkerPool(
            [case_of(item, self.config) for item in session.items], partial(self._case_runner, self.record.environment)
        )
        return None

    def _case_runner(self, environment: Environment, worker: int) -> CaseRunner:
        """The case runner of a worker, whose clusters have directories of their own."""
        own = replace(environment, clusters_directory=environment.clusters_directory / f"worker-{worker}")
        return CaseRunner(own, self.config.directory, release=self.config.release.version)

    def _list(self, items: Sequence[pytest.Item]) -> None:
        for item in items:
            case = case_of(item, self.config)
            self.console.say(f"{case.key}  ({', '.join(case.requirements)})  {case.needs.describe()}")
            self.console.say(f"    {case.claim}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool:
        """Perform the case; its verdict is pytest's outcome."""
        self.raise_if_stopped()
        assert self._workers is not None, "cases are performed after the run has everything that they need"
        case = case_of(pyfuncitem, self.config)
        outcome = self._workers.outcome(case)
        verdict, reason = Verdict.ERROR, outcome.broke
        if outcome.verdict is not None:
            verdict, reason = outcome.verdict.verdict, outcome.verdict.reason
        self.record.end(Ended(key=case.key, seconds=outcome.seconds, error=outcome.broke))
        word = verdict.name.replace("_", " ")
        self.console.say(f"{word:14} {case.key}  {outcome.seconds:.1f} s  {reason}")
        if outcome.before:
            self.console.say(f"{'':14} performed again, alone; before, with others: {outcome.before}")
        if verdict is Verdict.NOT_APPLICABLE:
            pytest.skip(reason)
        if verdict is not Verdict.PASS:
            pytest.fail(f"{word}: {reason}", pytrace=False)
        return True

    def close(self, *, interrupted: bool) -> None:
        """End the workers and their clusters."""
        del interrupted  # they end in the same way
        if self._workers is not None:
            self._workers.close()


def _needs(item: pytest.Item) -> Needs:
    marker = item.get_closest_marker("needs")
    found = Needs() if marker is None else marker.args[0]
    assert isinstance(found, Needs)
    return found


def _shares(item: pytest.Item) -> tuple[tuple[str, ...], bool]:
    """The outages that a case shares, and whether it is time-critical; raises pytest.UsageError for any other outage."""
    marker = item.get_closest_marker("shares")
    if marker is None:
        return (), False
    if not marker.args or marker.args != tuple(each for each in OUTAGES if each in marker.args):
        names = ", ".join(f'"{each}"' for each in OUTAGES)
        raise pytest.UsageError(f"{item.name}: @shares names outages out of {names}, in this order; not {marker.args}.")
    if not marker.kwargs.keys() <= {"time_critical"}:
        raise pytest.UsageError(f"{item.name}: @shares takes time_critical and no other keyword; not {marker.kwargs}.")
    return marker.args, marker.kwargs.get("time_critical", False)


def case_of(item: pytest.Item, config: RunConfig) -> ProtocolCase:
    """The case of a collected function."""
    assert isinstance(item, pytest.Function)
    version = item.callspec.params["transaction_version"]
    assert version is None or isinstance(version, TransactionVersion)
    family = item.path.stem.removeprefix("test_").replace("_", "-")
    name = item.originalname.removeprefix("test_").replace("_", "-")
    marker = item.get_closest_marker("requirement")
    shares, time_critical = _shares(item)
    return ProtocolCase(
        key="-".join([family, name, *([] if version is None else [version.lower()])]),
        claim=" ".join((item.function.__doc__ or "").split()),
        requirements=() if marker is None else marker.args,
        transaction_version=version,
        needs=_needs(item),
        shares=shares,
        time_critical=time_critical,
        play=item.function,
        replay=f'tox -e protocol -- --kafka {config.release.version} -k "{item.originalname}"',
    )


def planned_of(case: ProtocolCase) -> Planned:
    """A planned case as the record of the run has it."""
    return Planned(
        key=case.key,
        scenario=case.key,
        claim=case.claim,
        requirements=case.requirements,
        case=True,
        replay=case.replay,
    )
