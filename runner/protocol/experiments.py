"""The protocol cases of a run: by transaction version, in lanes by the cluster that they need, one verdict each.

A planned case without files is an ERROR. Cases that are sensitive to time (`@alone`) run last, one after the other, when
every other lane of the run is empty.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

import pytest

from fixtures.clusters.locks.releases import fetch_release
from reports.model.run_record import Ended, Planned
from runner.config import RunConfig
from runner.environment import Environment
from runner.errors import ENVIRONMENT_ERRORS
from runner.experiments import Experiments
from runner.given.look import looked_at
from runner.lanes import Lanes, Queue
from runner.protocol.case_runner import CaseResult, CaseRunner, ProtocolCase
from runner.protocol.given_cases import hindrance, without_commands
from runner.protocol.queues import queues
from runner.protocol.shared_outages import OUTAGES
from runner.protocol.toolkit.case import Needs
from runner.run_record_writer import RunRecordWriter
from verification.evidence.run_directory import SCRIPT
from verification.known_bugs.catalogue import load as known_bugs
from verification.known_bugs.script_matching import known_as
from verification.scripts import script as scripts
from verification.vocabulary.verdict import Verdict
from wire.transaction_versions import TransactionVersion

#: A second cluster of a kind is worth its start if so many cases are left. The start costs as much processor time as ten
#: cases.
HELPED_FROM = 20
#: The seconds of one case on two cores, with its share of starting clusters.
ESTIMATED_S = 1.7
#: The same of one that runs alone: nine of them take 35 s, and their three clusters 25 s.
ALONE_S = 7.0
_STATUS = "cases"


class ProtocolExperiments(Experiments):
    """The protocol cases of one run."""

    def __init__(self, config: RunConfig, record: RunRecordWriter) -> None:
        self.config = config
        self.record = record
        self._lanes: list[Lanes[ProtocolCase, CaseResult]] = []
        self._outcomes: dict[str, Future[CaseResult]] = {}
        self._alone = False
        self._stopped = False

    # -- planning ----------------------------------------------------------------------------------------------

    def parametrize(self, metafunc: pytest.Metafunc) -> None:
        """A case with several transaction versions is performed in each."""
        marker = metafunc.definition.get_closest_marker("versions")
        wanted = (None,) if marker is None else marker.args
        metafunc.fixturenames[:] = ["transaction_version"]
        metafunc.parametrize(
            "transaction_version", wanted, ids=["any" if each is None else str(each) for each in wanted]
        )

    def chosen(self, items: Sequence[pytest.Item]) -> list[pytest.Item]:
        """The cases in the order in which they are begun; none in a smoke run."""
        if self.config.without_cases:
            return []
        found = [case for queue in queues([self._case(item) for item in items]) for case in queue.tasks]
        places = {case.key: number for number, case in enumerate(found)}
        return sorted(items, key=lambda item: (self.alone(item), places[self._case(item).key]))

    def planned(self, item: pytest.Item) -> Planned:
        """The entry of a case in `run.json`."""
        planned = planned_of(self._case(item))
        return replace(planned, alone=True, expected_s=ALONE_S) if self.alone(item) else planned

    def check(self, items: Sequence[pytest.Item]) -> None:
        """Cases are checked when they are read."""

    def listed(self, items: Iterable[pytest.Item]) -> Iterator[str]:
        """Ids, requirements, clusters and claims."""
        for item in items:
            case = self._case(item)
            yield f"{case.key}  ({', '.join(case.requirements)})  {case.needs.describe()}"
            yield f"    {case.claim}"

    def left_out(self, items: Iterable[pytest.Item]) -> Iterator[str]:
        """How many cases can be performed on the cluster of the user, and why the others cannot. Raises ObservationError.

        A case that needs a request which the cluster does not offer finds that out when it is performed.
        """
        assert self.config.given is not None, "only that cluster hinders"
        with looked_at(self.config.given, fetch_release(self.config.release)) as cluster:
            cases = map(self._case, items)
            reasons = Counter(
                hindrance(each.needs, cluster, one_broker=each.one_broker, inside=each.inside) for each in cases
            )
        yield f"protocol cases: {reasons.pop('', 0)} can be performed on this cluster"
        for reason, count in reasons.most_common():
            yield f"protocol cases: {count} cannot: {reason}"

    def _case(self, item: pytest.Item) -> ProtocolCase:
        return case_of(item, self.config)

    # -- running -----------------------------------------------------------------------------------------------

    def alone(self, item: pytest.Item) -> bool:
        """Whether a case is declared sensitive to time."""
        return item.get_closest_marker("alone") is not None

    def begin(
        self, items: Sequence[pytest.Item], environment: Environment, ended: Callable[[pytest.Item], None]
    ) -> None:
        """Perform the cases in lanes; those that run alone in a single one."""
        self._alone = any(map(self.alone, items))
        lanes = Lanes(
            queues([self._case(item) for item in items]),
            partial(self._case_runner, environment),
            lanes=1 if self._alone else self.config.case_lanes,
            helped_from=HELPED_FROM,
        )
        self._lanes.append(lanes)
        self._outcomes |= lanes.outcomes

        def performed(item: pytest.Item, _: Future[CaseResult]) -> None:
            if not self._stopped:
                ended(item)
            if all(each.done() for each in lanes.outcomes.values()):
                self.record.console.unfollow(_STATUS)

        for item in items:
            lanes.outcomes[self._case(item).key].add_done_callback(partial(performed, item))
        self.record.console.follow(_STATUS, partial(_status, lanes))
        lanes.start()

    def spread(self) -> None:
        """Scenarios have ended, so more clusters perform cases; those that run alone stay in their single lane."""
        if self._lanes and not self._alone:
            self._lanes[-1].widen(self.config.case_lanes_at_last)

    def unexplained(self, item: pytest.Item) -> bool:
        """Whether a case failed, and no known bug has its name."""
        key = self._case(item).key
        if self._outcomes[key].exception() is not None:
            return False
        outcome = self._outcomes[key].result()
        if outcome.verdict is None or outcome.verdict.verdict is not Verdict.FAIL:
            return False
        script = scripts.read(self.config.directory / "runs" / key / SCRIPT)
        return not any(each.named for each in known_as(script, outcome.verdict, known_bugs().values()))

    def begin_again(
        self, item: pytest.Item, number: int, environment: Environment, ended: Callable[[pytest.Item], None]
    ) -> None:
        """Perform a case once more on a fresh cluster."""
        case, place = self._case(item), f"repeats/{number}"
        performer = partial(self._case_runner, environment, place=place)
        lanes = Lanes([Queue(deque([[case]]))], performer, lanes=1, helped_from=1)
        self._lanes.append(lanes)
        lanes.outcomes[case.key].add_done_callback(lambda _: ended(item))
        lanes.start()

    def conclude_again(self, item: pytest.Item) -> None:
        """Record and print the verdict of the repetition."""
        key = self._case(item).key
        outcome = self._lanes[-1].outcomes[key].result()
        judged = outcome.verdict
        self.record.end_again(
            key, judged.verdict if judged else Verdict.ERROR, judged.reason if judged else outcome.broke
        )

    def _case_runner(self, environment: Environment, lane: int, *, place: str = "") -> CaseRunner:
        """The case runner of a lane, whose clusters have directories of their own; `place` has evidence of repetitions."""
        own = replace(
            without_commands(environment),
            clusters_directory=environment.clusters_directory / place / f"cases-{lane + 1}",
        )
        return CaseRunner(
            own,
            self.config.directory / place,
            release=self.config.release.version,
            prefix=self.config.prefix,
            say=self.record.console.detail,
        )

    def conclude(self, item: pytest.Item) -> Verdict:
        """Record and print the verdict of a case. Raises the error of a mistake of ours."""
        key = self._case(item).key
        outcome = self._outcomes[key].result()
        verdict, reason = Verdict.ERROR, outcome.broke
        if outcome.verdict is not None:
            verdict, reason = outcome.verdict.verdict, outcome.verdict.reason
        self.record.end(Ended(key=key, seconds=outcome.seconds, error=outcome.broke))
        word = verdict.name.replace("_", " ")
        self.record.console.say(f"{word:14} {key}  {outcome.seconds:.1f} s  {reason}")
        if outcome.before:
            self.record.console.say(f"{'':14} performed again, alone; before, with others: {outcome.before}")
        return verdict

    # -- ending ------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """End the lanes and their clusters. An interrupted case decides nothing, so it has no verdict."""
        self._stopped = True
        try:
            self.close(interrupted=True)
        except ENVIRONMENT_ERRORS as error:
            self.record.broken(f"closing down: {error}")

    def hurry(self) -> None:
        """Cases end at once."""

    def close(self, *, interrupted: bool) -> None:
        """End the lanes and their clusters."""
        del interrupted  # they end in the same way
        self.record.console.unfollow(_STATUS)
        with ExitStack() as ending:
            for each in self._lanes:
                ending.callback(each.close)


def _status(lanes: Lanes[ProtocolCase, CaseResult]) -> str:
    """The live line: how many cases have ended, and which are performed now."""
    done = sum(each.done() for each in lanes.outcomes.values())
    now = [
        keys[0] + (f" and {len(keys) - 1} with it" if len(keys) > 1 else "") for keys in list(lanes.running.values())
    ]
    return f"{done} of {len(lanes.outcomes)} cases have ended │ {', '.join(now)}"


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
    where = f" {config.given.written}" if config.given else config.own_settings.written
    return ProtocolCase(
        key="-".join([family, name, *([] if version is None else [version.lower()])]),
        claim=" ".join((item.function.__doc__ or "").split()),
        requirements=() if marker is None else marker.args,
        transaction_version=version,
        needs=_needs(item),
        shares=shares,
        time_critical=time_critical,
        inside=item.get_closest_marker("inside") is not None,
        one_broker=item.get_closest_marker("one_broker") is not None,
        play=item.function,
        replay=f'tox -e protocol -- {config.selecting}{where} -k "{item.originalname}"',
    )


def planned_of(case: ProtocolCase) -> Planned:
    """A planned case as the record of the run has it."""
    return Planned(
        key=case.key,
        scenario=case.key,
        claim=case.claim,
        requirements=case.requirements,
        expected_s=ESTIMATED_S,
        case=True,
        replay=case.replay,
    )
