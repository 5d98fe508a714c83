"""Runs scenarios on a cluster of the user.

The phases stay the same. Clients reach the cluster directly, unless the fault of a scenario needs links. Brokers are only
touched by commands of the user. Topics and groups of the run are removed at its end, also after an error. Their names
begin with the prefix and the run, and nothing else is touched.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from chaos.faults.brokers import CrashBroker, PauseBroker, StopBroker
from chaos.faults.clients import KillClient
from chaos.faults.compound import IsolateThenCrashLeader
from chaos.faults.frames import TamperFrames
from chaos.faults.network import IsolateBrokers
from chaos.faults.sites import CutSite, DegradeSite, LoseResponses
from chaos.faults.watching import WatchOthers
from chaos.faults.zombies import PartitionedZombie, PausedZombie
from chaos.link_targets import FromSite
from chaos.schedule import Step
from chaos.targets import Controller
from fixtures.clusters.errors import ObservationError
from fixtures.clusters.given.broker_commands import BrokerCommands
from fixtures.clusters.given.cluster import GivenCluster
from fixtures.clusters.given.observed_cluster import finalized
from fixtures.errors import EnvironmentProblemError
from fixtures.waiting import await_until
from fixtures.workloads import PipelineWorkload
from fixtures.workloads.write_budget import WriteBudget
from runner.given.cluster_watcher import ClusterLook, ClusterWatcher
from runner.given.options import GivenOptions
from runner.given.removal import remove
from runner.given.window_relay import LATE_S
from runner.scenarios.scenario_run import ScenarioRun
from runner.upgrades.path import release_lines
from verification.sources.access import Access
from wire.codes import ErrorCode
from wire.errors import BrokerError, DeadlineError, DisconnectedError, WireError

if TYPE_CHECKING:
    from runner.scenarios.scenario import Scenario

#: Faults that strike processes of the harness alone.
OF_CLIENTS = (KillClient, PausedZombie, WatchOthers)
#: Faults of the network between clients and brokers.
OF_SITES = (CutSite, DegradeSite, LoseResponses, PartitionedZombie, TamperFrames)
#: Faults of brokers, with the commands that they need.
OF_BROKERS: dict[type, tuple[str, ...]] = {
    CrashBroker: ("crash",),
    PauseBroker: ("pause",),
    StopBroker: ("stop",),
    IsolateBrokers: ("cut",),
    IsolateThenCrashLeader: ("cut", "crash"),
}


def hindrance(scenario: Scenario, release: str, commands: BrokerCommands) -> str:
    """Why a scenario cannot be run on a cluster of the user; empty if it can."""
    if scenario.mock:
        return ""
    if isinstance(scenario.workload, PipelineWorkload) and scenario.workload.pipeline.peer:
        return "it needs a second cluster"
    if settings := scenario.cluster(release=release).broker_settings:
        return f"it needs brokers with {', '.join(f'{name}={value}' for name, value in sorted(settings.items()))}"
    return next(filter(None, (_hindrance(step, commands) for step in scenario.schedule)), "")


def strikes_controller(scenario: Scenario) -> bool:
    """Whether a fault of the scenario strikes the active controller."""
    return any(isinstance(getattr(step.fault, "target", None), Controller) for step in scenario.schedule)


def controller_hindrance(cluster: GivenCluster) -> str:
    """Why commands of the user cannot strike the active controller; empty if they can. Raises ObservationError."""
    controller = cluster.view().controller
    if controller is None:
        return "this principal may not know the active controller"
    return "" if controller in cluster.brokers else f"the active controller is node {controller}, which is no broker"


def _hindrance(step: Step, commands: BrokerCommands) -> str:
    needed = OF_BROKERS.get(type(step.fault), ())
    if missing := [each for each in needed if not commands.can(each)]:
        return f"--faults has no command to {missing[0]} a broker: {step.fault.describe()}"
    between = isinstance(step.fault, TamperFrames) and not isinstance(step.fault.on, FromSite)
    if step.let_go_first or between or not (needed or isinstance(step.fault, OF_CLIENTS + OF_SITES)):
        return f"it needs links between the brokers: {step.describe()}"
    return ""


class GivenScenarioRun(ScenarioRun):
    """One scenario being run on a cluster of the user."""

    _watcher: ClusterWatcher | None = None

    def set_up(self) -> None:
        """As any run; then open links if the scenario needs them. Raises EnvironmentProblemError without a budget.

        A window of a cluster that is watched starts when the one before is nearly over.
        """
        self._links = ExitStack()
        self.require_working()
        if self._watches:
            self._options.relay.await_start(self.run)
        super().set_up()
        self._given.watch(topic.name for topic in self.topics())
        linked = any(isinstance(step.fault, OF_SITES) for step in self.scenario.schedule)
        self._links.enter_context(self._given.linked(needed=linked))

    def create_topics(self) -> None:
        """As any run; while others act, brokers may be away that replicas need, and are waited for."""
        if not self._watches:
            super().create_topics()
            return
        seen, lost = "", False

        def created() -> bool:
            nonlocal seen, lost
            try:
                alive = self._given.view().alive
                seen = f"{len(alive)} brokers"
                if len(alive) < self.scenario.replication:
                    return False
                if lost:
                    # Some may exist, of a request whose answer was lost with its broker.
                    with suppress(WireError):
                        self.quiescence.client.delete_topics([topic.name for topic in self.topics()])
                super(GivenScenarioRun, self).create_topics()
            except (ObservationError, BrokerError) as error:
                awaited = {ErrorCode.INVALID_REPLICATION_FACTOR, *([ErrorCode.TOPIC_ALREADY_EXISTS] if lost else [])}
                if isinstance(error, BrokerError) and error.error not in awaited:
                    raise
                seen = str(error)
                return False
            except (DisconnectedError, DeadlineError) as error:
                seen, lost = str(error), True
                return False
            return True

        what = f"{self.scenario.replication} brokers, on which topics can be created"
        await_until(created, what, timeout_s=LATE_S, last=lambda: seen)

    def access(self) -> Access | None:
        """TLS and SASL by the settings of the user."""
        return self._given.connection.access()

    @property
    def budget(self) -> WriteBudget:
        """One for the whole run."""
        return self._options.budget

    def require_working(self) -> None:
        """As any run; also raise EnvironmentProblemError when the budget is spent."""
        if self._workload is not None:
            super().require_working()
        if self.budget.spent:
            raise EnvironmentProblemError(
                f"The run has written the {self.budget.megabytes:g} MB that --max-mb allows.",
                hint="Allow more, or choose less with -k.",
            )

    def client_settings(self, client: str) -> Mapping[str, str]:
        """The settings of the user, by the names that the library knows."""
        return self._given.client_connection.settings(client)

    def start_workload(self) -> None:
        """As any run; while others act, each change that they make is recorded."""
        super().start_workload()
        if self._watches:
            self._watcher = ClusterWatcher(
                self._look,
                self.recorder.record,
                self.tell,
                first_step=len(self.scenario.schedule),
                names={real: name for name, real in self.arena.topics.items()},
                memory=self._options.memory,
            )
            self._links.enter_context(self._watcher)

    def status(self, expected_s: float = 0.0) -> str:
        """As any run; while others act, how the clients and the cluster fare."""
        watcher, workload, sampler = self._watcher, self._workload, self._sampler
        if watcher is None or workload is None or sampler is None:
            return super().status(expected_s)
        now_ns, done = time.monotonic_ns(), workload.progress()
        gap_ns = max(done.gap_ns, now_ns - done.last_ok_ns if done.last_ok_ns else 0)
        figures = (
            f"{time.monotonic() - self.began:.0f} s",
            f"{done.committed / (now_ns - watcher.began_ns) * 1e9:.0f} commits/s",
            f"longest gap {gap_ns / 1e9:.1f} s",
            f"LSO lag {sampler.lag}",
            watcher.summary,
            self.phase_name,
            self.scenario.name,
        )
        return " │ ".join(filter(None, figures))

    def await_turn(self) -> None:
        """A window begins when the one before is over."""
        if self._watches:
            self._options.relay.await_turn(self.run)

    def hold(self, seconds: float) -> None:
        """As any run; the user may end a watch early."""
        if self._watches:
            self._options.relay.hold(seconds)
        else:
            super().hold(seconds)

    def recover(self, *, timeout_s: float) -> None:
        """Wait until every broker is back and every replica of the run's topics is in sync.

        While others act, wait for the clients of the next window instead.
        """
        if self._watches:
            self._options.relay.pass_on(self.run)
            return
        with self.workload.eased():
            await_until(
                lambda: not self._given.problems(),
                "the recovery of your cluster",
                timeout_s=timeout_s,
                last=lambda: "; ".join(self._given.problems()),
            )

    def capture_arguments(self) -> dict[str, Any]:
        """The readers need the settings of the user, too."""
        return {**super().capture_arguments(), "settings": self._given.connection.librdkafka()}

    def clear(self) -> None:
        """Remove the topics and the group of the run, by their names; others are not even listed."""
        if self._quiescence is None:
            return
        client = self._quiescence.client
        names = [*(topic.name for topic in self.topics()), *([self.another_topic] if self._tried else [])]
        ours = {f"topic {name}": partial(client.delete_topics, [name]) for name in names}
        if group := self.scenario.workload.group(self.named):
            ours[f"group {group}"] = partial(client.delete_groups, [group])
        remove(ours, self.lane.console.detail)

    def close(self) -> None:
        """As any run; but a run that broke must not leave its topics on the cluster of the user."""
        self._options.relay.leave(self.run)
        if self._workload is not None:
            # A group is removed only when it has no member left.
            self._workload.close()
        # Before the history is sealed: it has the changes that were seen.
        self._links.close()
        self.clear()
        super().close()

    @property
    def _options(self) -> GivenOptions:
        assert self.lane.config.given is not None
        return self.lane.config.given

    @property
    def _watches(self) -> bool:
        return any(isinstance(step.fault, WatchOthers) for step in self.scenario.schedule)

    def _look(self) -> ClusterLook:
        features = self._given.features()
        return ClusterLook(view=self._given.view(), levels=finalized(features), releases=release_lines(features))

    def drain(self, *, timeout_s: float) -> None:
        """As any run; a history that is complete takes no further change."""
        super().drain(timeout_s=timeout_s)
        self._links.close()
        self._watcher = None

    @property
    def _given(self) -> GivenCluster:
        assert isinstance(self.cluster, GivenCluster)
        return self.cluster
