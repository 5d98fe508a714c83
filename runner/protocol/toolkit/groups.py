"""Group members that a script plays, and offsets that it commits and fetches with single requests.

A `ClassicMember` uses the protocol of JoinGroup and SyncGroup, a `ConsumerMember` that of KIP-848. Every method is one
request and returns its answer. Ids, generations and epochs change only with an answer without an error.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.producer import ScriptedProducer
from runner.protocol.toolkit.responses import Response
from wire.codes import ErrorCode as Code
from wire.schema import Body
from wire.transaction_versions import TransactionVersion
from wire.values import TopicPartition

SESSION_MS = 30_000
#: The last version of OffsetFetch that names one group, and the first that has `RequireStable` (KIP-447).
STABLE_VERSION = 7
BY_ID_VERSION = 6


def commit(
    case: CaseContext, group: str, offsets: Mapping[TopicPartition, int], *, version: int = 7, **fields: Any
) -> Response:
    """Send a plain OffsetCommit; without member and generation it is that of an administrator."""
    body = commit_body(group, offsets) | fields
    return case.ask("OffsetCommit", body, broker=case.group_coordinator(group), version=version)


def commit_body(group: str, offsets: Mapping[TopicPartition, int]) -> Body:
    """The body of an OffsetCommit of an administrator, to send it without waiting, or elsewhere."""
    return {"GroupId": group, "Topics": _topics(offsets)}


def fetch_offsets(case: CaseContext, group: str, places: Iterable[TopicPartition], *, stable: bool) -> Response:
    """Send OffsetFetch at v7."""
    by_topic: dict[str, list[int]] = defaultdict(list)
    for at in places:
        by_topic[at.topic].append(at.partition)
    topics = [{"Name": name, "PartitionIndexes": indexes} for name, indexes in by_topic.items()]
    body = {"GroupId": group, "Topics": topics, "RequireStable": stable}
    return case.ask("OffsetFetch", body, broker=case.group_coordinator(group), version=STABLE_VERSION)


def offsets_of(answer: Response) -> dict[str, int]:
    """The committed offsets of an OffsetFetch answer by place, such as `orders-0`; -1 where there is none."""
    return {
        f"{topic['Name']}-{each['PartitionIndex']}": each["CommittedOffset"]
        for topic in answer["Topics"]
        for each in topic["Partitions"]
    }


def pends(producer: ScriptedProducer, group: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Set up: make the offsets part of the producer's open transaction."""
    case = producer.case
    joins(producer, group)
    case.set_up("the offsets are pending", partial(producer.commit_offsets, group, offsets))


def joins(producer: ScriptedProducer, group: str) -> None:
    """Set up: add the group to the producer's transaction, if the transaction version needs that."""
    if producer.case.transaction_version is TransactionVersion.TV1:
        producer.case.set_up("the group is added", partial(producer.add_offsets, group))


def commits_by_id(producer: ScriptedProducer, group: str, at: TopicPartition, offset: int, **fields: Any) -> Response:
    """Send TxnOffsetCommit v6 (4.4+, KIP-1319), which names topics by their ids; a request of TV2."""
    case = producer.case
    topic = {
        "TopicId": case.client.metadata([at.topic]).topics[at.topic].id,
        "Partitions": [{"PartitionIndex": at.partition, "CommittedOffset": offset}],
    }
    return producer.commit_offsets(group, {}, version=BY_ID_VERSION, Topics=[topic], **fields)


def has_ids(case: CaseContext) -> bool:
    """Whether the case can send a TxnOffsetCommit with topic ids: it has TV2, and the brokers offer v6."""
    connection = case.client.connection()
    highest = connection.versions[case.client.definitions.api_key("TxnOffsetCommit")][1]
    return case.transaction_version is TransactionVersion.TV2 and highest >= BY_ID_VERSION


def member_fields(
    case: CaseContext, generation: int, member: str, instance: str | None = None, *, api: str = "TxnOffsetCommit"
) -> Body:
    """The member fields of a TxnOffsetCommit or an OffsetCommit; the field of the generation has two names."""
    fields = case.client.definitions.message(f"{api}Request", 7 if api == "OffsetCommit" else 3).codec.fields
    name = next(each.name for each in fields if each.name.startswith("GenerationId"))
    return {name: generation, "MemberId": member, "GroupInstanceId": instance}


