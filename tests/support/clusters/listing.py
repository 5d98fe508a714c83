"""Everything on a cluster that others may have put there: tests compare it before and after a run."""

from __future__ import annotations

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, TopicPartition
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)

from fixtures.clusters.runtime import RunningCluster
from tests.support.cluster_client import PATIENCE_S
from tests.support.wire_definitions import definitions
from wire.client import Client

#: Ids expire; nothing else removes them from a coordinator. So those of runs of ours are left out.
OURS = "onceproof-"


def everything(cluster: RunningCluster) -> dict[str, object]:
    """Topics with settings and all records, groups with offsets, rights, and every transactional id but ours."""
    admin = AdminClient({"bootstrap.servers": cluster.witness_bootstrap})
    topics = {
        name: sorted(topic.partitions)
        for name, topic in sorted(admin.list_topics(timeout=PATIENCE_S).topics.items())
        if not name.startswith("__")
    }
    return {
        "records": {f"{topic}-{at}": _records(cluster, topic, at) for topic, all_of in topics.items() for at in all_of},
        "settings": {topic: _settings(admin, topic) for topic in topics},
        "groups": _groups(admin),
        "rights": sorted(map(str, admin.describe_acls(_EVERY_RIGHT).result(PATIENCE_S))),
        "transactional ids": _transactions(cluster),
    }


_EVERY_RIGHT = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
)


def _records(cluster: RunningCluster, topic: str, partition: int) -> list[tuple[object, ...]]:
    """Also those of aborted and open transactions; the last offset shows the markers."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.witness_bootstrap,
            "group.id": "listing",
            "isolation.level": "read_uncommitted",
            "enable.partition.eof": True,
        }
    )
    at = TopicPartition(topic, partition, 0)
    first, end = consumer.get_watermark_offsets(at, PATIENCE_S)
    consumer.assign([TopicPartition(topic, partition, first)])
    found: list[tuple[object, ...]] = [(first, end)]
    while True:
        message = consumer.poll(PATIENCE_S)
        assert message is not None, f"nothing of {topic}-{partition} within {PATIENCE_S:.0f} s"
        if (error := message.error()) is not None:
            assert error.code() == KafkaError._PARTITION_EOF, error
            break
        found.append((message.offset(), message.timestamp(), message.key(), message.value(), message.headers()))
    consumer.close()
    return found


def _settings(admin: AdminClient, topic: str) -> dict[str, str]:
    """The settings that are not the default."""
    (asked,) = admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)]).values()
    return {name: entry.value for name, entry in asked.result(PATIENCE_S).items() if not entry.is_default}


def _groups(admin: AdminClient) -> dict[str, list[str]]:
    """The committed offset of every partition."""
    found = {}
    for group in sorted(each.group_id for each in admin.list_consumer_groups().result(PATIENCE_S).valid):
        (asked,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
        committed = asked.result(PATIENCE_S).topic_partitions
        found[group] = sorted(f"{each.topic}-{each.partition}: {each.offset}" for each in committed)
    return found


def _transactions(cluster: RunningCluster) -> dict[str, tuple[object, ...]]:
    with Client(cluster.witness_bootstrap, definitions()) as client:
        ids = [name for name in client.list_transactions() if not name.startswith(OURS)]
        return {
            name: (state["ProducerId"], state["ProducerEpoch"], state["TransactionState"])
            for name, state in sorted(client.describe_transactions(ids).items())
        }
