"""The user's own settings: files are read as Java reads them, and what the harness must own is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.clusters.local.loopback import LoopbackAddresses
from fixtures.clusters.network.port_plan import PortPlan
from fixtures.clusters.network.topology import Topology
from fixtures.clusters.spec import ClusterSpec
from runner.upgrades.own_settings import OwnSettingsError, SettingsOf, parse_properties, read_settings, reason_of

#: Written by the harness as well, for speed or quiet alone: the user's value may replace it.
FREE = ("broker.session.timeout.ms", "replica.lag.time.max.ms", "log.segment.bytes", "num.io.threads", "num.partitions")


def test_properties_are_read_as_java_reads_them() -> None:
    """Three separators, comments, continued lines, escaped characters; a key alone has an empty value."""
    text = "# a comment\n! another\na=1\nb : 2\nc 3\nd=x=y\n  e\\:f = one, \\\n    two\n\ng\n"
    assert dict(parse_properties(text)) == {"a": "1", "b": "2", "c": "3", "d": "x=y", "e:f": "one, two", "g": ""}


@pytest.mark.parametrize(
    ("name", "owner", "reason"),
    [
        ("listeners", SettingsOf.BROKERS, "every connection passes a link of its own"),
        ("listener.name.internal.ssl.keystore.location", SettingsOf.BROKERS, "every connection passes a link"),
        ("log.dirs", SettingsOf.BROKERS, "a directory of its own"),
        ("controller.quorum.voters", SettingsOf.BROKERS, "which nodes the cluster has"),
        ("transaction.state.log.replication.factor", SettingsOf.BROKERS, "internal topics"),
        ("min.insync.replicas", SettingsOf.TOPICS, "may lose acknowledged records"),
        ("retention.ms", SettingsOf.TOPICS, "the log is evidence"),
    ],
)
def test_a_setting_of_the_harness_is_refused_with_its_reason(
    name: str, owner: SettingsOf, reason: str, tmp_path: Path
) -> None:
    """The sentence names the file, the setting and the reason."""
    file = tmp_path / "own.properties"
    file.write_text(f"compression.type=zstd\n{name}=1\n", encoding="utf-8")
    with pytest.raises(OwnSettingsError, match=rf"own\.properties sets {name}, which the harness must own: .*{reason}"):
        read_settings(str(file), owner)


def test_everything_that_places_a_node_is_owned_by_the_harness() -> None:
    """A cluster whose user sets any of these would not start, or connections would pass no link."""
    plan = PortPlan(spec=ClusterSpec(release="4.3.1"), base=20_000)
    bare = set(Topology(plan, LoopbackAddresses(plan)).properties(plan.spec.broker_ids[0], "data"))
    placed = {name for name in bare if name.startswith(("listener", "advertised", "node", "process", "log.dir"))}
    assert len(placed) >= 6
    assert [name for name in placed if reason_of(name, SettingsOf.BROKERS) is None] == []
    assert [name for name in FREE if reason_of(name, SettingsOf.BROKERS) is not None or name not in bare] == []


def test_a_file_that_cannot_be_read_is_named() -> None:
    """Without a file there are no settings."""
    assert read_settings(None, SettingsOf.TOPICS) == {}
    with pytest.raises(OwnSettingsError, match=r"no-such\.properties cannot be read: No such file"):
        read_settings("no-such.properties", SettingsOf.TOPICS)
