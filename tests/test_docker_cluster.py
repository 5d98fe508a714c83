"""A real cluster in containers: three brokers, every byte through links. The tests share it, so each one heals it."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from confluent_kafka import Consumer

from chaos.cluster import BrokerId, Link, TopicPartition
from fixtures.clusters.docker.cluster import DockerCluster
from fixtures.clusters.docker.engine import CLUSTER_LABEL, OWNER_LABEL, ROLE_LABEL, Engine, Role
from fixtures.clusters.docker.images import ImageOrigin, kafka_image
from fixtures.clusters.docker.runtime import DockerRuntime
from fixtures.clusters.errors import BrokerStateError, ClusterStartError, ImageError
from fixtures.clusters.health import await_healthy, problems
from fixtures.clusters.locks.releases import default_release, fetch_release
from fixtures.clusters.runtime import RunningCluster
from fixtures.clusters.spec import ClusterSpec
from fixtures.downloads.progress import Downloads
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
from tests.engines import answering

pytestmark = pytest.mark.docker

RELEASE = str(default_release())
SINGLE_BROKER = ClusterSpec(release=RELEASE, brokers=1, replicas=1, min_in_sync=1)


@pytest.fixture(scope="module")
def runtime() -> Iterator[DockerRuntime]:
    """An engine and images."""
    engine = answering()
    made = DockerRuntime.prepare(fetch_release(default_release()), downloads=Downloads(), engine=engine)
    yield made
    made.close()


@pytest.fixture(scope="module")
def shared(runtime: DockerRuntime, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DockerCluster]:
    directory = tmp_path_factory.mktemp("docker") / "cluster"
    with runtime.launch(ClusterSpec(release=RELEASE), directory, keep_data=False) as started:
        yield started


@pytest.fixture
def cluster(shared: DockerCluster) -> Iterator[DockerCluster]:
    yield shared
    make_whole(shared)


@pytest.fixture
def topic(cluster: DockerCluster, request: pytest.FixtureRequest) -> TopicPartition:
    """A topic of one partition with three replicas, named after the test."""
    return new_topic(cluster, re.sub(r"\W", "-", request.node.name))


def ours(engine: Engine, cluster: str) -> list[str]:
    """Names of the containers and networks of a cluster that the engine still has."""
    filters = {"label": f"{CLUSTER_LABEL}={cluster}"}
    containers = engine.client.api.containers(all=True, filters=filters)
    return [each["Names"][0] for each in containers] + [
        each["Name"] for each in engine.client.api.networks(filters=filters)
    ]


def test_a_new_cluster_is_healthy_and_only_the_link_server_is_published(
    cluster: DockerCluster, runtime: DockerRuntime
) -> None:
    """All replicas in sync; one container publishes ports, all on loopback; brokers are in internal networks only."""
    running: RunningCluster = cluster
    assert problems(running) == []
    assert cluster.view().alive == {1, 2, 3}
    assert cluster.transaction_coordinator("any") in cluster.brokers
    listed = runtime.engine.client.containers.list(filters={"label": f"{CLUSTER_LABEL}={cluster.name}"})
    assert len(listed) == 7
    for container in listed:
        role = container.labels[ROLE_LABEL]
        bindings = [each for ports in container.ports.values() for each in ports or ()]
        assert bool(bindings) == (role == Role.LINKS)
        assert {each["HostIp"] for each in bindings} <= {"127.0.0.1"}
        if role == Role.HOLDER:
            (network,) = container.attrs["NetworkSettings"]["Networks"].values()
            assert runtime.engine.client.networks.get(network["NetworkID"]).attrs["Internal"]


def test_transactions_pass_through_the_links(cluster: DockerCluster, topic: TopicPartition) -> None:
    """What is committed is read, what is aborted is not."""
    producer = producer_at(cluster.bootstrap(APP), transactional_id="t-links")
    producer.init_transactions(PATIENCE_S)
    for value, commit in ((b"aborted", False), (b"committed", True)):
        producer.begin_transaction()
        producer.produce(topic.topic, value)
        producer.flush(PATIENCE_S)
        assert cluster.open_transactions() == {"t-links": "Ongoing"}
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


def test_a_follower_cut_from_its_leader_leaves_the_in_sync_set(cluster: DockerCluster, topic: TopicPartition) -> None:
    """Follower → leader stops replication, so it has no other way; the leader stays and nobody is fenced."""
    before = cluster.view().partitions[topic]
    assert before.leader is not None
    follower = next(each for each in before.replicas if each != before.leader)
    cluster.links.cut(Link(source=str(follower), target=before.leader))
    write = writing(cluster, topic)
    view = await_view(cluster, "shrinking", lambda view: follower not in view.partitions[topic].in_sync, write)
    assert len(view.partitions[topic].in_sync) == 2
    assert view.partitions[topic].leader == before.leader
    assert view.alive == {1, 2, 3}
    cluster.links.heal()
    await_view(cluster, "expanding", lambda view: len(view.partitions[topic].in_sync) == 3)


def test_a_leader_cut_from_its_peers_loses_its_leadership(cluster: DockerCluster, topic: TopicPartition) -> None:
    """Its process runs on and the witness still reaches it, but believes the majority."""
    leader = leader_of(cluster, topic)
    cluster.links.cut(*around(cluster.links.links(), leader))
    await_view(
        cluster,
        "the move",
        lambda view: leader not in view.alive and view.partitions[topic].leader not in {None, leader},
    )
    assert leader in cluster.responsive()


def test_a_site_that_is_cut_is_not_accepted_and_others_are(cluster: DockerCluster) -> None:
    """The engine's forwarder accepts for a link that is cut; that is not taken for the link."""
    link = Link(source=APP, target=BrokerId(1))
    assert cluster.accepts(link)
    cluster.links.cut(link)
    assert not cluster.accepts(link)
    assert cluster.accepts(Link(source=OBSERVER, target=BrokerId(1)))
    assert cluster.view().alive == {1, 2, 3}
    cluster.links.restore(link)
    assert cluster.accepts(link)
    cluster.links.drop_responses(link)
    assert cluster.accepts(link)


