"""Asks for the replicas and settings of a topic, which say how much a case on it proves."""

from __future__ import annotations

from functools import partial
from operator import ne

from verification.scripts.script import TopicUsed
from wire.client import Client

_TOPIC = 2
_MIN_IN_SYNC = "min.insync.replicas"
_UNCLEAN = "unclean.leader.election.enable"


def topic_used(client: Client, topic: str) -> TopicUsed:
    """The topic as the brokers describe it. Raises WireError for a topic or a request that they do not know."""
    partitions = client.metadata([topic]).topics[topic].partitions
    resource = {"ResourceType": _TOPIC, "ResourceName": topic, "ConfigurationKeys": [_MIN_IN_SYNC, _UNCLEAN]}
    answer = client.call("DescribeConfigs", {"Resources": [resource]})
    settings = {each["Name"]: str(each["Value"]) for each in answer["Results"][0]["Configs"] or ()}
    least, unclean = settings.get(_MIN_IN_SYNC, ""), settings.get(_UNCLEAN, "")
    return TopicUsed(
        name=topic,
        replicas=tuple(
            tuple(sorted(each.replicas, key=partial(ne, each.leader))) for _, each in sorted(partitions.items())
        ),
        min_in_sync=int(least) if least.isdigit() else None,
        unclean_election=unclean == "true" if unclean else None,
    )
