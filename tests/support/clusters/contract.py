"""Tests that every runtime of clusters must pass, on a real cluster of three brokers.

A test module of a runtime subclasses `ClusterContract` and has a fixture `shared`, the running cluster. The fixtures
`cluster` and `topic` are in `tests/fixtures/clusters/conftest.py`.
"""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer

from chaos.cluster import BrokerId, Link
from fixtures.clusters.errors import BrokerStateError
from fixtures.clusters.health import problems
from fixtures.clusters.runtime import RunningCluster
from fixtures.recording.metric_sampler import MeteredCluster
from fixtures.waiting import await_until
from tests.support.cluster_client import APP, OBSERVER, PATIENCE_S, await_view, leader_of, producer_at, writing
from wire.values import TopicPartition


class ClusterContract:
    """Transactions pass the links, a cut link shows, killed and paused brokers come back."""

    def crash(self, cluster: RunningCluster, broker: BrokerId) -> None:
        """Kill a broker; a runtime adds how it sees that the broker is gone when the call returns."""
        cluster.crash(broker)

    def test_transactions_pass_through_the_links(self, cluster: RunningCluster, topic: TopicPartition) -> None:
        """Committed records are read, aborted ones are not; an open transaction is listed and makes it unhealthy."""
        producer = producer_at(cluster.bootstrap(APP), transactional_id="t-links")
        producer.init_transactions(PATIENCE_S)
        for value, commit in ((b"aborted", False), (b"committed", True)):
            producer.begin_transaction()
            producer.produce(topic.topic, value)
            producer.flush(PATIENCE_S)
            assert cluster.open_transactions() == {"t-links": "Ongoing"}
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

    def test_a_follower_cut_from_its_leader_leaves_the_in_sync_set(
        self, cluster: RunningCluster, topic: TopicPartition
    ) -> None:
        """Follower → leader stops replication: there is no other path. The leader stays, no broker is fenced."""
        before = cluster.view().partitions[topic]
        assert before.leader is not None
        follower = next(each for each in before.replicas if each != before.leader)
        write = writing(cluster, topic)
        cluster.links.cut(Link(source=str(follower), target=before.leader))
        view = await_view(cluster, "shrinking", lambda view: follower not in view.partitions[topic].in_sync, write)
        assert len(view.partitions[topic].in_sync) == 2
        assert view.partitions[topic].leader == before.leader
        assert view.alive == {1, 2, 3}
        assert "a link is cut or degraded" in problems(cluster)
        cluster.links.heal()
        await_view(cluster, "expanding", lambda view: len(view.partitions[topic].in_sync) == 3)

    def test_a_killed_broker_comes_back_on_its_addresses(self, cluster: RunningCluster, topic: TopicPartition) -> None:
        """After SIGKILL its partitions move. Started again it gets in sync, at the same addresses, with all its log."""
        leader = leader_of(cluster, topic)
        log = cluster.directory / "brokers" / f"broker-{leader}.log"
        lives = log.read_text(encoding="utf-8").count("Kafka Server started")
        bootstrap = cluster.bootstrap(APP)
        self.crash(cluster, leader)
        assert not cluster.is_running(leader)
        assert leader not in cluster.responsive()
        await_view(cluster, "a new leader", lambda view: view.partitions[topic].leader not in {None, leader})
        with pytest.raises(BrokerStateError, match="not running"):
            cluster.crash(leader)
        cluster.start(leader)
        with pytest.raises(BrokerStateError, match="is running"):
            cluster.start(leader)
        await_view(cluster, "coming back", lambda view: len(view.partitions[topic].in_sync) == 3)
        assert cluster.bootstrap(APP) == bootstrap
        reached = producer_at(bootstrap.split(",")[leader - 1]).list_topics(timeout=PATIENCE_S)
        assert set(reached.brokers) == {1, 2, 3}
        assert log.read_text(encoding="utf-8").count("Kafka Server started") == lives + 1

    def test_a_paused_leader_is_replaced_and_resumes(self, cluster: RunningCluster, topic: TopicPartition) -> None:
        """It counts as running, cannot be stopped cleanly, and joins again when it is resumed."""
        leader = leader_of(cluster, topic)
        cluster.pause(leader)
        cluster.pause(leader)
        assert cluster.is_running(leader)
        assert leader not in cluster.responsive()
        assert f"{leader} is paused" in problems(cluster)
        with pytest.raises(BrokerStateError, match="Resume it first"):
            cluster.stop(leader)
        await_view(cluster, "a new leader", lambda view: view.partitions[topic].leader not in {None, leader})
        cluster.resume(leader)
        cluster.resume(leader)
        await_view(cluster, "coming back", lambda view: view.alive == {1, 2, 3})

    def test_metrics_are_those_of_the_broker(self, cluster: RunningCluster, topic: TopicPartition) -> None:
        """A leader states the lag of its last stable offset; a broker that is paused states nothing until it goes on."""
        leader = leader_of(cluster, topic)
        assert isinstance(cluster, MeteredCluster)

        def states_no_lag() -> bool:
            found = {(each.name, each.of): each.value for each in cluster.readings(leader)}
            return found.get(("LastStableOffsetLag", str(topic))) == 0

        await_until(states_no_lag, "the metric of a new topic", timeout_s=PATIENCE_S)
        names = {each.name for each in cluster.readings(leader)}
        assert {"UnderReplicatedPartitions", "ProducerIdCount", "UncleanLeaderElectionsPerSec"} <= names
        assert not [each for each in cluster.readings(leader) if each.of.endswith(" NONE")]
        cluster.pause(leader)
        assert cluster.readings(leader) == ()
        cluster.resume(leader)
        assert cluster.readings(leader)
