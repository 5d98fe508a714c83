"""Asks a cluster of the user for each right that a run needs, and leaves nothing there.

The names begin with the prefix of the run and do not exist. Brokers look at rights before they look for a name
(KafkaApis), so a right that is there shows as an unknown name, coordinator or member. DeleteTopics alone looks for the topic
first, so Delete is asked by DeleteRecords. CreateTopics only validates (KIP-4). FindCoordinator is not asked: it creates the
internal topics of a broker that has none. Any broker answers, because it checks rights before it looks for the coordinator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby

from runner.given.options import ANSWERS_WITHIN_S
from wire.client import Client
from wire.codes import NO_RIGHT, codes_in
from wire.errors import VersionError
from wire.records import encode
from wire.schema import Body

#: Every scenario has topics with three replicas, of which two must be in sync.
REPLICAS = 3
_TIMEOUT_MS = round(ANSWERS_WITHIN_S * 1000)
#: Later versions of Fetch (KIP-516) and Produce (KIP-516, 4.1) have ids of topics in place of names.
_LAST_BY_NAME = 12
_TOPIC = 2


@dataclass(frozen=True, slots=True)
class NeededRight:
    """An operation on a kind of resource, as `kafka-acls.sh` names them, and a request that needs it and does nothing."""

    resource: str
    operation: str
    ask: Callable[[Client, str], Body]


def asked_rights(client: Client, name: str) -> tuple[list[NeededRight], list[NeededRight]]:
    """The rights that this principal has on `name`, which nothing on the cluster has, and those that it lacks.

    A right is in neither of them if the broker does not offer the request.
    """
    found = [(right, _has(right, client, name)) for right in RIGHTS]
    return [right for right, has in found if has], [right for right, has in found if has is False]


def in_words(rights: Iterable[NeededRight]) -> str:
    """The operations by resource, for instance `Read, Write on topics; Describe on groups`."""
    return "; ".join(
        f"{', '.join(operations)} on {resource.replace('-', ' ')}s" for resource, operations in by_resource(rights)
    )


def by_resource(rights: Iterable[NeededRight]) -> Iterator[tuple[str, list[str]]]:
    """The operations on each kind of resource."""
    for resource, each in groupby(rights, key=lambda right: right.resource):
        yield resource, [right.operation for right in each]


def validate_topic(client: Client, name: str) -> Body:
    """The answer to the question whether a topic with three replicas could be created; it is not."""
    controller = client.metadata([]).controller
    topic = {"Name": name, "NumPartitions": 1, "ReplicationFactor": REPLICAS, "Configs": []}
    body = {"Topics": [topic], "TimeoutMs": _TIMEOUT_MS, "ValidateOnly": True}
    return client.call("CreateTopics", body, broker=controller if controller >= 0 else None)


def _has(right: NeededRight, client: Client, name: str) -> bool | None:
    """Whether this principal has it; None if the broker does not offer the request."""
    try:
        answer = right.ask(client, name)
    except VersionError:
        return None
    return not any(code in NO_RIGHT for _, code in codes_in(answer))


def _asked(api: str, body: Callable[[str], Body], *, at_most: int = 0x7FFF) -> Callable[[Client, str], Body]:
    """A request to any broker."""
    return lambda client, name: client.call(api, body(name), client.connection().version_for(api, at_most=at_most))


def _delete_records(name: str) -> Body:
    return {"Topics": [{"Name": name, "Partitions": [{"PartitionIndex": 0, "Offset": 0}]}], "TimeoutMs": _TIMEOUT_MS}


def _fetch(name: str) -> Body:
    """Outside of any session, so that none is left."""
    at = {"Partition": 0, "FetchOffset": 0, "PartitionMaxBytes": 1}
    body = {"MaxWaitMs": 0, "MinBytes": 0, "SessionId": 0, "SessionEpoch": -1}
    return body | {"Topics": [{"Topic": name, "Partitions": [at]}]}


def _produce(name: str) -> Body:
    data = {"Name": name, "PartitionData": [{"Index": 0, "Records": encode([(None, b"preflight")])}]}
    return {"Acks": 1, "TimeoutMs": _TIMEOUT_MS, "TopicData": [data]}


_topic, _id, _group = (
    partial(NeededRight, "topic"),
    partial(NeededRight, "transactional-id"),
    partial(NeededRight, "group"),
)
#: Read, Write and Delete each imply Describe, unless an ACL denies it.
RIGHTS = (
    _topic("Create", validate_topic),
    _topic("Delete", _asked("DeleteRecords", _delete_records)),
    _topic("Describe", _asked("Metadata", lambda name: {"Topics": [{"Name": name}], "AllowAutoTopicCreation": False})),
    _topic(
        "DescribeConfigs",
        _asked("DescribeConfigs", lambda name: {"Resources": [{"ResourceType": _TOPIC, "ResourceName": name}]}),
    ),
    _topic("Read", _asked("Fetch", _fetch, at_most=_LAST_BY_NAME)),
    _topic("Write", _asked("Produce", _produce, at_most=_LAST_BY_NAME)),
    _id("Describe", _asked("DescribeTransactions", lambda name: {"TransactionalIds": [name]})),
    _id("Write", _asked("EndTxn", lambda name: {"TransactionalId": name, "ProducerId": 0, "ProducerEpoch": 0})),
    _group("Delete", _asked("DeleteGroups", lambda name: {"GroupsNames": [name]})),
    _group("Describe", _asked("DescribeGroups", lambda name: {"Groups": [name]})),
    _group("Read", _asked("Heartbeat", lambda name: {"GroupId": name, "GenerationId": 0, "MemberId": "preflight"})),
)
