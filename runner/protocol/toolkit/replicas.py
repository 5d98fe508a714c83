"""Places replicas and moves leaderships: preconditions of cases about replicas, and no part of their scripts.

Every function asks the controller and waits for the effect. If that does not come, the script ends, INCONCLUSIVE.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from operator import eq
from typing import Any

from runner.protocol.toolkit.context import QUORUM_SINCE, CaseContext, Sent
from runner.protocol.toolkit.producer import ScriptedProducer
from verification.scripts.script import Relation
from wire.codes import ErrorCode
from wire.deadline import Deadline
from wire.router import check
from wire.schema import Body
from wire.values import TopicPartition

#: Copying a few records takes one fetch; the rest is for a machine under load.
MOVED_WITHIN_S = 20.0
ASKED_FOR_MS = 10_000
_PREFERRED = 0
#: Ids are spread over three partitions by their hashes.
IDS_TRIED = 20


def placed(case: CaseContext, *replicas: Sequence[int], **settings: str) -> tuple[TopicPartition, ...]:
    """Create a topic whose partitions are on the named brokers; the first broker of each leads."""
    name = f"{case.name}-placed-{'-'.join(str(broker) for each in replicas for broker in each)}"
    topic = {
        "Name": name,
        "NumPartitions": -1,
        "ReplicationFactor": -1,
        "Assignments": [{"PartitionIndex": i, "BrokerIds": list(each)} for i, each in enumerate(replicas)],
        "Configs": [{"Name": key.replace("_", "."), "Value": value} for key, value in settings.items()],
    }
    answer = case.client.call("CreateTopics", {"Topics": [topic], "TimeoutMs": ASKED_FOR_MS}, broker=_controller(case))
    check(answer["Topics"][0]["ErrorCode"], f"CreateTopics of {name}")
    places = tuple(TopicPartition(name, index) for index in range(len(replicas)))
    case.client.list_offsets(places)
    case.await_topic(name)
    case.note_topic(name)
    return places


def _controller(case: CaseContext) -> int | None:
    """The broker to ask: None is any, which forwards the request; with ZooKeeper only the controller accepts it."""
    return None if case.since(QUORUM_SINCE) else case.client.metadata([]).controller


def deleted(case: CaseContext, topic: str) -> None:
    """Delete a topic, and wait until no broker knows it."""
    case.client.delete_topics([topic])
    unknown = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    for broker in case.brokers:
        code = case.poll_until(partial(case.topic_code, topic, broker), partial(eq, unknown), within_s=MOVED_WITHIN_S)
        case.require(f"the answer of broker {broker} about {topic} after its deletion", code, unknown)


def put(case: CaseContext, at: TopicPartition, *brokers: int) -> None:
    """Reassign a partition to these brokers, and wait until all of them are in sync and the others are gone."""
    partition = {"PartitionIndex": at.partition, "Replicas": list(brokers)}
    body = {"TimeoutMs": ASKED_FOR_MS, "Topics": [{"Name": at.topic, "Partitions": [partition]}]}

    def ask(attempt: Deadline) -> None:
        answer = case.client.call("AlterPartitionReassignments", body, broker=_controller(case), deadline=attempt)
        check(answer["ErrorCode"], f"AlterPartitionReassignments of {at}")
        check(answer["Responses"][0]["Partitions"][0]["ErrorCode"], f"AlterPartitionReassignments of {at}")

    # To name the same replicas again changes nothing. On a busy machine controllers change, and none answers meanwhile.
    case.client.until(f"the reassignment of {at}", ask)
    wanted = [sorted(brokers), sorted(brokers)]
    seen = case.poll_until(lambda: _replicas(case, at), lambda each: each == wanted, within_s=MOVED_WITHIN_S)
    case.require(f"the replicas of {at}, and those in sync", seen, wanted)
    case.note_topic(at.topic)


def lead(case: CaseContext, at: TopicPartition, broker: int) -> None:
    """Make one of a partition's replicas its leader, and wait until it answers as the leader."""
    now = case.client.metadata([at.topic]).topics[at.topic].partitions[at.partition].replicas
    put(case, at, broker, *(each for each in now if each != broker))
    if case.leader(at) != broker:
        elected(case, at, broker)
    case.client.list_offsets([at])


def elected(case: CaseContext, at: TopicPartition, broker: int) -> None:
    """Elect the preferred replica, which is `broker`, and wait until Metadata names it as the leader."""

    def ask(attempt: Deadline) -> None:
        # answer dropped: an election that was not needed is an error, too; the leader is required below
        case.client.call("ElectLeaders", _election(at), broker=_controller(case), deadline=attempt)

    case.client.until(f"the election of {at}", ask)
    seen = case.poll_until(lambda: case.leader(at), lambda each: each == broker, within_s=MOVED_WITHIN_S)
    case.require(f"the leader of {at}", seen, broker)


def electing(case: CaseContext, at: TopicPartition, *, by: int) -> Sent:
    """Ask `by` to elect the preferred replica, without waiting; asks the controller if only that accepts it."""
    asked = _controller(case)
    connection = case.open_connection(by if asked is None else asked)
    return case.send(case.request("ElectLeaders", _election(at), connection=connection), connection=connection)


def _election(at: TopicPartition) -> Body:
    places = [{"Topic": at.topic, "Partitions": [at.partition]}]
    return {"ElectionType": _PREFERRED, "TopicPartitions": places, "TimeoutMs": ASKED_FOR_MS}


def coordinated(case: CaseContext, name: str, *, by: int) -> str:
    """A transactional id that broker `by` coordinates; it is first made the leader of a partition of the log if needed."""
    names = [f"{case.name}-{name}-{number}" for number in range(IDS_TRIED)]
    if not any(case.coordinator(each) == by for each in names):
        lead(case, TopicPartition("__transaction_state", 0), by)
    found = [each for each in names if case.coordinator(each) == by]
    case.require(f"ids that broker {by} coordinates", len(found), 1, Relation.AT_LEAST)
    return found[0]


def producers(case: CaseContext, at: TopicPartition) -> list[Mapping[str, Any]]:
    """The producers that a partition's leader remembers, with their state, by id (2.8+)."""
    return list(case.inspect.producers(at))


def remembered(case: CaseContext, producer: ScriptedProducer, at: TopicPartition) -> bool:
    """Whether a partition's leader knows the producer (2.8+)."""
    return any(each["ProducerId"] == producer.now.id for each in producers(case, at))


def in_sync(case: CaseContext, at: TopicPartition) -> list[int]:
    """The replicas in sync."""
    return _replicas(case, at)[1]


def _replicas(case: CaseContext, at: TopicPartition) -> list[list[int]]:
    seen = case.client.metadata([at.topic]).topics[at.topic].partitions[at.partition]
    return [sorted(seen.replicas), sorted(seen.in_sync)]
