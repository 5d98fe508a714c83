"""Frame-aware links between real brokers: a cluster all of whose links lead through them works as before."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chaos.cluster import Plane, Site
from chaos.frames import Delay, FrameFilter, FrameLinks
from fixtures.clusters.health import await_healthy
from fixtures.clusters.local.cluster import LocalCluster
from fixtures.clusters.spec import ClusterSpec
from fixtures.waiting import await_until
from tests.support.real_cluster import RELEASE, launcher
from tests.support.wire_definitions import definitions
from wire.client import Client
from wire.records import encode
from wire.values import CoordinatorType, Isolation, TopicPartition

pytestmark = pytest.mark.cluster

APP = Site("app")
PATIENCE_S = 45.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with launcher(tmp_path_factory)(ClusterSpec(release=RELEASE, sites=(APP,))) as started:
        yield started


def commit_once(cluster: LocalCluster, name: str) -> tuple[int, int]:
    """One transaction of a client at the site; returns high watermark and last stable offset."""
    at = TopicPartition(name, 0)
    with Client(cluster.bootstrap(APP), definitions()) as client:
        client.create_topics({name: 1})
        owner = client.init_producer_id(name)
        identity = {"TransactionalId": name, "ProducerId": owner.id, "ProducerEpoch": owner.epoch}
        batch = encode(
            [(None, b"a")], producer_id=owner.id, producer_epoch=owner.epoch, base_sequence=0, transactional=True
        )
        data = [{"Name": name, "PartitionData": [{"Index": 0, "Records": batch}]}]
        body = {"TransactionalId": name, "Acks": -1, "TimeoutMs": 10_000, "TopicData": data}
        produced = client.call("Produce", body, 12, broker=client.leader_of(*at))
        assert produced["Responses"][0]["PartitionResponses"][0]["ErrorCode"] == 0
        coordinator = client.find_coordinator(name, CoordinatorType.TRANSACTION)
        assert client.call("EndTxn", identity | {"Committed": True}, broker=coordinator)["ErrorCode"] == 0
        client.init_producer_id(name)  # answered once the markers are written
        return client.list_offsets([at])[at], client.list_offsets([at], isolation=Isolation.READ_COMMITTED)[at]


def answered(relay: FrameLinks) -> set[str]:
    """The links that carried a response."""
    return {each.link for each in relay.status() if each.responses}


@pytest.mark.parametrize("collected", [False, True], ids=["bytes pass", "every frame is collected"])
def test_brokers_live_behind_frame_aware_links(cluster: LocalCluster, collected: bool) -> None:
    """With every link of both planes led through one, brokers stay whole and a transaction commits; nothing is opaque."""
    mesh = cluster.links
    with FrameLinks(definitions()) as relay:
        rule = relay.add(FrameFilter(), Delay(delay_s=0.001)) if collected else None
        try:
            for link in mesh.links():
                mesh.redirect(link, relay.open(str(link), mesh.destination(link)))
            assert commit_once(cluster, f"through-{collected}") == (2, 2)
            data = {str(link) for link in mesh.links() if link.plane is Plane.DATA and link.source != APP}
            # A follower that was cut off by the redirection comes back to fetch when its backoff is over.
            await_until(
                lambda: answered(relay) >= data,
                "answers on every link between brokers",
                timeout_s=PATIENCE_S,
                last=lambda: f"none on {sorted(data - answered(relay))}",
            )
            assert not any(each.opaque for each in relay.status())
            assert relay.problems() == ()
            if rule is not None:
                assert {"Fetch", "Produce", "EndTxn"} <= {each.api for each in rule.met}
                assert not [reason for reason in rule.missed if "passing already" not in reason], rule.missed
                relay.remove(rule)
        finally:
            mesh.heal()
    await_healthy(cluster, PATIENCE_S)
