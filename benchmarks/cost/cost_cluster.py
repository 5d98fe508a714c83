"""The cluster that all parts share: three brokers, topics that are deleted after use, and the ends of logs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from chaos.cluster import Site
from fixtures.clusters.runtime import RunningCluster
from fixtures.clusters.spec import ClusterSpec
from fixtures.waiting import await_until
from runner.environment import Environment
from wire.client import Client
from wire.fetch import fetch_log
from wire.messages import Definitions
from wire.values import Isolation, TopicPartition

#: Without it, a topic that was deleted stays on the disk for a minute, and rounds write some gigabytes.
TOPIC_SETTINGS = {"file.delete.delay.ms": "1000"}
REPLICAS, IN_SYNC = 3, 2
#: A marker comes milliseconds after its commit; this bounds a cluster that hangs.
QUIET_WITHIN_S = 30.0


class CostCluster:
    """A running cluster: addresses for the clients under measurement, and a wire client for questions."""

    def __init__(self, running: RunningCluster, definitions: Definitions, client: Client) -> None:
        self.running, self.bootstrap, self.client = running, running.witness_bootstrap, client
        self._definitions = definitions

    def another_client(self) -> Client:
        """A wire client with connections of its own, for another thread; the caller closes it."""
        return Client(self.bootstrap, self._definitions, client_id="cost")

    @classmethod
    @contextmanager
    def started(cls, environment: Environment) -> Iterator[CostCluster]:
        """Start it, and end it afterwards. Clients reach it without links. Raises the errors of a cluster."""
        cluster = environment.launch(ClusterSpec(release=str(environment.files.release), sites=(Site("app"),)))
        try:
            definitions = Definitions.load(*environment.witness_definitions)
            with Client(cluster.witness_bootstrap, definitions, client_id="cost") as client:
                yield cls(cluster, definitions, client)
        finally:
            cluster.close()

    @contextmanager
    def topic(self, name: str, partitions: int, replicas: int = REPLICAS) -> Iterator[str]:
        """A topic that is deleted afterwards. Raises WireError."""
        configs = TOPIC_SETTINGS | {"min.insync.replicas": str(min(replicas, IN_SYNC))}
        self.client.create_topics({name: partitions}, replication_factor=replicas, configs=configs)
        yield name
        self.client.delete_topics([name])

    def ends(self, topic: str, partitions: int, *, at_least: int = 0) -> dict[TopicPartition, int]:
        """The end of each partition once all its transactions are decided. Raises WaitTimeoutError and WireError.

        A broker answers a commit before it writes the markers. Until a partition has its marker, its last stable offset is
        below its high watermark. With acks=1 it answers before replicas have the records: all ends together are then waited
        for until they are `at_least` so much.
        """
        places = [TopicPartition(topic, each) for each in range(partitions)]
        found: dict[TopicPartition, int] = {}

        def quiet() -> bool:
            found.update(self.client.list_offsets(places))
            stable = self.client.list_offsets(places, isolation=Isolation.READ_COMMITTED) == found
            return stable and sum(found.values()) >= at_least

        await_until(
            quiet, f"the last records and markers of {topic}", timeout_s=QUIET_WITHIN_S, last=lambda: str(found)
        )
        return found

    def marker_bytes(self, at: TopicPartition, end: int) -> int:
        """The size of the marker that ends a partition, as a batch of the log; 0 where no marker is. Raises WireError."""
        last = [each for each in fetch_log(self.client, *at, end - 1, end) if each.next_offset == end]
        return sum(each.size for each in last if each.control)
