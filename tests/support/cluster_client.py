"""Requests to running clusters, and waits, for tests of any runtime."""

from __future__ import annotations

import time
from collections.abc import Callable

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from chaos.cluster import BrokerId, ClusterView, Link, Site
from fixtures.clusters.health import await_healthy
from fixtures.clusters.runtime import RunningCluster
from wire.values import TopicPartition

APP, OBSERVER = Site("app"), Site("observer")
# Faults show within 6 s on a quiet machine; tests run on busy ones too.
PATIENCE_S = 60.0


def make_whole(cluster: RunningCluster) -> None:
    """Undo the faults of a test."""
    for broker in cluster.brokers:
        cluster.resume(broker)
        if not cluster.is_running(broker):
            cluster.start(broker)
    cluster.links.heal()
    await_healthy(cluster, PATIENCE_S)


def new_topic(cluster: RunningCluster, name: str) -> TopicPartition:
    """A topic of one partition whose three replicas are in sync."""
    return _created(cluster, NewTopic(name, 1, 3))


def topic_led_by_each(cluster: RunningCluster, name: str) -> None:
    """A topic of which every broker leads one partition, so that every broker fetches from every other one."""
    brokers = list(cluster.brokers)
    ring = [brokers[at:] + brokers[:at] for at in range(len(brokers))]
    _created(cluster, NewTopic(name, len(ring), replica_assignment=ring))


def _created(cluster: RunningCluster, topic: NewTopic) -> TopicPartition:
    admin = AdminClient({"bootstrap.servers": cluster.witness_bootstrap})
    for done in admin.create_topics([topic]).values():
        done.result(PATIENCE_S)
    at = TopicPartition(topic=topic.topic, partition=0)
    await_view(cluster, "the topic", lambda view: at in view.partitions and len(view.partitions[at].in_sync) == 3)
    return at


def producer_at(bootstrap: str, **options: str | int) -> Producer:
    """A producer with short timeouts."""
    return Producer(
        {
            "bootstrap.servers": bootstrap,
            "socket.timeout.ms": 3000,
            "reconnect.backoff.max.ms": 500,
            "topic.metadata.refresh.interval.ms": 1000,
            "log_level": 0,
        }
        | {key.replace("_", "."): value for key, value in options.items()}
    )


def await_view(
    cluster: RunningCluster,
    what: str,
    holds: Callable[[ClusterView], bool],
    meanwhile: Callable[[], object] = lambda: None,
) -> ClusterView:
    """Observe until something holds."""
    began = time.monotonic()
    while not holds(view := cluster.view()):
        waited_s = time.monotonic() - began
        assert waited_s < PATIENCE_S, f"{what} did not happen within {waited_s:.0f} s; last seen: {view}"
        meanwhile()
        time.sleep(0.05)
    return view


def leader_of(cluster: RunningCluster, at: TopicPartition) -> BrokerId:
    """The leader, which must exist."""
    leader = cluster.view().partitions[at].leader
    assert leader is not None
    return leader


def writing(cluster: RunningCluster, at: TopicPartition) -> Callable[[], object]:
    """A function that writes one more record. ISR changes only show where something is written."""
    producer = producer_at(cluster.bootstrap(APP), acks="1")

    def write() -> None:
        producer.produce(at.topic, b"x", partition=at.partition)
        producer.poll(0)

    return write


def around(links: tuple[Link, ...], broker: BrokerId) -> list[Link]:
    """All links between a broker and its peers, in both directions, on both planes."""
    return [link for link in links if link.source.isdigit() and str(broker) in (link.source, str(link.target))]
