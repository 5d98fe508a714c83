"""A real local cluster: three brokers, every byte through links. The tests share it, so each one heals it again."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from chaos.cluster import Link, Plane, TopicPartition
from fixtures.clusters.errors import BrokerStateError
from fixtures.clusters.health import await_healthy, problems
from fixtures.clusters.local.cluster import LocalCluster
from fixtures.clusters.network.port_plan import INTERNAL
from fixtures.clusters.observing.coordinators import GROUPS_TOPIC, TRANSACTIONS_TOPIC, partition_of
from fixtures.clusters.runtime import RunningCluster
from fixtures.clusters.spec import ClusterSpec
from tests.cluster_talk import (
    APP,
    OBSERVER,
    PATIENCE_S,
    around,
    await_view,
    leader_of,
    make_whole,
    new_topic,
    producer_at,
    writing,
)
from tests.real_cluster import RELEASE, launcher

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with launcher(tmp_path_factory)(ClusterSpec(release=RELEASE)) as started:
        yield started


@pytest.fixture
def cluster(shared: LocalCluster) -> Iterator[LocalCluster]:
    yield shared
    make_whole(shared)


@pytest.fixture
def topic(cluster: LocalCluster, request: pytest.FixtureRequest) -> TopicPartition:
    """A topic of one partition with three replicas, named after the test."""
    return new_topic(cluster, re.sub(r"\W", "-", request.node.name))


def connections_of(pid: int) -> set[tuple[str, int]]:
    """The remote addresses of a process's TCP connections, from proc(5)."""
    inodes = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            inodes.add(entry.readlink().name.removeprefix("socket:[").removesuffix("]"))
        except FileNotFoundError:
            continue  # closed while it was looked at
    remotes = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text(encoding="ascii").splitlines()[1:]:
            fields = line.split()
            address, port = fields[2].split(":")
            if fields[9] in inodes:
                remotes.add((socket.inet_ntoa(bytes.fromhex(address[-8:])[::-1]), int(port, 16)))
    return remotes


def test_a_new_cluster_is_healthy_and_complete(cluster: LocalCluster) -> None:
    """All brokers are unfenced under one controller, and the internal topics are replicated in full."""
    running: RunningCluster = cluster
    assert problems(running) == []
    view = cluster.view()
    assert view.alive == {1, 2, 3}
    assert view.controller in cluster.brokers
    internal = [seen for at, seen in view.partitions.items() if at.topic in {TRANSACTIONS_TOPIC, GROUPS_TOPIC}]
    assert [len(seen.in_sync) for seen in internal] == [3] * 6


def test_coordinators_are_where_the_hash_of_their_key_says(cluster: LocalCluster) -> None:
    """What brokers answer agrees with the hash by which unused keys are made up to probe each coordinator."""
    partitions = cluster.view().partitions
    for key in ("a", "onceproof-probe-7", "grüße 🐘", "x" * 200):
        transactions = TopicPartition(topic=TRANSACTIONS_TOPIC, partition=partition_of(key, 3))
        groups = TopicPartition(topic=GROUPS_TOPIC, partition=partition_of(key, 3))
        assert cluster.transaction_coordinator(key) == partitions[transactions].leader
        assert cluster.group_coordinator(key) == partitions[groups].leader


def test_transactions_pass_through_the_links(cluster: LocalCluster, topic: TopicPartition) -> None:
    """What is committed is read, what is aborted is not, and an open transaction makes the cluster unhealthy."""
    producer = producer_at(cluster.bootstrap(APP), transactional_id="t-links")
    producer.init_transactions(PATIENCE_S)
    for value, commit in ((b"aborted", False), (b"committed", True)):
        producer.begin_transaction()
        producer.produce(topic.topic, value)
        producer.flush(PATIENCE_S)
        assert any("'t-links' is open (Ongoing)" in each for each in problems(cluster))
        (producer.commit_transaction if commit else producer.abort_transaction)(PATIENCE_S)
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap(OBSERVER),
            "group.id": "g-links",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    try:
        consumer.subscribe([topic.topic])
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        assert message.error() is None
        assert message.value() == b"committed"
    finally:
        consumer.close()


def test_no_broker_reaches_a_peer_except_through_its_link(cluster: LocalCluster) -> None:
    """No connection of a broker leads to a peer's own address, and each peer's link is in use."""
    for broker, pid in cluster.pids().items():
        remotes = connections_of(pid)
        peers = [peer for peer in cluster.brokers if peer != broker]
        assert not [each for each in remotes if each[0] in {f"127.1.0.{peer}" for peer in peers}]
        through = {(f"127.0.{broker}.{peer}", cluster.topology.plan.port(INTERNAL, peer)) for peer in peers}
        assert through <= remotes


def test_a_follower_cut_from_its_leader_leaves_the_in_sync_set(cluster: LocalCluster, topic: TopicPartition) -> None:
    """Follower → leader stops replication; the leader stays, nobody is fenced, and the healing brings it back."""
    before = cluster.view().partitions[topic]
    assert before.leader is not None
    follower = next(each for each in before.replicas if each != before.leader)
    write = writing(cluster, topic)
    cluster.links.cut(Link(source=str(follower), target=before.leader))
    view = await_view(
        cluster, "shrinking", lambda view: follower not in view.partitions[topic].in_sync, meanwhile=write
    )
    assert len(view.partitions[topic].in_sync) == 2
    assert view.partitions[topic].leader == before.leader
    assert view.alive == {1, 2, 3}
    assert "a link is cut or degraded" in problems(cluster)
    cluster.links.heal()
    await_view(cluster, "expanding", lambda view: len(view.partitions[topic].in_sync) == 3)


