"""One partition of a real cluster, read by every source and from the disks of all its brokers: the same records."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from fixtures.clusters.local.cluster import LocalCluster
from fixtures.clusters.spec import ClusterSpec
from tests.support.cluster_client import APP, PATIENCE_S, new_topic, producer_at
from tests.support.real_cluster import RELEASE, launcher
from tests.support.wire_definitions import definitions
from tests.verification.sources.test_reading import options, rows_of
from verification.evidence.row_types import Row
from verification.replicas.command import main as compare_replicas
from verification.sources.client import ClientReader
from verification.sources.ranges import Range
from verification.sources.schema import DELIVERED
from verification.sources.segments import SegmentReader
from verification.sources.wire_log import LogReader
from verification.vocabulary.verdict import ExitCode
from wire.client import Client
from wire.values import Isolation, TopicPartition

pytestmark = pytest.mark.cluster

#: Per transaction, of which there are as many as codecs; every other one is aborted.
RECORDS = 60
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
#: Shorter than a transaction, so that every cut lies inside one.
PIECE = 17


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    # A controller of its own: without a majority of voters the last broker would not stop cleanly.
    with launcher(tmp_path_factory)(ClusterSpec(release=RELEASE, controllers=1)) as started:
        yield started


def write(cluster: LocalCluster, topic: str) -> None:
    """Transactions in every codec, with records without a transaction between them."""
    plain = producer_at(cluster.bootstrap(APP))
    for number, codec in enumerate(CODECS):
        producer = producer_at(
            cluster.bootstrap(APP), transactional_id=f"sources-{codec}", compression_codec=codec, linger_ms=5
        )
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
        for index in range(RECORDS):
            producer.produce(topic, f"{codec} {index} ".encode() * 10, key=b"k" if index % 2 else None)
        producer.flush(PATIENCE_S)
        plain.produce(topic, b"between")
        plain.flush(PATIENCE_S)
        (producer.abort_transaction if number % 2 else producer.commit_transaction)(PATIENCE_S)


def quiet_end(asking: Client, at: TopicPartition) -> int:
    """The high watermark, once nothing is open below it: a commit is answered before its marker is written."""
    until_s = time.monotonic() + PATIENCE_S
    while True:
        end, stable = (asking.list_offsets([at], isolation=each)[at] for each in Isolation)
        if end == stable:
            return end
        assert time.monotonic() < until_s, f"the last stable offset stands at {sorted((end, stable))}"
        time.sleep(0.05)


def delivered(rows: Sequence[Row]) -> list[Row]:
    """The columns that a consumer receives, of the data among the log's rows."""
    return [{name: row[name] for name in DELIVERED.names} for row in rows if row["control"] is None]


def test_every_source_reads_the_same_log(cluster: LocalCluster, capsys: pytest.CaptureFixture[str]) -> None:
    """Fetched as a whole and in pieces, by a client library, and from each stopped broker's files."""
    at = new_topic(cluster, "sources")
    write(cluster, at.topic)
    with Client(cluster.witness_bootstrap, definitions(), timeout_s=PATIENCE_S) as asking:
        end = quiet_end(asking, TopicPartition(at.topic, at.partition))
    ranges = [Range(topic=at.topic, topic_index=0, partition=at.partition, start=0, end=end)]
    whole = rows_of(LogReader(options(cluster.witness_bootstrap, ranges, split_offsets="0")))
    assert [row["offset"] for row in whole] == list(range(end))
    assert end == len(CODECS) * (RECORDS + 2)
    assert [row["control"] for row in whole if row["control"]] == ["commit", "abort", "commit", "abort", "commit"]
    assert rows_of(LogReader(options(cluster.witness_bootstrap, ranges, split_offsets=str(PIECE)))) == whole
    given = rows_of(ClientReader(options(cluster.witness_bootstrap, ranges, isolation="read_uncommitted")))
    assert given == delivered(whole)

    for broker in cluster.brokers:
        cluster.stop(broker)
    disks = [cluster.directory / "data" / cluster.topology.plan.name(broker) for broker in cluster.brokers]
    for disk in disks:
        read = SegmentReader(options("", ranges, directory=str(disk)))
        assert rows_of(read) == whole
    assert compare_replicas([*map(str, disks), "--topic", at.topic]) == ExitCode.CONFORMANT
    assert f"PASS           {at.topic}-{at.partition}" in capsys.readouterr().out
    damage(disks[0], at.topic)
    assert compare_replicas([*map(str, disks), "--topic", at.topic]) == ExitCode.ENVIRONMENT


def damage(disk: Path, topic: str) -> None:
    """Change one byte in the middle of a log."""
    (segment,) = disk.glob(f"{topic}-0/*.log")
    body = bytearray(segment.read_bytes())
    body[len(body) // 2] ^= 1
    segment.write_bytes(body)
