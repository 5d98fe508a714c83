"""The scenarios of a run: planned by client and seed, run in lanes, judged together, and reported by verdict.

The judge works on the evidence of some scenarios while the next ones run.
"""

from __future__ import annotations

import shutil
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from fixtures.clusters.errors import ObservationError
from fixtures.clusters.locks.releases import ReleaseFiles, fetch_release
from reports.model.run_record import Ended, Planned
from runner.config import PIPELINES, RunConfig, Runtime
from runner.environment import Environment
from runner.errors import ENVIRONMENT_ERRORS
from runner.experiments import Experiments
from runner.given.look import looked_at
from runner.given.passed_windows import PassedWindows
from runner.given.window_relay import WindowNotBegunError
from runner.lanes import Lanes, Queue
from runner.resources import JUDGED_WITHIN_S, RunResources
from runner.run_record_writer import RunRecordWriter
from runner.scenarios.given_run import controller_hindrance, hindrance, strikes_controller
from runner.scenarios.night import left_out, recorded, said_of
from runner.scenarios.planning import (
    LOCAL_ONLY,
    asked_for,
    estimated,
    in_order,
    in_profile,
    inapplicable_to,
    listed,
    planned_of,
    scenario_of,
    variants,
)
from runner.scenarios.scenario import Scenario
from verification.evidence.run_directory import RunDirectory
from verification.vocabulary.verdict import ScenarioVerdict, Verdict

if TYPE_CHECKING:
    from runner.scenarios.scenario_runner import Judgement

_NOT_LOCAL = "it needs brokers that are processes of this machine (--runtime local)"


