"""Clusters with ZooKeeper, the ground of scripts on releases before 3.3."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.cluster import BrokerId
from chaos.errors import InjectionError
from fixtures.clusters.health import problems
from fixtures.clusters.local.zookeeper import ZooKeeperCluster
from fixtures.clusters.locks.releases import OLDEST_SCRIPTED, definition_jars, fetch_release, parse_release
from fixtures.clusters.spec import ClusterSpec
from fixtures.tools.java import find_java
from fixtures.waiting import await_until
from wire.client import Client
from wire.messages import Definitions

pytestmark = pytest.mark.cluster
RELEASE = "2.8.2"


def test_an_old_release_serves_and_ends(tmp_path: Path) -> None:
    """Three brokers of 2.8 come up, one may be killed and returns, and the end leaves no process."""
    files = fetch_release(parse_release(RELEASE, oldest=OLDEST_SCRIPTED))
    definitions = Definitions.load(*definition_jars(files))
    spec = ClusterSpec(release=RELEASE)
    with ZooKeeperCluster.launch(spec, files, find_java(), tmp_path / "cluster", definitions=definitions) as cluster:
        assert problems(cluster) == []
        with Client(cluster.witness_bootstrap, definitions) as client:
            client.create_topics({"orders": 1}, replication_factor=3)
            assert client.init_producer_id("mine").epoch == 0
            assert client.init_producer_id("mine").epoch == 1
        victim = BrokerId(2)
        cluster.crash(victim)
        await_until(lambda: victim not in cluster.view().alive, "the dead broker to be missed", timeout_s=20)
        assert "2 is not running" in problems(cluster)
        cluster.start(victim)
        await_until(lambda: problems(cluster) == [], "the cluster to be whole again", timeout_s=30)
        with pytest.raises(InjectionError, match="no links"):
            cluster.links.cut()
    assert not cluster.responsive()
    assert not (tmp_path / "cluster" / "data").exists()
    assert (tmp_path / "cluster" / "brokers" / "zookeeper.log").is_file()
