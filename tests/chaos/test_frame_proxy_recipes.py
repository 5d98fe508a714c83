"""The recipes of `docs/frame-proxy.md`, each run as the page says, between librdkafka and a real broker."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from chaos.cluster import Site
from fixtures.clusters.local.cluster import LocalCluster
from fixtures.clusters.network.security import USERS
from fixtures.clusters.spec import SecuredListener
from tests.support.paths import ROOT
from tests.support.real_cluster import SINGLE_BROKER, launcher
from tests.support.servers.frame_proxy import Proxy, frame_proxy

pytestmark = pytest.mark.cluster

PATIENT_S = 20.0
#: Shorter than the delay of the recipe with a late request, and far longer than a broker needs.
REQUEST_TIMEOUT_MS = 1500
PAGE = (ROOT / "docs" / "frame-proxy.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"^### (.+?)\n.*?^```sh\n(.+?)\n```", PAGE.split("## Recipes")[1], re.MULTILINE | re.DOTALL))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with launcher(tmp_path_factory)(replace(SINGLE_BROKER, secured=SecuredListener())) as started:
        yield started


@contextmanager
def proxy_of(recipe: str, cluster: LocalCluster) -> Iterator[Proxy]:
    """The command of the page, with a free port and the broker of this test."""
    program, *words = shlex.split(RECIPES.pop(recipe).removeprefix("python -m "))
    assert program == "chaos.frames"
    here = {"--listen": "0", "--upstream": cluster.bootstrap(Site("app"))}
    arguments = [here.get(before, word) for before, word in zip(["", *words], words, strict=False)]
    with frame_proxy(*arguments) as proxy:
        yield proxy
        assert proxy.end() == 0, proxy.errors


def commit_one(proxy: Proxy, topic: str) -> None:
    """One record in one transaction, through the proxy."""
    admin = AdminClient({"bootstrap.servers": proxy.bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(PATIENT_S)
    producer = Producer(
        {
            "bootstrap.servers": proxy.bootstrap,
            "transactional.id": f"billing-{topic}",
            "socket.timeout.ms": REQUEST_TIMEOUT_MS,
        }
    )
    producer.init_transactions(PATIENT_S)
    producer.begin_transaction()
    producer.produce(topic, b"once")
    producer.commit_transaction(PATIENT_S)


def committed(cluster: LocalCluster, topic: str) -> list[bytes]:
    """The records that a reader of committed records receives, directly from the broker."""
    reader = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap(Site("app")),
            "group.id": topic,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    try:
        reader.assign([TopicPartition(topic, 0, 0)])
        found = []
        while (message := reader.poll(PATIENT_S)) is not None and message.error() is None:
            found.append(message.value())
        return found
    finally:
        reader.close()


def test_a_lost_answer_to_end_txn(cluster: LocalCluster) -> None:
    """The client asks a second time, and the transaction is committed once."""
    with proxy_of("A lost answer to EndTxn", cluster) as proxy:
        commit_one(proxy, "lost")
        proxy.line("met", api="EndTxn", state="dropped", errors=["NONE"])
    assert committed(cluster, "lost") == [b"once"]


def test_a_late_produce_request(cluster: LocalCluster) -> None:
    """The first attempt reaches the broker after the commit, and its record is not there twice."""
    with proxy_of("A Produce request that arrives after its transaction", cluster) as proxy:
        commit_one(proxy, "late")
        done = datetime.now(UTC)
        late = proxy.line("met", api="Produce", state="delivered")
        assert datetime.fromisoformat(late["time"]) > done
    assert committed(cluster, "late") == [b"once"]


def test_add_partitions_twice(cluster: LocalCluster) -> None:
    """The broker answers the copy, too."""
    with proxy_of("AddPartitionsToTxn twice", cluster) as proxy:
        commit_one(proxy, "twice")
        assert proxy.line("met", api="AddPartitionsToTxn", copied=True)["copies"] == [
            {"errors": ["NONE"], "problem": ""}
        ]
    assert committed(cluster, "twice") == [b"once"]


def test_a_loading_coordinator(cluster: LocalCluster) -> None:
    """The client asks again by itself."""
    with proxy_of("A coordinator that is loading, once", cluster) as proxy:
        commit_one(proxy, "loading")
        proxy.line("met", api="InitProducerId", state="answered", errors=None)
    assert committed(cluster, "loading") == [b"once"]


def test_a_connection_that_ends(cluster: LocalCluster) -> None:
    """The broker has answered; the client connects and asks again."""
    with proxy_of("A connection that ends between request and answer", cluster) as proxy:
        commit_one(proxy, "ends")
        proxy.line("met", api="InitProducerId", state="cut", errors=["NONE"])
    assert committed(cluster, "ends") == [b"once"]


def test_a_secured_listener(cluster: LocalCluster) -> None:
    """The proxy speaks TLS to the broker, and the client authenticates through it, without TLS."""
    security = cluster.security
    assert security is not None
    words = ("--upstream", security.bootstrap, "--upstream-ca", str(security.certificate), "--log", "all")
    with frame_proxy("--listen", "0", *words, "--rule", "delay 0.1 request Metadata #1") as proxy:
        login = {
            "security.protocol": "sasl_plaintext",
            "sasl.mechanism": "PLAIN",
            "sasl.username": USERS[0],
            "sasl.password": security.passwords[USERS[0]],
        }
        brokers = AdminClient({"bootstrap.servers": proxy.bootstrap, **login}).list_topics(timeout=PATIENT_S).brokers
        listener = proxy.line("listening", broker=security.bootstrap)["listener"]
        assert [f"{each.host}:{each.port}" for each in brokers.values()] == [listener]
        assert proxy.end() == 0, proxy.errors
    assert proxy.line("response", api="SaslAuthenticate")["errors"] == ["NONE"]
    assert security.passwords[USERS[0]] not in str(proxy.lines)


def test_every_recipe_was_run() -> None:
    """The last test: the page has five recipes, and all were taken."""
    assert PAGE.count("\n### ") == 5
    assert RECIPES == {}
