"""How clusters begin and end: beside each other, not at all, again from the pool."""

from __future__ import annotations

import socket
import time
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.cluster import BrokerId, Site
from fixtures.clusters.brokers.jvm import NO_OPTIONS, Jvm
from fixtures.clusters.brokers.storage import copy_format, format_with_tool, new_uuid
from fixtures.clusters.errors import ClusterStartError, ClusterUnhealthyError
from fixtures.clusters.health import await_healthy, problems
from fixtures.clusters.local.loopback import LoopbackAddresses
from fixtures.clusters.locks.releases import clients_jar, default_release, fetch_release
from fixtures.clusters.network.port_plan import Plan
from fixtures.clusters.network.topology import Topology
from fixtures.clusters.pool import ClusterPool
from fixtures.clusters.spec import ClusterSpec
from fixtures.processes.keeper import Keeper
from fixtures.tools.java import find_java
from tests.real_cluster import RELEASE, SINGLE_BROKER, Launch, launcher
from wire.connection import Connection
from wire.messages import Definitions

pytestmark = pytest.mark.cluster

APP = Site("app")


@pytest.fixture(scope="module")
def launch(tmp_path_factory: pytest.TempPathFactory) -> Launch:
    return launcher(tmp_path_factory)


def test_clusters_of_two_kinds_fit_beside_each_other(launch: Launch) -> None:
    """One has a dedicated controller, another feature level and one site; ports are its own until it is closed."""
    spec = ClusterSpec(
        release=RELEASE,
        brokers=1,
        controllers=1,
        sites=(APP,),
        replicas=1,
        min_in_sync=1,
        feature_levels={"transaction.version": 1},
    )
    with launch(SINGLE_BROKER) as first, launch(spec) as second:
        assert second.brokers == (1,)
        assert second.view().controller == 2
        assert not set(second.bootstrap(APP).split(",")) & set(first.bootstrap(APP).split(","))
        definitions = Definitions.load(clients_jar(fetch_release(default_release())))
        at = second.topology.witness()[BrokerId(1)]
        with Connection(at.host, at.port, definitions) as connection:
            assert connection.features["transaction.version"] == 1
        assert problems(first) == problems(second) == []
        pids = second.pids()
        assert set(pids) == {1, 2}
        directory = second.directory
    assert not [pid for pid in pids.values() if Path(f"/proc/{pid}").exists()]
    assert not (directory / "data").exists()
    assert "broker-1.log" in {path.name for path in (directory / "brokers").iterdir()}
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", second.topology.plan.api_port), timeout=1)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"broker_settings": {"authorizer.class.name": "no.such.Authorizer"}}, r"(?s)ended with status 1.*no\.such"),
        ({"feature_levels": {"no.such.feature": 1}}, r"(?s)format.*status 1.*no\.such\.feature"),
    ],
)
def test_a_broker_that_does_not_start_is_shown_with_its_log(
    launch: Launch, options: dict[str, dict[str, str]], word: str
) -> None:
    """The error ends with what the program said last, and nothing keeps running."""
    spec = ClusterSpec(release=RELEASE, brokers=1, replicas=1, min_in_sync=1, **options)  # type: ignore[arg-type]
    with pytest.raises(ClusterStartError, match=word):
        launch(spec)


def test_copied_formats_are_what_the_tool_writes(tmp_path: Path) -> None:
    """Apart from the times of the records, their checksums, and the random directory id."""
    plan = Plan(spec=ClusterSpec(release=RELEASE), base=20_000)
    topology = Topology(plan, LoopbackAddresses(plan))
    jvm = Jvm.prepare(
        find_java(), fetch_release(default_release()), configuration=tmp_path, scratch=tmp_path, options=NO_OPTIONS
    )
    cluster_ids = {BrokerId(1): new_uuid(), BrokerId(2): new_uuid()}
    with Keeper(tmp_path / "ledgers") as keeper:
        for party, cluster_id in cluster_ids.items():
            settings = topology.properties(party, str(tmp_path / "tool" / str(party)))
            path = tmp_path / f"{party}.properties"
            path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8")
            log = tmp_path / "format.log"
            format_with_tool(keeper, jvm, path, cluster_id=cluster_id, feature_levels={}, log=log)
    copy_format(tmp_path / "tool" / "1", [(2, tmp_path / "copy")], cluster_id=cluster_ids[BrokerId(2)])
    by_tool, by_copy, source = (tmp_path / each for each in ("tool/2", "copy", "tool/1"))
    files = {path.relative_to(by_tool) for path in by_tool.rglob("*") if path.is_file()}
    assert files == {path.relative_to(by_copy) for path in by_copy.rglob("*") if path.is_file()}
    checkpoints = [path for path in files if path.suffix == ".checkpoint"]
    assert checkpoints
    for path in checkpoints:
        assert timeless((by_tool / path).read_bytes()) == timeless((by_copy / path).read_bytes())
    metas = [settings_of(path / "meta.properties") for path in (by_tool, by_copy, source)]
    identifiers = [meta.pop("directory.id") for meta in metas]
    assert metas[0] == metas[1]
    assert len(set(identifiers)) == 3


def timeless(log: bytes) -> bytes:
    """Record batches (v2) without checksums, and with every time of the last hour, in milliseconds, as zero."""
    kept = b""
    while log:
        size = 12 + int.from_bytes(log[8:12], "big")
        kept += log[:17] + log[21:size]
        log = log[size:]
    now_ms = time.time_ns() // 1_000_000
    for at in range(len(kept) - 7):
        if now_ms - 3_600_000 < int.from_bytes(kept[at : at + 8], "big") <= now_ms:
            kept = kept[:at] + bytes(8) + kept[at + 8 :]
    return kept


def settings_of(path: Path) -> dict[str, str]:
    """A properties file without its comments."""
    lines = path.read_text(encoding="utf-8").splitlines()
    pairs = (line.partition("=") for line in lines if not line.startswith("#"))
    return {key: value for key, _, value in pairs}


def test_the_pool_leases_again_what_is_healthy_and_replaces_what_is_not(launch: Launch) -> None:
    """An equal spec gets the same cluster; another spec, or a crash that nobody healed, gets a new one."""
    spec = replace(SINGLE_BROKER, partitions=1)
    with ClusterPool(launch, settle_s=0.5) as pool:
        first = pool.lease(SINGLE_BROKER)
        assert pool.lease(replace(spec, partitions=SINGLE_BROKER.partitions)) is first
        second = pool.lease(spec)
        assert not first.is_running(BrokerId(1))
        second.crash(BrokerId(1))
        third = pool.lease(spec)
        assert third is not second
        assert problems(third) == []
        said = third.directory / "brokers" / "format.log"
        assert not said.exists(), "what the tool wrote for the second one is kept, so that it did not run again"
        assert [why.split()[0] for why in pool.replacements] == ["Another", "The"]
        assert "1 is not running" in pool.replacements[1]
    assert not third.is_running(BrokerId(1))
    with pytest.raises(ClusterUnhealthyError, match="was ended"):
        await_healthy(third, 60.0)
