"""The user's own settings: files are read as Java reads them, and what the harness must own is refused by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fixtures.clusters.local.loopback import LoopbackAddresses
from fixtures.clusters.locks.releases import Release
from fixtures.clusters.network.port_plan import PortPlan
from fixtures.clusters.network.topology import Topology
from fixtures.clusters.spec import ClusterSpec
from runner.config import Only, Runtime, unreported
from runner.environment import Environment
from runner.settings.own_settings import (
    OwnSettings,
    OwnSettingsError,
    SettingsOf,
    parse_settings,
    read_settings,
    reason_of,
)
from runner.upgrades.path import UpgradePath
from tests.support.paths import FIELD_FILES

#: Written by the harness as well, for speed or quiet alone: the user's value may replace it.
FREE = ("broker.session.timeout.ms", "replica.lag.time.max.ms", "log.segment.bytes", "num.io.threads", "num.partitions")


FILES = FIELD_FILES / "server-properties"
#: For each file its settings that reach brokers or topics.
FIELD = {
    "apache-defaults": {},
    "append-time": {"log.message.timestamp.type": "LogAppendTime", "compression.type": "zstd"},
    "broker-segment-512k": {"log.segment.bytes": "524288"},
    "msk-default": {
        "num.io.threads": "8",
        "num.network.threads": "5",
        "num.partitions": "1",
        "num.replica.fetchers": "2",
        "replica.lag.time.max.ms": "30000",
        "socket.receive.buffer.bytes": "102400",
        "socket.request.max.bytes": "104857600",
        "socket.send.buffer.bytes": "102400",
        "unclean.leader.election.enable": "true",
        "zookeeper.session.timeout.ms": "18000",
    },
    "offsets-codec-gzip": {"offsets.topic.compression.codec": "1"},
    "strimzi-config-block.yaml": {},
    "verification-off": {"transaction.partition.verification.enable": "false"},
}


@pytest.mark.parametrize("name", FIELD)
def test_a_file_as_people_have_it_is_accepted(name: str) -> None:
    """Settings of the harness that mean the same here stay its own."""
    assert read_settings(str(FILES / f"{name}.properties"), SettingsOf.BROKERS) == FIELD[name]


def test_each_field_file_has_an_outcome() -> None:
    """A new file needs one."""
    topics = {"topics-segment-512k": {"segment.bytes": "524288"}, "msk-reduced": None}
    assert {each.name.removesuffix(".properties") for each in FILES.iterdir()} == {*FIELD, *topics}
    file = str(FILES / "topics-segment-512k.properties")
    assert read_settings(file, SettingsOf.TOPICS) == topics["topics-segment-512k"]
    assert len(read_settings(str(FILES / "msk-reduced.properties"), SettingsOf.BROKERS)) == 7


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "config:\n  a.b: 3 # replicas\n  'c.d': \"true\"\n  # e: 1\n  f.g: 'x'\n",
            {"a.b": "3", "c.d": "true", "f.g": "x"},
        ),
        ('a: "1"\nb = 2\n', {"a": '"1"', "b": "2"}),
        ("a.b: h:1,i:2\n", {"a.b": "h:1,i:2"}),
        ("a\\u002eb=c \\\n  d\n", {"a.b": "c d"}),
    ],
)
def test_a_block_of_a_kubernetes_resource_is_read_too(text: str, found: dict[str, str]) -> None:
    """With quotes, comments and its head; a file with another separator is one of Java."""
    assert parse_settings(text.encode()) == found


def test_all_refused_settings_are_named_at_once(tmp_path: Path) -> None:
    """Each with its reason, and with the value that was refused."""
    file = tmp_path / "server.properties"
    file.write_text("log.dirs=/data\nlisteners=x\nadvertised.listeners=y\nlog.retention.ms=60000\nnum.io.threads=8\n")
    with pytest.raises(OwnSettingsError) as found:
        read_settings(str(file), SettingsOf.BROKERS)
    head, *lines = str(found.value).splitlines()
    assert head.endswith("server.properties has settings that the harness must own:")
    assert [each.partition(": ")[0].strip() for each in lines] == [
        "log.dirs=/data",
        "listeners=x, advertised.listeners=y",
        "log.retention.ms=60000",
    ]


@pytest.mark.parametrize("value", ["-1", "168", "24"])
def test_a_retention_that_no_run_reaches_is_harmless(value: str, tmp_path: Path) -> None:
    """From a day on."""
    (tmp_path / "it").write_text(f"log.retention.hours={value}\n")
    assert read_settings(str(tmp_path / "it"), SettingsOf.BROKERS) == {}


@pytest.mark.parametrize(
    ("name", "owner", "reason"),
    [
        ("listeners", SettingsOf.BROKERS, "every connection passes a link of its own"),
        ("listener.name.internal.ssl.keystore.location", SettingsOf.BROKERS, "every connection passes a link"),
        ("log.dirs", SettingsOf.BROKERS, "a directory of its own"),
        ("controller.quorum.voters", SettingsOf.BROKERS, "which nodes the cluster has"),
        ("transaction.state.log.replication.factor", SettingsOf.BROKERS, "have the replicas of"),
        ("min.insync.replicas", SettingsOf.TOPICS, "may lose acknowledged records"),
        ("retention.ms", SettingsOf.TOPICS, "the log is evidence"),
    ],
)
def test_a_setting_of_the_harness_is_refused_with_its_reason(
    name: str, owner: SettingsOf, reason: str, tmp_path: Path
) -> None:
    """The sentence names the file, the setting and the reason."""
    assert reason in str(reason_of(name, owner))
    file = tmp_path / "own.properties"
    file.write_text(f"compression.type=zstd\n{name}=1\n", encoding="utf-8")
    with pytest.raises(OwnSettingsError, match=rf"(?s)own\.properties has settings that the .*{name}=1: .*{reason}"):
        read_settings(str(file), owner)


def test_everything_that_places_a_node_is_owned_by_the_harness() -> None:
    """A cluster whose user sets any of these would not start, or connections would pass no link."""
    plan = PortPlan(spec=ClusterSpec(release="4.3.1"), base=20_000)
    bare = set(Topology(plan, LoopbackAddresses(plan)).properties(plan.spec.broker_ids[0], "data"))
    placed = {name for name in bare if name.startswith(("listener", "advertised", "node", "process", "log.dir"))}
    assert len(placed) >= 6
    assert [name for name in placed if reason_of(name, SettingsOf.BROKERS) is None] == []
    assert [name for name in FREE if reason_of(name, SettingsOf.BROKERS) is not None or name not in bare] == []


def test_every_command_repeats_the_files(tmp_path: Path) -> None:
    """That of a run, of a scenario and of an upgrade; without them a repetition would show something else."""
    own = OwnSettings(brokers={"a.b": "1"}, written=" --server-properties own.properties")
    plain = unreported(Release.parse("4.3.1"), tmp_path, runtime=Runtime.LOCAL)
    run = replace(plain, own_settings=own)
    path = UpgradePath(source=Release.parse("4.1.2"), target=Release.parse("4.3.1"))
    for each in (run, replace(run, only=Only.PROTOCOL), replace(run, upgrade=path)):
        assert each.replay.count(" --server-properties own.properties") == 1
        assert each.command.count(" --server-properties own.properties") == 1
    assert "your settings: brokers: a.b=1" in run.header
    assert "--server-properties" not in plain.command


def test_a_cluster_gets_the_settings_but_keeps_those_that_a_scenario_is_about(tmp_path: Path) -> None:
    """At the one place where clusters start."""
    launched: list[ClusterSpec] = []
    brokers: Any = SimpleNamespace(launch=lambda spec, *_, **__: launched.append(spec))
    own = OwnSettings(brokers={"num.io.threads": "8", "a.b": "1"})
    environment = Environment(
        brokers=brokers, files=cast(Any, None), java=None, clusters_directory=tmp_path, own_settings=own
    )
    environment.launch(ClusterSpec(release="4.3.1", broker_settings={"a.b": "2"}))
    assert launched[0].broker_settings == {"num.io.threads": "8", "a.b": "2"}


def test_protocol_cases_keep_the_timestamps_that_they_write() -> None:
    """They roll segments by them; everything else reaches their clusters."""
    clock = {"log.message.timestamp.type": "LogAppendTime", "compression.type": "zstd"}
    own = OwnSettings(brokers=clock, topics={"message.timestamp.type": "LogAppendTime"}, written=" x")
    assert own.for_cases == OwnSettings(brokers={"compression.type": "zstd"}, topics={}, written=" x")


def test_warnings_come_before_the_run(tmp_path: Path) -> None:
    """Of the releases that run in it."""
    own = OwnSettings(topics={"segment.bytes": "524288"})
    run = replace(unreported(Release.parse("4.0.2"), tmp_path, runtime=Runtime.LOCAL), own_settings=own)
    path = UpgradePath(source=Release.parse("4.0.2"), target=Release.parse("4.1.2"))
    upgrade = replace(run, release=path.target, upgrade=path)
    assert not [each for each in run.header if each.startswith("warning")]
    assert [each for each in upgrade.header if each.startswith("warning: segment.bytes=524288 is accepted up to")]


def test_a_file_that_cannot_be_read_is_named() -> None:
    """Without a file there are no settings."""
    assert read_settings(None, SettingsOf.TOPICS) == {}
    with pytest.raises(OwnSettingsError, match=r"no-such\.properties cannot be read: No such file"):
        read_settings("no-such.properties", SettingsOf.TOPICS)
