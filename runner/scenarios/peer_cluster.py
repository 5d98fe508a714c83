"""The second cluster of a pipeline that spans two: one broker of the release under test.

Nothing there is judged. Whatever comes to the outputs has to come back to the cluster under test, where it is. The log of
the copies is kept, because it can show why one came back twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from fixtures.closing import Closing
from fixtures.clusters.runtime import RunningCluster
from fixtures.clusters.spec import ClusterSpec
from fixtures.recording.committed_records import committed
from fixtures.recording.quiescence import Quiescence
from fixtures.workloads.pipeline import PIPELINE
from wire.client import Client
from wire.fetch import fetch_log
from wire.values import Isolation, TopicPartition

#: The variable by which a pipeline gets its bootstrap servers.
PEER_VARIABLE = "ONCEPROOF_PEER"


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerCluster(Closing):
    """The second cluster; `inputs` are the topics of the run whose copies it has, under names that end with theirs."""

    cluster: RunningCluster
    quiescence: Quiescence
    inputs: tuple[str, ...]

    @classmethod
    def launch(
        cls,
        launch: Callable[[ClusterSpec], RunningCluster],
        definitions: Path,
        *,
        release: str,
        inputs: tuple[str, ...],
    ) -> PeerCluster:
        """Start it. Raises the errors of `launch`."""
        cluster = launch(replace(ClusterSpec.of_one_broker(release), sites=(PIPELINE,)))
        return cls(cluster=cluster, quiescence=Quiescence(cluster, definitions), inputs=inputs)

    @property
    def client(self) -> Client:
        """A client of the witness listener."""
        return self.quiescence.client

    @property
    def environment(self) -> dict[str, str]:
        """The variable of the pipeline."""
        return {PEER_VARIABLE: self.cluster.bootstrap(PIPELINE)}

    def copies(self) -> tuple[TopicPartition, ...]:
        """Every partition that has copies of inputs; none while there is no such topic. Raises WireError."""
        topics = self.client.metadata().topics
        return tuple(
            TopicPartition(name, number)
            for name, topic in sorted(topics.items())
            if name.endswith(self.inputs)
            for number in topic.partitions
        )

    def close(self) -> None:
        """End it."""
        self.quiescence.close()
        self.cluster.close()


def records_left(client: Client, places: Iterable[TopicPartition], positions: Mapping[TopicPartition, int]) -> int:
    """The committed records at and above these positions, or above the start without one. Raises WireError.

    Records are counted and not offsets, because a connector's position is behind its last record and never passes markers.
    """
    ends = client.list_offsets(tuple(places), isolation=Isolation.READ_COMMITTED)
    return sum(
        record.offset >= first
        for at, end in ends.items()
        if (first := positions.get(at, 0)) < end
        for record in committed(fetch_log(client, *at, first, end))
    )
