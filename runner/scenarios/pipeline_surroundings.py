"""Everything that a run gives a pipeline besides its cluster, and everything of its work that is not in topics of the run.

That is a database or an endpoint (`fixtures.databases`), a second cluster, and the state that it keeps. A run without a
pipeline has nothing of it, and asks the same questions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from chaos.cluster import DatabaseServer, Position
from fixtures.clusters.runtime import RunningCluster
from fixtures.clusters.spec import ClusterSpec
from fixtures.databases.run_database import RunDatabase, open_server
from fixtures.pipelines.manifest import Pipeline
from fixtures.recording.peer_log import input_numbers, peer_log
from fixtures.recording.quiescence import Quiescence
from fixtures.workloads import PipelineWorkload, WorkloadPlan
from runner.scenarios.peer_cluster import PeerCluster
from runner.scenarios.pipeline_drain import PipelineDrain
from verification.evidence import peer_file
from verification.evidence.run_directory import RunDirectory
from verification.vocabulary.experiment import ExperimentTopic, TopicRole
from verification.vocabulary.quiescent_state import PartitionEnd, QuiescentState
from wire.values import TopicPartition

#: The effects of a run, by the name of their place.
Effects = Mapping[str, Sequence[bytes | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSurroundings:
    """What a run has for its pipeline; the default is that of a run without one. `named` begins names of the run."""

    workload: PipelineWorkload | None = None
    named: str = ""
    database: RunDatabase | None = None
    peer: PeerCluster | None = None

    @classmethod
    def open(
        cls,
        workload: WorkloadPlan,
        topics: Sequence[ExperimentTopic],
        *,
        run: str,
        named: str,
        log: Path,
        definitions: Path,
        release: str,
        launch: Callable[[ClusterSpec], RunningCluster],
    ) -> PipelineSurroundings:
        """Start what the pipeline asks for. Raises DatabaseError and the errors of `launch`, after ending everything."""
        if not isinstance(workload, PipelineWorkload):
            return cls()
        pipeline, inputs = workload.pipeline, tuple(each.name for each in topics if each.role is TopicRole.INPUT)
        database = peer = None
        with ExitStack() as undo:
            if pipeline.has_database:
                server = open_server(pipeline, run, log)
                database = undo.enter_context(
                    RunDatabase(server=server, pipeline=pipeline, tables=workload.tables(run))
                )
            if pipeline.peer:
                peer = undo.enter_context(PeerCluster.launch(launch, definitions, release=release, inputs=inputs))
            undo.pop_all()
        return cls(workload=workload, named=named, database=database, peer=peer)

    def placed(self, workload: WorkloadPlan) -> WorkloadPlan:
        """The workload, its pipeline with the addresses of its database and of its second cluster if it has them."""
        given = [each.environment for each in (self.database, self.peer) if each is not None]
        if not given or not isinstance(workload, PipelineWorkload):
            return workload
        pipeline = workload.pipeline
        environment = {name: value for each in (pipeline.environment, *given) for name, value in each.items()}
        return replace(workload, pipeline=replace(pipeline, environment=environment))

    @property
    def pipeline(self) -> Pipeline | None:
        """The pipeline, if the workload has one."""
        return None if self.workload is None else self.workload.pipeline

    @property
    def server(self) -> DatabaseServer | None:
        """The server that faults can strike."""
        return None if self.database is None else self.database.server

    @property
    def tables(self) -> tuple[ExperimentTopic, ...]:
        """The places of effects, as the evidence has them."""
        return () if self.database is None else self.database.tables

    def positions(self) -> dict[TopicPartition, Position]:
        """The ends of the effects, as a sampler has them."""
        return {} if self.database is None else self.database.positions()

    def ends(self) -> tuple[PartitionEnd, ...]:
        """The ends of the effects."""
        return () if self.database is None else self.database.ends()

    def problem(self) -> str:
        """Why the effects cannot be read now; empty if they can, and without a database."""
        return "" if self.database is None else self.database.problem()

    def drain(self, quiescence: Quiescence, group: str, topics: Sequence[ExperimentTopic]) -> PipelineDrain:
        """The work that the pipeline still has to do."""
        # A consumer group that moves to the peer leaves work behind: only connectors have to copy everything.
        connects = self.workload is not None and self.workload.position == "connect"
        return PipelineDrain(quiescence, self.database, self.peer if connects else None, group=group, topics=topics)

    def pinned(self, captures: QuiescentState, quiescence: Quiescence, clients: Path) -> tuple[QuiescentState, Effects]:
        """The state at the end with that of the pipeline, and its effects. Raises DatabaseError and WireError."""
        effects: Effects = {}
        if self.database is not None:
            ends, effects = self.database.pinned()
            captures = replace(captures, ends=(*captures.ends, *ends))
        if self.workload is not None and self.workload.pipeline.store:
            changelog = f"{self.workload.group(self.named)}-{self.workload.pipeline.store}-changelog"
            captures = replace(captures, kept_counts=quiescence.kept_counts(clients, changelog))
        return captures, effects

    def keep_peer(self, directory: RunDirectory, quiescence: Quiescence, run: str) -> None:
        """Write down the log of the second cluster, if there is one. Raises WireError."""
        if self.peer is not None and self.workload is not None:
            numbers = input_numbers(quiescence.client, quiescence.places(self.peer.inputs), run)
            timeout_s = self.workload.transaction_timeout_s
            # Read to its end first: half a file would be refused with all other evidence.
            peer_file.write(directory.peer, tuple(peer_log(self.peer.quiescence, numbers, run, timeout_s=timeout_s)))

    def close(self) -> None:
        """End the database and the second cluster."""
        with ExitStack() as last_first:
            for each in filter(None, (self.peer, self.database)):
                last_first.callback(each.close)