def test_a_broker_cut_from_its_peers_loses_its_roles_for_all_but_itself(
    cluster: LocalCluster, topic: TopicPartition
) -> None:
    """The witness, which reaches both sides, believes the majority: new controller, new leader, higher epochs."""
    before = cluster.view()
    lonely = before.controller
    assert lonely is not None
    cluster.links.cut(*around(cluster.links.links(), lonely))
    after = await_view(
        cluster,
        "the move",
        lambda view: view.controller not in {None, lonely} and lonely not in view.alive,
    )
    assert after.controller_epoch > before.controller_epoch
    assert cluster.is_running(lonely)
    await_view(cluster, "a new leader", lambda view: view.partitions[topic].leader not in {None, lonely})
    assert any(f"[{lonely}] are fenced" in each for each in problems(cluster))


def test_a_broker_cut_from_the_quorum_only_is_fenced(cluster: LocalCluster) -> None:
    """The raft plane is cut by itself; data links are not touched.

    In both directions: before pre-vote (KIP-996) a voter that can be reached but reaches nobody makes the others elect
    without end, and no session of a broker ever ends.
    """
    controller = cluster.view().controller
    broker = next(each for each in cluster.brokers if each != controller)
    raft = [link for link in around(cluster.links.links(), broker) if link.plane is Plane.RAFT]
    assert len(raft) == 4
    cluster.links.cut(*raft)
    await_view(cluster, "fencing", lambda view: broker not in view.alive)


def test_a_killed_broker_comes_back_on_its_addresses(cluster: LocalCluster, topic: TopicPartition) -> None:
    """After SIGKILL its partitions move; after the start it is in sync again, and nobody was told new addresses."""
    leader = leader_of(cluster, topic)
    bootstrap, pid = cluster.bootstrap(APP), cluster.pids()[leader]
    cluster.crash(leader)
    assert not cluster.is_running(leader)
    assert not Path(f"/proc/{pid}").exists()
    await_view(cluster, "a new leader", lambda view: view.partitions[topic].leader not in {None, leader})
    with pytest.raises(BrokerStateError, match="not running"):
        cluster.crash(leader)
    cluster.start(leader)
    with pytest.raises(BrokerStateError, match="is running"):
        cluster.start(leader)
    await_view(cluster, "coming back", lambda view: len(view.partitions[topic].in_sync) == 3)
    assert cluster.bootstrap(APP) == bootstrap
    reached = producer_at(f"127.2.0.{leader}:{cluster.topology.plan.port('APP', leader)}").list_topics(
        timeout=PATIENCE_S
    )
    assert set(reached.brokers) == {1, 2, 3}


def test_a_broker_that_was_started_a_moment_ago_takes_no_requests_yet(cluster: LocalCluster) -> None:
    """Killed and started within its session it was never fenced: only it can say that it is not back."""
    broker = cluster.brokers[-1]
    cluster.crash(broker)
    cluster.start(broker)
    assert [each.partition(":")[0] for each in cluster.silent()] == [f"broker {broker}"]
    assert problems(cluster)
    await_healthy(cluster, PATIENCE_S)
    assert not cluster.silent()


def test_a_paused_leader_is_replaced_and_resumes(cluster: LocalCluster, topic: TopicPartition) -> None:
    """It counts as running, cannot be stopped cleanly, and joins again when it is resumed."""
    leader = leader_of(cluster, topic)
    cluster.pause(leader)
    assert cluster.is_running(leader)
    assert f"{leader} is paused" in problems(cluster)
    with pytest.raises(BrokerStateError, match="Resume it first"):
        cluster.stop(leader)
    await_view(cluster, "a new leader", lambda view: view.partitions[topic].leader not in {None, leader})
    cluster.resume(leader)
    cluster.resume(leader)
    await_view(cluster, "coming back", lambda view: view.alive == {1, 2, 3})


def test_a_stopped_broker_hands_over_and_ends(cluster: LocalCluster, topic: TopicPartition) -> None:
    """After a clean stop the partition already has another leader."""
    leader = leader_of(cluster, topic)
    cluster.stop(leader)
    assert not cluster.is_running(leader)
    assert "kafka-shutdown-hook" in cluster.log_tail(leader).splitlines()[-1]
    assert cluster.view().partitions[topic].leader not in {None, leader}


def test_all_brokers_may_be_killed_at_once(cluster: LocalCluster) -> None:
    """With nobody left the witness has nobody to ask; all are started again and none lost its data."""
    before = set(cluster.view().partitions)
    for broker in cluster.brokers:
        cluster.crash(broker)
    assert any("none is running" in each for each in problems(cluster))
    for broker in cluster.brokers:
        cluster.start(broker)
    await_healthy(cluster, PATIENCE_S)
    assert set(cluster.view().partitions) == before
