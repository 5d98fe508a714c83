"""The arena: everything that a fault may touch, and the topic names of this run.

Scenarios name topics such as `billing-events`; the topics of a run have unique names. Faults name roles; the cluster
and the clients of the arena have these roles.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from chaos.clients import Clients
from chaos.cluster import Cluster, DatabaseServer
from chaos.errors import InjectionError, UnresolvedTargetError
from wire.client import Client
from wire.messages import Definitions
from wire.values import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Arena:
    """A cluster, its clients, and the real topic of each of the scenario's topic names.

    `definitions` are the message definitions to read frames by. `topic_ids` are the ids of this run's topics, by which
    newer requests name them. Only faults that tamper with frames need them. `admin` asks the brokers through the witness
    listener; operations that change the cluster need it, and one target. `database` is that of a pipeline, and `peer` its
    second cluster, if it has one. `left_open` is how far outputs of a pipeline went when an instance of it was last killed:
    up to there records may wait for the decision of its transaction.
    """

    cluster: Cluster
    clients: Clients
    topics: dict[str, str] = field(default_factory=dict)
    group: str | None = None
    definitions: Definitions | None = None
    topic_ids: dict[UUID, str] = field(default_factory=dict)
    admin: Client | None = None
    database: DatabaseServer | None = None
    peer: Cluster | None = None
    left_open: dict[TopicPartition, int] = field(default_factory=dict)

    def partition(self, topic: str, partition: int) -> TopicPartition:
        """The real partition behind a scenario's topic name."""
        if topic not in self.topics:
            raise UnresolvedTargetError(f"topic {topic!r} is not part of this run, which has {sorted(self.topics)}")
        return TopicPartition(topic=self.topics[topic], partition=partition)

    def transactional_id(self, producer: int) -> str:
        """The n-th transactional id of the workload."""
        ids = self.clients.transactional_ids
        if len(ids) <= producer:
            raise UnresolvedTargetError(f"there is no transactional producer {producer}; there are {len(ids)}")
        return ids[producer]


def admin_of(arena: Arena) -> Client:
    """The client that asks the brokers through the witness listener."""
    if arena.admin is None:
        raise InjectionError("this arena has no client that asks the brokers")
    return arena.admin
