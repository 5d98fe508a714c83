"""Spark's own Kafka connector as a source: its rows where the session has it, and the error where it has not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from unittest.mock import MagicMock

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.errors import AnalysisException

from fixtures.clusters.local.cluster import LocalCluster
from fixtures.clusters.locks.spark_connector import connector_jars
from fixtures.waiting import await_until
from tests.support.cluster_client import PATIENCE_S, producer_at
from tests.support.paths import ROOT
from tests.support.real_cluster import SINGLE_BROKER, launcher
from tests.support.wire_definitions import definitions
from tests.verification.sources.test_reading import options, place, rows_of
from verification.evidence.row_types import Row
from verification.sources import connector
from verification.sources.client import ClientReader
from verification.sources.ranges import Range
from verification.vocabulary.errors import CaptureError
from verification.vocabulary.identity import IDENTITY_LENGTH, Identity, RecordKind
from wire.client import Client
from wire.values import Isolation, TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC, PARTITIONS = "connected", 2
#: A session and four small reads take half a minute; the rest is for a machine that is busy with clusters.
WITHIN_S = 300.0
#: Reads in a session of its own, because jars are given to a JVM when it starts.
PROGRAM = """import json, sys
from verification.spark.session import start
from verification.sources.reading import read
jars, asked = sys.argv[1], json.loads(sys.argv[2])
spark = start(options={"spark.jars": jars})
print(json.dumps([read(spark, "connector", each).toArrow().to_pylist() for each in asked]))"""


def values() -> list[bytes | None]:
    """Ours of several sizes, copies, ours with a byte changed, cut, foreign, null; and a checksum over no numbers."""
    one = Identity(
        run="connected",
        process=3,
        operation=4,
        kind=RecordKind.PLAIN,
        index=5,
        count=6,
        topic_index=7,
        intended_partition=1,
        send_order=2**33,
    )
    copy = Identity(
        **{name: getattr(one, name) for name in one.__slots__} | {"source_partition": 1, "source_offset": 9}
    )
    body = b"OP1".ljust(IDENTITY_LENGTH - 8, b"x")
    return [
        one.encode(),
        one.encode(100),
        one.encode(500),
        copy.encode(97),
        one.encode().replace(b"P", b"T"),
        one.encode()[:95],
        one.encode()[:-1] + b"\xff",
        body + f"{zlib.crc32(body):08x}".encode(),
        b"\x80" * 120,
        b"foreign",
        b"",
        None,
    ]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with launcher(tmp_path_factory)(SINGLE_BROKER) as started:
        yield started


def write(bootstrap: str) -> None:
    """Three transactions, the second aborted, with every value on each partition."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    (made,) = admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)]).values()
    made.result(PATIENCE_S)
    producer = producer_at(bootstrap, transactional_id="connected")
    producer.init_transactions(PATIENCE_S)
    for number in range(3):
        producer.begin_transaction()
        for value in values():
            for partition in range(PARTITIONS):
                producer.produce(TOPIC, value, partition=partition, headers=[("h", b"1")])
        producer.flush(PATIENCE_S)
        (producer.abort_transaction if number == 1 else producer.commit_transaction)(PATIENCE_S)


def connected(asked: Sequence[dict[str, str]]) -> list[list[Row]]:
    """The connector's row for each, in order of place."""
    jars = ",".join(str(jar) for jar in connector_jars())
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, jars, json.dumps(list(asked))],
        cwd=ROOT,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [sorted(rows, key=place) for rows in json.loads(done.stdout.splitlines()[-1])]


@pytest.mark.cluster
@pytest.mark.deep
def test_the_connector_gives_what_a_client_is_given(cluster: LocalCluster) -> None:
    """The proven jars on the Spark of the lock: the rows that librdkafka gives, in both isolations, whole and in part."""
    bootstrap, length = cluster.witness_bootstrap, len(values())
    write(bootstrap)
    places = [TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)]
    with Client(bootstrap, definitions(), timeout_s=PATIENCE_S) as asking:
        end = 3 * (length + 1)
        # A commit is answered before its markers are written.
        await_until(
            lambda: {at for each in Isolation for at in asking.list_offsets(places, isolation=each).values()} == {end},
            f"both partitions to end at {end}",
            timeout_s=PATIENCE_S,
        )
    whole = [Range(topic=TOPIC, topic_index=4, partition=each, start=0, end=end) for each in range(PARTITIONS)]
    part = [Range(topic=TOPIC, topic_index=4, partition=1, start=3, end=length + 5)]
    asked = [
        options(bootstrap, ranges, isolation=isolation, split_offsets="7")
        for ranges in (whole, part)
        for isolation in ("read_uncommitted", "read_committed")
    ]
    expected = [rows_of(ClientReader(each)) for each in asked]
    assert [len(rows) for rows in expected] == [6 * length, 4 * length, length + 1, length - 3]
    assert connected(asked) == expected


@pytest.mark.spark
def test_a_session_without_the_connector_says_which_to_start_it_with(spark: SparkSession) -> None:
    """One sentence with the coordinates; nothing to read needs no connector."""
    from verification.sources.connector import PROVEN
    from verification.sources.reading import read

    one = Range(topic=TOPIC, topic_index=0, partition=0, start=0, end=1)
    with pytest.raises(CaptureError, match=r"spark\.jars\.packages=org\.apache\.spark:spark-sql-kafka") as raised:
        read(spark, "connector", options("127.0.0.1:9", [one], isolation="read_committed"))
    assert PROVEN[spark.version] in str(raised.value)
    assert "\n" not in str(raised.value)
    with pytest.raises(CaptureError, match="two ranges are of connected-0"):
        read(spark, "connector", options("127.0.0.1:9", [one, one], isolation="read_committed"))
    nothing = Range(topic=TOPIC, topic_index=0, partition=0, start=1, end=1)
    assert read(spark, "connector", options("127.0.0.1:9", [nothing], isolation="read_committed")).count() == 0


@pytest.mark.parametrize(
    ("version", "raised", "said"),
    [
        (
            "4.3.0",
            AnalysisException(message="Failed to find data source: kafka."),
            r"sql-kafka-0-10_2\.13:4\.2\.0 .* tried",
        ),
        (
            "4.9.9",
            AnalysisException(message="Failed to find data source: kafka."),
            r"_2\.13:4\.9\.9 \(if that was publ",
        ),
        (
            "4.3.0",
            RuntimeError("An error occurred while calling o7.load.\n: java.lang.NoSuchMethodError: 'scala.x'\n\tat y"),
            r"does not fit Spark 4\.3\.0: java\.lang\.NoSuchMethodError: 'scala\.x'$",
        ),
    ],
)
def test_a_connector_that_is_not_there_or_does_not_fit_is_one_sentence(
    version: str, raised: Exception, said: str
) -> None:
    """Which one to start with, by the version of Spark; of one that does not fit the JVM's own word."""
    session = MagicMock(version=version)
    session.read.format.return_value.options.return_value.load.side_effect = raised
    one = Range(topic=TOPIC, topic_index=0, partition=0, start=0, end=1)
    with pytest.raises(CaptureError, match=said) as told:
        connector.frame(session, options("127.0.0.1:9", [one], isolation="read_committed"))
    assert "\n" not in str(told.value)
