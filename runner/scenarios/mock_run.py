"""Runs scenarios on librdkafka's mock cluster, which has no links, brokers, control records or coordinators to ask.

The phases of the experiment stay the same; a phase that the mock cannot take part in does nothing. The mock has no
usable log (`has_log` is false), so the delivered records are judged against the answers to producers.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NoReturn

from chaos.arena import Arena
from chaos.cluster import BrokerId, ClusterView, Link, Position, Site
from chaos.errors import InjectionError
from chaos.no_links import NoLinks
from fixtures.clients.mock_cluster import MockCluster
from fixtures.errors import EnvironmentProblemError
from fixtures.recording.recorder import Recorder
from fixtures.recording.transaction_log_reader import unavailable
from fixtures.workloads import names, topics
from fixtures.workloads.running import RunningWorkload
from runner.scenarios.scenario_run import ScenarioRun
from verification.evidence import transaction_log_file
from verification.vocabulary.experiment import Experiment, ExperimentTopic
from verification.vocabulary.quiescent_state import PartitionEnd, QuiescentState
from wire.values import TopicPartition


@dataclass(frozen=True, slots=True)
class NoBrokerAccess:
    """A subject with nothing but an address; only its clients can suffer faults."""

    brokers: tuple[BrokerId, ...] = ()
    sites: tuple[Site, ...] = ()
    links: NoLinks = field(default_factory=NoLinks)

    def crash(self, *brokers: BrokerId) -> None:
        """Refused: the subject has no broker of ours."""
        _refuse(f"touch brokers {', '.join(map(str, brokers))}")

    stop = pause = resume = start = crash

    def is_running(self, broker: BrokerId) -> bool:
        """Unknown."""
        _refuse(f"look at broker {broker}")

    def exit_status(self, broker: BrokerId) -> int | None:
        """Unknown."""
        _refuse(f"look at the end of broker {broker}")

    def install(self, node: BrokerId, release: str) -> None:
        """Refused."""
        _refuse(f"install {release} on node {node}")

    def installed(self) -> dict[BrokerId, str]:
        """Unknown."""
        _refuse("look at releases")

    def reported_release(self, node: BrokerId) -> str | None:
        """Unknown."""
        _refuse(f"look at the release of node {node}")

    def answers(self, node: BrokerId) -> bool:
        """Unknown."""
        _refuse(f"ask node {node}")

    def log_tail(self, node: BrokerId, lines_max: int = 30) -> str:
        """Unknown."""
        del lines_max
        _refuse(f"read the log of node {node}")

    def view(self) -> ClusterView:
        """Unknown."""
        _refuse("look at roles")

    def positions(self, partitions: tuple[TopicPartition, ...]) -> dict[TopicPartition, Position]:
        """Unknown."""
        _refuse(f"ask the leaders of {partitions}")

    def accepts(self, link: Link) -> bool:
        """Unknown."""
        _refuse(f"try {link}")

    def round_trip_ms(self, link: Link, *, padding_kb: int = 0) -> float:
        """Unknown."""
        _refuse(f"time {link} with {padding_kb} kB")

    def transaction_coordinator(self, transactional_id: str) -> BrokerId | None:
        """Unknown."""
        _refuse(f"look for the coordinator of {transactional_id}")

    def group_coordinator(self, group: str) -> BrokerId | None:
        """Unknown."""
        _refuse(f"look for the coordinator of {group}")

    def loading_coordinators(self, view: ClusterView) -> list[str]:
        """Unknown."""
        _refuse(f"look for the coordinators of {view}")


def _refuse(what: str) -> NoReturn:
    raise InjectionError(f"the mock cluster has no brokers or links of ours: cannot {what}")


class MockScenarioRun(ScenarioRun):
    """One scenario being run on the mock cluster."""

    mock: MockCluster | None = None

    def set_up(self) -> None:
        """Start the mock, create the topics and describe the run."""
        self.directory.root.mkdir(parents=True)
        self._recorder = Recorder(self.directory, run=self.run)
        self.mock = MockCluster.start(self.directory.root)
        self.mock.create(topic.name for topic in self.topics())
        self.write_experiment()

    def start_workload(self) -> None:
        """Start every client."""
        assert self.mock is not None
        plan = self.scenario.workload
        self._workload = self.workload = RunningWorkload.start(
            plan,
            run=self.run,
            seed=self.scenario.seed,
            bootstrap=self.mock.bootstrap,
            directory=self.directory,
            recorder=self.recorder,
            client=self.scenario.client,
        )
        self.arena = Arena(
            cluster=NoBrokerAccess(), clients=self.workload, topics=names(plan, self.run), group=plan.group(self.run)
        )

    def recover(self, *, timeout_s: float) -> None:
        """Nothing was broken."""

    def try_another_client(self, problem: EnvironmentProblemError) -> None:
        """The mock answers no other client of ours."""
        raise problem

    def settle(self, *, before_fencing: bool) -> None:
        """The mock's last stable offset is its high watermark, always."""

    def fence(self) -> None:
        """The mock does not fence."""

    def pin(self) -> None:
        """Pin the ends; there is no coordinator to ask."""
        self.captures = QuiescentState(ends=self.ends())
        self.captures.write(self.directory.captures)
        log = unavailable(self.run, "librdkafka's mock cluster has no transaction log")
        transaction_log_file.write(self.directory.transaction_log, log)
        self.experiment().write(self.directory.experiment)

    def capture_arguments(self) -> dict[str, object]:
        """The arguments for any cluster, with the mock's address."""
        assert self.mock is not None
        return {
            "bootstrap": self.mock.witness_bootstrap,
            "captures": self.captures,
            "experiment": self.experiment(),
            "definitions": [self.lane.environment.definitions],
            # The mock's control batches carry no checksum; a reader that checks it would stop at the first of them.
            "settings": {"check.crcs": "false"},
        }

    def close(self) -> None:
        """End clients, seal the evidence, then end the mock, even after an error."""
        try:
            super().close()
        finally:
            if self.mock is not None:
                self.mock.close()
                self.mock = None

    def ends(self) -> tuple[PartitionEnd, ...]:
        """The ends that a consumer receives: the wire client cannot speak with the mock."""
        assert self.mock is not None
        return self.mock.ends(self.partitions())

    def input_ends(self) -> tuple[PartitionEnd, ...]:
        """None: scenarios on the mock have no copiers."""
        return ()

    def topics(self) -> tuple[ExperimentTopic, ...]:
        """The mock has no replicas."""
        return topics(self.scenario.workload, self.run, replication=1, min_in_sync=1)

    def experiment(self) -> Experiment:
        """The description of the run, which says that there is no log."""
        library = "librdkafka mock cluster" if self.mock is None else self.mock.library
        return replace(super().experiment(), has_log=False, cluster=library, runtime="mock")
