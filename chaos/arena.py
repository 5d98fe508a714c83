"""The arena: everything a fault may touch, and the names of this run.

Scenarios speak of `billing-events`; the run's topics are unique. Faults speak of roles; the arena holds the cluster
and the clients that have them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from chaos.clients import Clients
from chaos.cluster import Cluster
from chaos.errors import UnresolvedTargetError
from wire.messages import Definitions
from wire.values import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Arena:
    """A cluster, its clients, and what the scenario's topic names mean in this run.

    `definitions` are the message definitions to read frames by, and `topic_ids` the ids of this run's real topics, by
    which newer requests name them; only faults that tamper with frames need either.
    """

    cluster: Cluster
    clients: Clients
    topics: dict[str, str] = field(default_factory=dict)
    group: str | None = None
    definitions: Definitions | None = None
    topic_ids: dict[UUID, str] = field(default_factory=dict)

    def partition(self, topic: str, partition: int) -> TopicPartition:
        """The real partition behind a scenario's topic name."""
        if topic not in self.topics:
            raise UnresolvedTargetError(f"topic {topic!r} is not part of this run, which has {sorted(self.topics)}")
        return TopicPartition(topic=self.topics[topic], partition=partition)