def test_a_killed_broker_comes_back_on_its_addresses(cluster: DockerCluster, topic: TopicPartition) -> None:
    """After SIGKILL its partitions move; started again it gets in sync, under the same addresses, with all its log."""
    leader = leader_of(cluster, topic)
    bootstrap = cluster.bootstrap(APP)
    cluster.crash(leader)
    assert not cluster.is_running(leader)
    assert cluster.exit_status(leader) == 137
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
    log = (cluster.directory / "brokers" / f"broker-{leader}.log").read_text(encoding="utf-8")
    assert log.count("Kafka Server started") == 2


def test_a_paused_leader_is_replaced_and_resumes(cluster: DockerCluster, topic: TopicPartition) -> None:
    """It counts as running, cannot be stopped cleanly, and joins again when it is resumed."""
    leader = leader_of(cluster, topic)
    cluster.pause(leader)
    cluster.pause(leader)
    assert cluster.is_running(leader)
    assert leader not in cluster.responsive()
    with pytest.raises(BrokerStateError, match="Resume it first"):
        cluster.stop(leader)
    await_view(cluster, "a new leader", lambda view: view.partitions[topic].leader not in {None, leader})
    cluster.resume(leader)
    cluster.resume(leader)
    await_view(cluster, "coming back", lambda view: view.alive == {1, 2, 3})


def test_a_paused_broker_can_be_killed_and_another_stopped(cluster: DockerCluster) -> None:
    """SIGKILL ends a frozen broker without letting it run; SIGTERM ends one that hands over first."""
    stopped, killed = cluster.brokers[:2]
    cluster.stop(stopped)
    assert not cluster.is_running(stopped)
    assert "kafka-shutdown-hook" in cluster.log_tail(stopped).splitlines()[-1]
    cluster.start(stopped)
    await_healthy(cluster, PATIENCE_S)
    cluster.pause(killed)
    cluster.crash(killed)
    assert not cluster.is_running(killed)
    assert "kafka-shutdown-hook" not in cluster.log_tail(killed).splitlines()[-1]


