"""The state that the phases of a scenario share, and the answers to their questions: topics, ends, description, progress."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from chaos.arena import Arena
from fixtures.clusters.brokers.properties import UNCLEAN_ELECTION, broker_defaults
from fixtures.clusters.spec import ClusterSpec
from fixtures.errors import SamplingError
from fixtures.recording.metric_sampler import MetricSampler
from fixtures.recording.quiescence import Quiescence
from fixtures.recording.recorder import Recorder
from fixtures.recording.sampler import Sampler
from fixtures.recording.transaction_log_reader import TransactionLogReader
from fixtures.workloads import topics
from fixtures.workloads.running import RunningWorkload
from fixtures.workloads.write_budget import WriteBudget
from runner.scenarios import description
from runner.scenarios.pipeline_surroundings import Effects, PipelineSurroundings
from verification.evidence.run_directory import RunDirectory
from verification.sources.access import Access
from verification.vocabulary.experiment import Experiment, ExperimentTopic, TopicRole
from verification.vocabulary.quiescent_state import PartitionEnd, QuiescentState
from verification.vocabulary.transaction_log import Entry
from wire.values import TopicPartition

if TYPE_CHECKING:
    from fixtures.clusters.runtime import RunningCluster
    from runner.resources import ScenarioLane
    from runner.scenarios.scenario import Scenario


class DescribedRun:
    """The state of a scenario that runs. `ScenarioRun` adds the phases."""

    surroundings = PipelineSurroundings()
    _metrics: MetricSampler | None = None
    _tried = False

    def __init__(self, scenario: Scenario, lane: ScenarioLane) -> None:
        self.scenario = scenario
        self.lane = lane
        self.run = secrets.token_hex(6)
        #: The beginning of the names of topics, groups and transactional ids.
        self.named = lane.config.prefix + self.run
        self.directory = RunDirectory(lane.config.directory / "runs" / scenario.key)
        self.phase_name = "set up"
        self.fault_text = ""
        self.began = time.monotonic()
        self.captures = QuiescentState()
        self.cluster: RunningCluster
        self.workload: RunningWorkload
        self.arena: Arena
        self._recorder: Recorder | None = None
        self._sampler: Sampler | None = None
        self._unsampled: SamplingError | None = None
        self._workload: RunningWorkload | None = None
        self._quiescence: Quiescence | None = None
        self._log_reader: TransactionLogReader | None = None
        self._features: dict[str, int] = {}
        self._not_offered: tuple[str, ...] = ()
        self._undrained = False
        self._entries: tuple[Entry, ...] = ()
        self._effects: Effects = {}

    @property
    def recorder(self) -> Recorder:
        """The writer of the run's history."""
        assert self._recorder is not None, "the recorder exists once the run is set up"
        return self._recorder

    @property
    def quiescence(self) -> Quiescence:
        """Asks the subject how far it is from quiescence."""
        assert self._quiescence is not None, "the subject can be asked once the run is set up"
        return self._quiescence

    # -- the way to the cluster --------------------------------------------------------------------------------

    def access(self) -> Access | None:
        """TLS and SASL of the witness listener; a cluster of ours has none there."""
        return None

    @property
    def budget(self) -> WriteBudget | None:
        """The writes that the cluster may be burdened with; None on a cluster of ours."""
        return None

    def client_settings(self, client: str) -> Mapping[str, str]:
        """The settings with which a client library reaches the cluster, besides its bootstrap servers; ours needs none."""
        del client
        return {}

    @property
    def another_topic(self) -> str:
        """The topic of a client that is tried when the subject makes no progress."""
        return f"{self.named}-another-client"

    # -- asked by the phases -----------------------------------------------------------------------------------

    def floor(self, name: str) -> int:
        """The least number that the scenario needs; 0 when it has no such floor."""
        return next((floor.need for floor in self.scenario.floors if floor.name == name), 0)

    def ends(self) -> tuple[PartitionEnd, ...]:
        """The end of every partition now."""
        return self.quiescence.ends(self.partitions())

    def copied(self) -> int:
        """The offsets below which every transaction is decided, of the output with the fewest; rows in a database count."""
        decided = {topic.name: 0 for topic in self.topics() if topic.role is TopicRole.OUTPUT}
        for end in (*(each for each in self.ends() if each.topic in decided), *self.surroundings.ends()):
            decided[end.topic] = decided.get(end.topic, 0) + end.last_stable_offset
        return min(decided.values(), default=0)

    def input_ends(self) -> tuple[PartitionEnd, ...]:
        """The ends of the copiers' inputs now; none without copiers, or when copiers are not expected to go on."""
        inputs = {topic.name for topic in self.topics() if topic.role is TopicRole.INPUT}
        if not inputs or not self.scenario.copies_on:
            return ()
        return self.quiescence.ends(tuple(at for at in self.partitions() if at.topic in inputs))

    def input_lag(self, marks: tuple[PartitionEnd, ...]) -> int:
        """The records from the copiers' committed offsets to these ends."""
        group = self.scenario.workload.group(self.named)
        return self.quiescence.lag(group, marks) if group is not None and marks else 0

    def spec(self) -> ClusterSpec:
        """The cluster that the scenario asks for, of the release under test."""
        return replace(self.scenario.cluster(release=self.lane.config.release.version), metered=True)

    def topics(self) -> tuple[ExperimentTopic, ...]:
        """The run's topics, in the order of their indexes."""
        scenario = self.scenario
        return topics(
            scenario.workload,
            self.named,
            replication=scenario.replication,
            min_in_sync=scenario.min_in_sync,
            unclean_election=self.unclean_election(),
        )

    def unclean_election(self) -> bool | None:
        """Whether a replica that is not in sync may lead; None on a cluster whose settings are not the harness's."""
        if self.lane.config.given is not None:
            return None
        spec = self.spec()
        settings = broker_defaults(spec) | dict(spec.broker_settings) | dict(self.scenario.topic_settings)
        return settings[UNCLEAN_ELECTION] == "true"

    def partitions(self) -> tuple[TopicPartition, ...]:
        """Every partition of the run's topics."""
        return description.partitions_of(self.topics())

    def experiment(self) -> Experiment:
        """The description of the run, with the protocols that clients speak once they are known."""
        spoken = description.completed({} if self._workload is None else self._workload.spoken, self.run, self._entries)
        described = description.experiment_of(
            self.scenario,
            self.lane,
            run=self.run,
            topics=(*self.topics(), *self.surroundings.tables),
            cluster=self.spec(),
            versions=description.versions_of(spoken=spoken, features=self._features, not_offered=self._not_offered),
        )
        return replace(described, fan_out=None) if self._undrained else described

    def write_experiment(self) -> None:
        """Write the description of the run, for the judge and for people."""
        description.write(self.experiment(), self.directory)

    def tell(self, text: str) -> None:
        """Show one sentence, of the nemesis or of a phase."""
        self.fault_text = text
        self.lane.console.detail(text)

    def status(self, expected_s: float = 0.0) -> str:
        """The live line: what changes comes first, because a narrow terminal cuts the end."""
        elapsed_s = time.monotonic() - self.began
        return " │ ".join(
            each
            for each in (
                f"{elapsed_s:.0f} of {expected_s:.0f} s" if expected_s else f"{elapsed_s:.0f} s",
                "" if self._workload is None else self._workload.progress().brief,
                self.phase_name,
                self.scenario.name,
                self.fault_text,
            )
            if each
        )

    def _stuck(self) -> bool:
        return any(end.last_stable_offset < end.high_watermark for end in self.ends())