class ScenarioExperiments(Experiments):
    """The scenarios and controls of one run."""

    def __init__(self, config: RunConfig, record: RunRecordWriter) -> None:
        self.config = config
        self.record = record
        self._scenarios: dict[str, Scenario] = {}
        self._resources: RunResources | None = None
        self._lanes: Lanes[Scenario, Judgement] | None = None
        self._again: Lanes[Scenario, Judgement] | None = None
        self._counting = threading.Lock()
        self._left = 0
        self._passed = PassedWindows()

    # -- planning ----------------------------------------------------------------------------------------------

    def parametrize(self, metafunc: pytest.Metafunc) -> None:
        """Run a scenario once per client and seed that the profile asks for."""
        marks = {mark.name for mark in metafunc.definition.iter_markers()}
        found = variants(self.config, marks, pipeline=PIPELINES in metafunc.definition.path.parents)
        metafunc.fixturenames[:] = ["variant"]
        metafunc.parametrize("variant", found, ids=[str(each) for each in found])

    def chosen(self, items: Sequence[pytest.Item]) -> list[pytest.Item]:
        """The scenarios of the profile by family, controls last, without what does not fit into a night."""
        found = in_order(
            [item for item in items if in_profile(self.config, {mark.name for mark in item.iter_markers()})]
        )
        planned = {planned_of(item, self.config).key: item for item in found}
        dropped = left_out([planned_of(item, self.config) for item in found], self.config)
        self.record.left_out, self.record.options = said_of(dropped), recorded(dropped)
        return [item for key, item in planned.items() if key not in dropped]

    def planned(self, item: pytest.Item) -> Planned:
        """The entry of a scenario in `run.json`."""
        return estimated(planned_of(item, self.config), self._described(item), self.config)

    def check(self, items: Sequence[pytest.Item]) -> None:
        """Read every scenario; raises pytest.UsageError for a wrong one."""
        for item in items:
            self._described(item)
        if self.config.stays_up and len(items) > 1:
            raise pytest.UsageError(f"--keep leaves one cluster running, but {len(items)} scenarios were selected")

    def listed(self, items: Iterable[pytest.Item]) -> Iterator[str]:
        """Ids, requirements, claims and estimates."""
        outlines = self._scenarios if self.config.upgrade_options.outline else {}
        given = self._scenarios.items() if self.config.given else ()
        hindrances = {key: self._hindrance(each) for key, each in given}
        return listed([self.planned(item) for item in items], outlines, hindrances)

    def left_out(self, items: Iterable[pytest.Item]) -> Iterator[str]:
        """Scenarios that strike an active controller that is no broker. Raises ObservationError."""
        files = fetch_release(self.config.release)
        for key, scenario in ((self._key(each), self._described(each)) for each in items):
            if not self._hindrance(scenario) and (why := self._unstruck(scenario, files)):
                yield f"{key} cannot be performed: {why}"

    def asked_for(self, items: Sequence[pytest.Item]) -> list[pytest.Item]:
        """The scenarios of an upgrade that `-k` selects, by their stages or by their names."""
        return asked_for(items, self.config)

    def _described(self, item: pytest.Item) -> Scenario:
        key = self._key(item)
        if key not in self._scenarios:
            self._scenarios[key] = scenario_of(item, self.config)
        return self._scenarios[key]

    def _key(self, item: pytest.Item) -> str:
        return planned_of(item, self.config).key

    # -- running -----------------------------------------------------------------------------------------------

    def begin(
        self, items: Sequence[pytest.Item], environment: Environment, ended: Callable[[pytest.Item], None]
    ) -> None:
        """Run the scenarios in lanes, and let each verdict follow."""
        from runner.scenarios.scenario_runner import ScenarioRunner

        run = [item for item in items if not self._skips(item, environment, ended)]
        if not run:
            return
        resources = self._resources = RunResources(self.config, self.record.console, environment=environment)
        self._left = len(run)
        self._lanes = Lanes(
            [Queue(deque([self._scenarios[self._key(item)]] for item in run))],
            lambda number: ScenarioRunner(resources.lane(number + 1), self.record, resources.judge_later),
            lanes=self.config.lanes,
            helped_from=1,
        )
        for item in run:
            self._lanes.outcomes[self._key(item)].add_done_callback(partial(self._performed, item, ended))
        self._lanes.start()

    def _skips(self, item: pytest.Item, environment: Environment, ended: Callable[[pytest.Item], None]) -> bool:
        """Whether a scenario cannot be run on this runtime, or by its client; if so, that is recorded."""
        key, why = self._key(item), ""
        if environment.runtime == Runtime.GIVEN:
            # Where no broker answers now, the scenario itself says so.
            with suppress(ObservationError):
                why = self._hindrance(self._scenarios[key]) or self._unstruck(self._scenarios[key], environment.files)
        elif environment.runtime != Runtime.LOCAL and item.get_closest_marker(LOCAL_ONLY) is not None:
            why = f"not run on {environment.runtime}: {_NOT_LOCAL}"
        if reason := why or inapplicable_to(self._scenarios[key]):
            self.record.end(Ended(key=key, seconds=0.0, inapplicable=reason))
            ended(item)
        return bool(reason)

    def _hindrance(self, scenario: Scenario) -> str:
        """Why a scenario cannot be run on the cluster of the user."""
        assert self.config.given is not None, "only that cluster hinders"
        return hindrance(scenario, self.config.release.version, self.config.given.commands)

    def _unstruck(self, scenario: Scenario, files: ReleaseFiles) -> str:
        """Why a scenario cannot strike the active controller of the user's cluster, if it does that."""
        if self.config.given is None or not strikes_controller(scenario):
            return ""
        with looked_at(self.config.given, files) as cluster:
            return controller_hindrance(cluster)

    def _performed(self, item: pytest.Item, ended: Callable[[pytest.Item], None], outcome: Future[Judgement]) -> None:
        """Tell the plugin when the verdict is known. After the last scenario the judge waits for no other."""
        if not outcome.cancelled() and outcome.exception() is None:
            outcome.result().add_done_callback(lambda _: ended(item))
        else:
            ended(item)
        with self._counting:
            self._left -= 1
            last = self._left == 0
        if last and self._resources is not None:
            self._resources.judge_now()

    def conclude(self, item: pytest.Item) -> Verdict:
        """Print and return the verdict of a scenario. Raises the error of a mistake of ours."""
        key = self._key(item)
        if inapplicable := self.record.ended[key].inapplicable if key in self.record.ended else "":
            self.record.console.say(f"NOT APPLICABLE {key}: {inapplicable}")
            return Verdict.NOT_APPLICABLE
        verdict = self._verdict(key)
        if verdict is None:
            return Verdict.ERROR
        if self.config.given is not None and self.config.given.windows and verdict.verdict is Verdict.PASS:
            self._passed.add(RunDirectory(self.config.directory / "runs" / key))
        if verdict.verdict is Verdict.FAIL:
            self.record.anomalies.update({each.anomaly for each in verdict.findings})
        word = ("DETECTED" if verdict.convicted else "MISSED") if verdict.control else verdict.verdict.name
        self.record.console.say(f"{word:13} {key}  {self.record.ended[key].seconds:.0f} s  {verdict.reason}")
        return verdict.verdict

    def unexplained(self, item: pytest.Item) -> bool:
        """Whether a scenario of the subject has a finding without the name of a known bug."""
        outcome = self._lanes.outcomes.get(self._key(item)) if self._lanes else None
        if outcome is None or outcome.cancelled() or outcome.exception() is not None:
            return False
        judgement = outcome.result()
        if judgement.cancelled() or judgement.exception() is not None:
            return False
        verdict = judgement.result()
        failed = verdict.verdict is Verdict.FAIL and not verdict.control
        return failed and any(each.known_bug is None for each in verdict.findings)

    def begin_again(
        self, item: pytest.Item, number: int, environment: Environment, ended: Callable[[pytest.Item], None]
    ) -> None:
        """Run a scenario once more on a fresh cluster, and judge it at once."""
        del environment  # the resources have it
        from runner.scenarios.scenario_runner import ScenarioRunner

        resources, key = self._resources, self._key(item)
        assert resources is not None, "the scenario was run"

        def performed(outcome: Future[Judgement]) -> None:
            if outcome.cancelled() or outcome.exception() is not None:
                ended(item)
            else:
                outcome.result().add_done_callback(lambda _: ended(item))
                resources.judge_now()

        own = resources.lane(self.config.lanes + number)
        own = replace(own, config=replace(self.config, directory=self.config.directory / "repeats" / str(number)))
        self._again = Lanes(
            [Queue(deque([[self._scenarios[key]]]))],
            lambda _: ScenarioRunner(own, self.record, resources.judge_later, repeats=number),
            lanes=1,
            helped_from=1,
        )
        self._again.outcomes[key].add_done_callback(performed)
        self._again.start()

    def conclude_again(self, item: pytest.Item) -> None:
        """Record and print the verdict of the repetition."""
        assert self._again is not None, "the scenario was run again"
        key = self._key(item)
        outcome = self._again.outcomes[key]
        error = outcome.exception() or outcome.result().exception()
        if error is not None and not isinstance(error, ENVIRONMENT_ERRORS):
            raise error
        judged = None if error else outcome.result().result()
        self.record.end_again(key, judged.verdict if judged else Verdict.ERROR, judged.reason if judged else str(error))

    def _verdict(self, key: str) -> ScenarioVerdict | None:
        """The verdict of a scenario; None when it could not be run or judged, which is printed and recorded."""
        assert self._lanes is not None, "the scenario has ended"
        outcome = self._lanes.outcomes[key]
        error = outcome.exception()
        judgement = None if error is not None else outcome.result()
        if judgement is None or judgement.cancelled():
            broken = self.record.ended[key].error if key in self.record.ended else ""
            self.record.console.say(f"ERROR         {key}: {broken or 'interrupted before it ended'}")
            if error is not None and not isinstance(error, (KeyboardInterrupt, *ENVIRONMENT_ERRORS)):
                raise error
            return None
        failed = judgement.exception()
        if failed is not None:
            self.record.end(replace(self.record.ended[key], error=f"judge: {failed}"))
            self.record.console.say(f"ERROR         {key}: the judge failed: {failed}")
            return None
        return judgement.result()

    # -- ending ------------------------------------------------------------------------------------------------

    def end_early(self) -> bool:
        """Make the window that is watched the last one."""
        return self.config.given is not None and self.config.given.relay.end_early()

    def withdraw_rest(self) -> None:
        """Let no further window begin; the run is as long as it became."""
        assert self._lanes is not None, "windows were begun"
        self._lanes.cancel_rest()

    def withdrawn(self, item: pytest.Item) -> bool:
        """Whether a window was not begun; its clients may have been, and what they wrote is of no use."""
        if self._lanes is None or self.config.given is None:
            return False
        key = self._key(item)
        outcome = self._lanes.outcomes.get(key)
        if outcome is None or not (outcome.cancelled() or isinstance(outcome.exception(), WindowNotBegunError)):
            return False
        shutil.rmtree(self.config.directory / "runs" / key, ignore_errors=True)
        self.record.withdrawn.add(key)
        return True

    def stop(self) -> None:
        """Interrupt the lanes, and judge the evidence that is complete."""
        if self._lanes is None or self._resources is None:
            return
        try:
            self._close_lanes()
        except ENVIRONMENT_ERRORS as error:
            self.record.broken(f"closing down: {error}")
        self._resources.judge_now()
        ended = [each for each in self._lanes.outcomes.values() if each.done() and not each.cancelled()]
        performed = [each for each in ended if each.exception() is None]
        wait([each.result() for each in performed], timeout=JUDGED_WITHIN_S)

    def _close_lanes(self) -> None:
        with ExitStack() as ending:
            for each in filter(None, (self._lanes, self._again)):
                ending.callback(each.close)

    def hurry(self) -> None:
        """Do not wait for a judgement; clusters and clients are still ended."""
        if self._resources is not None:
            self._resources.hurry()

    def close(self, *, interrupted: bool) -> None:
        """End clusters, Spark and the judge; after a whole run also take the time to speed up the next run's start."""
        if self._resources is None:
            return
        resources, self._resources = self._resources, None
        try:
            self._close_lanes()
        finally:
            resources.close()
        if not interrupted:
            resources.keep_classes()