def test_a_closed_cluster_leaves_its_logs_and_nothing_on_the_engine(
    cluster: DockerCluster, runtime: DockerRuntime, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Dedicated controllers, one site: it runs beside the first and goes without it; data are kept when asked for."""
    directory = tmp_path_factory.mktemp("docker") / "second"
    spec = replace(SINGLE_BROKER, controllers=1, sites=(APP,), feature_levels={"transaction.version": 1})
    with runtime.launch(spec, directory, keep_data=True) as second:
        assert second.view().controller == 2
        assert not set(second.bootstrap(APP).split(",")) & set(cluster.bootstrap(APP).split(","))
        assert len(ours(runtime.engine, second.name)) == 5 + 3
    second.close()
    assert ours(runtime.engine, second.name) == []
    assert (directory / "data" / "broker-1" / "meta.properties").is_file()
    assert "Kafka Server started" in (directory / "brokers" / "controller-2.log").read_text(encoding="utf-8")
    assert problems(cluster) == []


def test_a_broker_that_does_not_start_is_shown_with_its_log(
    runtime: DockerRuntime, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The error ends with what the program said last, and no container stays."""
    directory = tmp_path_factory.mktemp("docker") / "broken"
    spec = replace(SINGLE_BROKER, feature_levels={"no.such.feature": 1})
    with pytest.raises(ClusterStartError, match=r"(?s)format.*status 1.*no\.such\.feature"):
        runtime.launch(spec, directory, keep_data=False)
    before = runtime.engine.client.api.containers(all=True, filters={"label": f"{ROLE_LABEL}={Role.FORMAT}"})
    assert before == []


def test_a_sweep_removes_what_dead_owners_left_and_nothing_else(runtime: DockerRuntime) -> None:
    """A container and a network of an owner that is dead go; those of one that lives stay until they are closed."""
    engine = runtime.engine
    dead = engine.labels("swept", Role.FORMAT, 0)
    dead[OWNER_LABEL] = re.sub(r"@.*", "@1", dead[OWNER_LABEL])
    living = engine.labels("kept", Role.FORMAT, 0)
    for labels in (dead, living):
        engine.client.containers.create(runtime.images.toxiproxy.digest, network_mode="none", labels=labels)
        engine.client.networks.create(
            f"onceproof-test-{labels[CLUSTER_LABEL]}",
            internal=True,
            labels={key: labels[key] for key in (OWNER_LABEL, CLUSTER_LABEL)},
        )
    try:
        assert engine.sweep() == 2
        assert ours(engine, "swept") == []
        assert len(ours(engine, "kept")) == 2
    finally:
        engine.remove_cluster("kept")
    assert ours(engine, "kept") == []


def test_a_second_start_builds_nothing(runtime: DockerRuntime) -> None:
    """The images are found by what they are built from, and nothing is fetched or said."""
    said = io.StringIO()
    again = DockerRuntime.prepare(runtime.files, downloads=Downloads(stream=said))
    again.engine.client.close()
    assert again.images == runtime.images
    assert again.options == runtime.options
    assert said.getvalue() == ""


def test_an_image_from_a_mirror_is_taken_by_its_prefix(runtime: DockerRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    """An image that the engine has under the mirror's name is found there, and asked for under no other."""
    mirror = "localhost:1/mirror"
    name = f"{mirror}/apache/kafka"
    assert runtime.engine.client.images.get(runtime.images.kafka.reference).tag(name, tag=RELEASE)
    monkeypatch.setenv("ONCEPROOF_IMAGE_PREFIX", mirror)
    try:
        image = kafka_image(runtime.engine, runtime.files, downloads=Downloads(quiet=True))
    finally:
        runtime.engine.client.images.remove(f"{name}:{RELEASE}")
    assert (image.reference, image.origin) == (f"{name}:{RELEASE}", ImageOrigin.FOUND)


def test_an_image_of_something_else_is_refused(runtime: DockerRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    """A configured image must hold the release under test, and must exist."""
    monkeypatch.setenv("ONCEPROOF_KAFKA_IMAGE", runtime.images.toxiproxy.reference)
    with pytest.raises(ImageError, match=f"does not hold Kafka {RELEASE}"):
        kafka_image(runtime.engine, runtime.files, downloads=Downloads(quiet=True))
    monkeypatch.setenv("ONCEPROOF_KAFKA_IMAGE", "localhost:1/no/such:image")
    with pytest.raises(ImageError, match=r"localhost:1/no/such:image is not on the engine.*ONCEPROOF_KAFKA_IMAGE"):
        kafka_image(runtime.engine, runtime.files, downloads=Downloads(quiet=True))
