"""A wire client whose controller reassigns and elects on the fake cluster, for testing operations without brokers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from chaos.cluster import GROUPS_TOPIC, BrokerId, PartitionView
from tests.support.fake_cluster import BILLING, BROKERS, FakeCluster
from tests.support.wire_definitions import definitions
from verification.vocabulary import transaction_log
from wire.client import Client
from wire.codes import ErrorCode
from wire.values import TopicPartition


class FakeController(Client):
    """Reassigns partitions, and elects the preferred replica if it lives.

    `silent` requests get an error instead of an answer, and `refusal` is the answer to a reassignment.
    """

    def __init__(self, cluster: FakeCluster, *silent: Exception, refusal: int = 0) -> None:
        super().__init__("127.0.0.1:1", definitions())
        self.cluster, self.silent, self.refusal = cluster, list(silent), refusal
        self.asked: list[str] = []
        for topic, partitions in ((transaction_log.TOPIC, 3), (GROUPS_TOPIC, 3), (BILLING.topic, 2), ("other", 1)):
            for index in range(partitions):
                cluster.placed[TopicPartition(topic, index)] = PartitionView(
                    leader=BROKERS[0], leader_epoch=0, replicas=BROKERS, in_sync=BROKERS
                )

    def call(self, api: str, body: Any, version: int | None = None, **_: Any) -> dict[str, Any]:
        """The answer of a controller, if there is one by now."""
        self.asked.append(api)
        if self.silent:
            raise self.silent.pop(0)
        return self._reassign(body, version) if api == "AlterPartitionReassignments" else self._elect(body)

    def _reassign(self, body: Mapping[str, Any], version: int | None) -> dict[str, Any]:
        assert version == 0, "a controller of 3.9 does not answer another one"
        for topic in body["Topics"]:
            for each in topic["Partitions"]:
                at = TopicPartition(topic["Name"], each["PartitionIndex"])
                replicas = tuple(map(BrokerId, each["Replicas"]))
                self.cluster.placed[at] = replace(self.cluster.placed[at], replicas=replicas)
        refused = {"ErrorCode": self.refusal, "ErrorMessage": "no" if self.refusal else None}
        return {"ErrorCode": 0, "ErrorMessage": None, "Responses": [{"Name": "a topic", "Partitions": [refused]}]}

    def _elect(self, body: Mapping[str, Any]) -> dict[str, Any]:
        assert body["ElectionType"] == 0, "only the preferred replica is elected"
        for topic in body["TopicPartitions"]:
            for index in topic["Partitions"]:
                at = TopicPartition(topic["Topic"], index)
                preferred = self.cluster.placed[at].replicas[0]
                if preferred not in self.cluster.dead and self.cluster.reacts:
                    self.cluster.placed[at] = replace(self.cluster.placed[at], leader=preferred)
        return {"ErrorCode": int(ErrorCode.NONE), "ReplicaElectionResults": []}