class ClassicMember:
    """A member of a classic group that subscribes to one topic."""

    def __init__(self, case: CaseContext, group: str, topic: str, *, instance: str | None = None) -> None:
        self.case, self.group, self.topic, self.instance = case, group, topic, instance
        self.id = ""
        self.generation = -1

    def join(self) -> Response:
        """Send JoinGroup. The first answer to a dynamic member is MEMBER_ID_REQUIRED with its id (KIP-394)."""
        name = self.topic.encode()
        # ConsumerProtocolSubscription v0: version, topics, user data (null).
        subscription = struct.pack(f">hih{len(name)}si", 0, 1, len(name), name, -1)
        body = {
            "GroupId": self.group,
            "SessionTimeoutMs": SESSION_MS,
            "RebalanceTimeoutMs": SESSION_MS,
            "MemberId": self.id,
            "GroupInstanceId": self.instance,
            "ProtocolType": "consumer",
            "Protocols": [{"Name": "range", "Metadata": subscription}],
        }
        answer = self.case.ask("JoinGroup", body, broker=self.case.group_coordinator(self.group))
        if answer.code in (Code.NONE, Code.MEMBER_ID_REQUIRED):
            self.id, self.generation = answer["MemberId"], answer["GenerationId"]
            member = {"MemberId": self.id, "GroupInstanceId": self.instance}
            self.case.leaving[self.id] = partial(_leave, self.case, self.group, "LeaveGroup", {"Members": [member]})
        return answer

    def sync(self) -> Response:
        """Send SyncGroup as the leader, which assigns itself no partition."""
        body = {
            "GroupId": self.group,
            "GenerationId": self.generation,
            "MemberId": self.id,
            "GroupInstanceId": self.instance,
            "ProtocolType": "consumer",
            "ProtocolName": "range",
            # ConsumerProtocolAssignment v0: version, no partitions, user data (null).
            "Assignments": [{"MemberId": self.id, "Assignment": struct.pack(">hii", 0, 0, -1)}],
        }
        return self.case.ask("SyncGroup", body, broker=self.case.group_coordinator(self.group))

    def joined(self) -> ClassicMember:
        """Set up: become a member; the group then waits for its leader's assignment (CompletingRebalance)."""
        if self.instance is None:
            # A coordinator that still loads is asked again, until the answer has the id.
            wanted = (Code.NONE, Code.MEMBER_ID_REQUIRED)
            # answer dropped: the next request is required to succeed, and needs the id of this answer
            self.case.poll_until(self.join, lambda answer: answer.code in wanted, within_s=15)
        self.case.set_up("the member has joined", self.join)
        return self

    def stable(self) -> ClassicMember:
        """Set up: become the only member of a stable group."""
        self.joined()
        self.case.set_up("the group is stable", self.sync)
        return self

    def identity(self, *, generation: int | None = None, member: str | None = None) -> Body:
        """The fields of this member in a TxnOffsetCommit."""
        return member_fields(
            self.case,
            self.generation if generation is None else generation,
            self.id if member is None else member,
            self.instance,
        )


class ConsumerMember:
    """A member of a group of the consumer protocol (KIP-848) that subscribes to one topic and revokes at once."""

    def __init__(self, case: CaseContext, group: str, topic: str) -> None:
        self.case, self.group, self.topic = case, group, topic
        self.id = str(uuid4())
        self.epoch = 0
        self.owned: tuple[tuple[UUID, tuple[int, ...]], ...] = ()

    def heartbeat(self) -> Response:
        """Send ConsumerGroupHeartbeat; the first one joins. It owns its assignment from the next heartbeat on."""
        body = {
            "GroupId": self.group,
            "MemberId": self.id,
            "MemberEpoch": self.epoch,
            "RebalanceTimeoutMs": SESSION_MS,
            "SubscribedTopicNames": [self.topic],
            "TopicPartitions": [{"TopicId": topic, "Partitions": indexes} for topic, indexes in self.owned],
        }
        answer = self.case.ask("ConsumerGroupHeartbeat", body, broker=self.case.group_coordinator(self.group))
        if answer.code == 0:
            self.epoch = answer["MemberEpoch"]
            member = {"MemberId": self.id, "MemberEpoch": -1}
            self.case.leaving[self.id] = partial(_leave, self.case, self.group, "ConsumerGroupHeartbeat", member)
            if answer["Assignment"] is not None:
                assigned = answer["Assignment"]["TopicPartitions"]
                self.owned = tuple((each["TopicId"], tuple(each["Partitions"])) for each in assigned)
        return answer

    @property
    def partitions(self) -> list[int]:
        """The partitions that the member owns."""
        return sorted(index for _, indexes in self.owned for index in indexes)


def _leave(case: CaseContext, group: str, api: str, body: Body) -> None:
    """Let a member leave, which is no part of the script: a group with members cannot be removed."""
    # answer dropped: a member that has not left is in the way of its group's removal, and that is said
    case.client.call(api, {"GroupId": group, **body}, broker=case.group_coordinator(group))


def _topics(offsets: Mapping[TopicPartition, int]) -> list[Body]:
    topics: dict[str, list[Body]] = defaultdict(list)
    for at, offset in offsets.items():
        topics[at.topic].append({"PartitionIndex": at.partition, "CommittedOffset": offset})
    return [{"Name": name, "Partitions": partitions} for name, partitions in topics.items()]
