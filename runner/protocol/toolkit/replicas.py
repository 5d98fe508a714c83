"""Places replicas and moves leaderships: ground for cases about what a replica knows, and no part of their scripts.

Everything here is asked of the controller and waited for; what does not come to pass ends the script, inconclusive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from operator import eq
from typing import Any

from runner.protocol.toolkit.context import QUORUM_SINCE, Sent, Stage
from runner.protocol.toolkit.producer import ScriptedProducer
from verification.scripts.script import Relation
from wire.codes import ErrorCode
from wire.router import check
from wire.schema import Body
from wire.values import TopicPartition

#: Copying a few records takes one fetch; the rest is for a machine under load.
MOVED_WITHIN_S = 20.0
ASKED_FOR_MS = 10_000
_PREFERRED = 0
#: Ids are spread over three partitions by their hashes.
IDS_TRIED = 20


def placed(stage: Stage, *replicas: Sequence[int], **settings: str) -> tuple[TopicPartition, ...]:
    """The partitions of a new topic, each on the brokers that are named for it; the first of them leads."""
    name = f"{stage.name}-placed-{'-'.join(str(broker) for each in replicas for broker in each)}"
    topic = {
        "Name": name,
        "NumPartitions": -1,
        "ReplicationFactor": -1,
        "Assignments": [{"PartitionIndex": i, "BrokerIds": list(each)} for i, each in enumerate(replicas)],
        "Configs": [{"Name": key.replace("_", "."), "Value": value} for key, value in settings.items()],
    }
    answer = stage.client.call(
        "CreateTopics", {"Topics": [topic], "TimeoutMs": ASKED_FOR_MS}, broker=_controller(stage)
    )
    check(answer["Topics"][0]["ErrorCode"], f"CreateTopics of {name}")
    places = tuple(TopicPartition(name, index) for index in range(len(replicas)))
    stage.client.list_offsets(places)
    stage.heard_of(name)
    return places


def _controller(stage: Stage) -> int | None:
    """Whom to ask: any broker, which passes it on, or with ZooKeeper the controller, because nobody else takes it."""
    return None if stage.since(QUORUM_SINCE) else stage.client.metadata([]).controller


def deleted(stage: Stage, topic: str) -> None:
    """Delete a topic, and wait until no broker knows it."""
    stage.client.delete_topics([topic])
    unknown = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    for broker in stage.brokers:
        code = stage.until(partial(stage.told_of, topic, broker), partial(eq, unknown), within_s=MOVED_WITHIN_S)
        stage.require(f"what broker {broker} says of {topic} after its deletion", code, unknown)


def put(stage: Stage, at: TopicPartition, *brokers: int) -> None:
    """Reassign a partition to these brokers, and wait until all of them are in sync and the others are gone."""
    partition = {"PartitionIndex": at.partition, "Replicas": list(brokers)}
    body = {"TimeoutMs": ASKED_FOR_MS, "Topics": [{"Name": at.topic, "Partitions": [partition]}]}
    answer = stage.client.call("AlterPartitionReassignments", body, broker=_controller(stage))
    check(answer["ErrorCode"], f"AlterPartitionReassignments of {at}")
    check(answer["Responses"][0]["Partitions"][0]["ErrorCode"], f"AlterPartitionReassignments of {at}")
    wanted = [sorted(brokers), sorted(brokers)]
    seen = stage.until(lambda: _replicas(stage, at), lambda each: each == wanted, within_s=MOVED_WITHIN_S)
    stage.require(f"the replicas of {at}, and those in sync", seen, wanted)


def lead(stage: Stage, at: TopicPartition, broker: int) -> None:
    """Make one of a partition's replicas its leader, and wait until it answers as such."""
    now = stage.client.metadata([at.topic]).topics[at.topic].partitions[at.partition].replicas
    put(stage, at, broker, *(each for each in now if each != broker))
    if stage.leader(at) != broker:
        elected(stage, at, broker)
    stage.client.list_offsets([at])


def elected(stage: Stage, at: TopicPartition, broker: int) -> None:
    """Have the preferred replica lead, which is `broker`, and wait until it is said to."""
    stage.client.call("ElectLeaders", _election(at), broker=_controller(stage))
    seen = stage.until(lambda: stage.leader(at), lambda each: each == broker, within_s=MOVED_WITHIN_S)
    stage.require(f"the leader of {at}", seen, broker)


def electing(stage: Stage, at: TopicPartition, *, by: int) -> Sent:
    """Ask for the preferred replica to lead, and do not wait; `by` is asked, or the controller where only that takes it."""
    asked = _controller(stage)
    line = stage.another_line(by if asked is None else asked)
    return stage.send(stage.request("ElectLeaders", _election(at), line=line), line=line)


def _election(at: TopicPartition) -> Body:
    places = [{"Topic": at.topic, "Partitions": [at.partition]}]
    return {"ElectionType": _PREFERRED, "TopicPartitions": places, "TimeoutMs": ASKED_FOR_MS}


def coordinated(stage: Stage, name: str, *, by: int) -> str:
    """A transactional id with a coordinator of one's choice, which is made one where it leads no part of the topic."""
    names = [f"{stage.name}-{name}-{number}" for number in range(IDS_TRIED)]
    if not any(stage.coordinator(each) == by for each in names):
        lead(stage, TopicPartition("__transaction_state", 0), by)
    found = [each for each in names if stage.coordinator(each) == by]
    stage.require(f"ids that broker {by} coordinates", len(found), 1, Relation.AT_LEAST)
    return found[0]


def producers(stage: Stage, at: TopicPartition) -> list[Mapping[str, Any]]:
    """All that a partition's leader remembers of its producers (2.8+), by id."""
    return list(stage.see.producers(at))


def remembered(stage: Stage, producer: ScriptedProducer, at: TopicPartition) -> bool:
    """Whether a partition's leader knows the producer (2.8+)."""
    return any(each["ProducerId"] == producer.now.id for each in producers(stage, at))


def in_sync(stage: Stage, at: TopicPartition) -> list[int]:
    """The replicas in sync."""
    return _replicas(stage, at)[1]


def _replicas(stage: Stage, at: TopicPartition) -> list[list[int]]:
    seen = stage.client.metadata([at.topic]).topics[at.topic].partitions[at.partition]
    return [sorted(seen.replicas), sorted(seen.in_sync)]
