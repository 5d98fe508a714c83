"""The wire protocol against a real broker, compared with librdkafka."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from fixtures.clusters.local.cluster import LocalCluster
from tests.support.real_cluster import SINGLE_BROKER, launcher
from tests.support.wire_definitions import definitions
from wire.client import Client
from wire.columns import columns
from wire.compression import Compression
from wire.connection import Connection
from wire.deadline import Deadline
from wire.errors import BrokerError, DeadlineError
from wire.fetch import Log, fetch_log
from wire.records import Marker, encode
from wire.schema import Body
from wire.values import EARLIEST, CoordinatorType, Isolation, TopicPartition
from wire.values import Producer as ProducerId

pytestmark = pytest.mark.cluster

# Answers take milliseconds; a busy machine with a starting broker takes this.
PATIENCE_S = 60.0
LINES = [(b"k%d" % index, b"order %d " % index * 10) for index in range(200)]
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with launcher(tmp_path_factory)(SINGLE_BROKER) as started:
        yield started


@pytest.fixture(scope="module")
def client(cluster: LocalCluster) -> Iterator[Client]:
    with Client(cluster.witness_bootstrap, definitions(), timeout_s=PATIENCE_S) as asking:
        yield asking


@pytest.fixture
def orders(client: Client, request: pytest.FixtureRequest) -> TopicPartition:
    """A topic of five partitions, named after the test; its first one."""
    name = re.sub(r"\W+", "-", request.node.name)
    client.create_topics({name: 5}, replication_factor=1)
    return TopicPartition(name, 0)


def produce(
    client: Client, at: TopicPartition, batch: bytes, version: int, transactional_id: str | None = None
) -> Body:
    partition = {"Index": at.partition, "Records": batch}
    topics = [{"Name": at.topic, "PartitionData": [partition]}]
    body = {"TransactionalId": transactional_id, "Acks": -1, "TimeoutMs": 30_000, "TopicData": topics}
    answer = client.call("Produce", body, version, broker=client.leader_of(*at))
    found: Body = answer["Responses"][0]["PartitionResponses"][0]
    return found


def add_partition(client: Client, at: TopicPartition, name: str, producer: ProducerId) -> None:
    body = {
        "V3AndBelowTransactionalId": name,
        "V3AndBelowProducerId": producer.id,
        "V3AndBelowProducerEpoch": producer.epoch,
        "V3AndBelowTopics": [{"Name": at.topic, "Partitions": [at.partition]}],
    }
    answer = client.call("AddPartitionsToTxn", body, 3, broker=coordinator(client, name))
    assert answer["ResultsByTopicV3AndBelow"][0]["ResultsByPartition"][0]["PartitionErrorCode"] == 0


def end(client: Client, name: str, producer: ProducerId, version: int, *, commit: bool) -> Body:
    body = {"TransactionalId": name, "ProducerId": producer.id, "ProducerEpoch": producer.epoch, "Committed": commit}
    answer = client.call("EndTxn", body, version, broker=coordinator(client, name))
    assert answer["ErrorCode"] == 0
    return answer


def coordinator(client: Client, name: str) -> int:
    return client.find_coordinator(name, CoordinatorType.TRANSACTION)


def await_decided(client: Client, name: str) -> str:
    """Until the markers are written: EndTxn is answered before that."""

    def ask(deadline: Deadline) -> str:
        state: str = client.describe_transactions([name], deadline)[name]["TransactionState"]
        if not state.startswith("Complete"):
            raise BrokerError(51, state)
        return state

    return client.until(f"{name} to be decided", ask, codes=frozenset({51}))  # type: ignore[arg-type]


def ends(client: Client, at: TopicPartition) -> tuple[int, int]:
    """Last stable offset and high watermark."""
    stable = client.list_offsets([at], isolation=Isolation.READ_COMMITTED)[at]
    return stable, client.list_offsets([at])[at]


def read(client: Client, at: TopicPartition, **options: Any) -> Log:
    start, stop = client.list_offsets([at], timestamp=EARLIEST)[at], client.list_offsets([at])[at]
    return fetch_log(client, at.topic, at.partition, start, stop, **options)


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("versions", [(9, 3), (11, 4), (12, 5)], ids=["v1", "abortable", "v2"])
def test_a_transaction_leaves_data_and_its_marker(
    client: Client, orders: TopicPartition, versions: tuple[int, int], commit: bool
) -> None:
    """In each dialect: open, it holds the LSO; decided, the log has the data, then one marker with the decision."""
    name = orders.topic
    producer = client.init_producer_id(name)
    if versions[0] < 12:
        add_partition(client, orders, name, producer)
    batch = encode(
        LINES,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        base_sequence=0,
        transactional=True,
        compression=Compression.LZ4,
    )
    assert produce(client, orders, batch, versions[0], name)["ErrorCode"] == 0
    assert ends(client, orders) == (0, len(LINES))
    state = client.describe_transactions([name, "never-seen"])
    assert state.keys() == {name}
    assert (state[name]["TransactionState"], state[name]["ProducerId"]) == ("Ongoing", producer.id)
    (open_producer,) = client.describe_producers([orders])[orders]
    assert (open_producer["ProducerId"], open_producer["CurrentTxnStartOffset"]) == (producer.id, 0)

    end(client, name, producer, versions[1], commit=commit)
    assert await_decided(client, name) == ("CompleteCommit" if commit else "CompleteAbort")
    assert client.list_transactions()[name]["ProducerId"] == producer.id
    assert ends(client, orders) == (len(LINES) + 1, len(LINES) + 1)
    log = read(client, orders, isolation=Isolation.READ_COMMITTED)
    data, marker = log
    assert [(record.key, record.value) for record in data.records()] == LINES
    assert (data.marker(), marker.marker()) == (None, Marker.COMMIT if commit else Marker.ABORT)
    assert marker.producer_id == producer.id
    assert marker.producer_epoch == producer.epoch + (versions[1] == 5)
    assert log.aborted == (set() if commit else {(producer.id, 0)})
    assert (log.position, log.high_watermark, log.last_stable_offset) == (201, 201, 201)


def test_reading_committed_beyond_an_open_transaction_ends_in_the_stall_limit(
    client: Client, orders: TopicPartition
) -> None:
    """Pinned to the high watermark, a committed read says where the LSO stands; an uncommitted one reads on."""
    producer = client.init_producer_id(orders.topic)
    batch = encode(
        LINES[:5], producer_id=producer.id, producer_epoch=producer.epoch, base_sequence=0, transactional=True
    )
    assert produce(client, orders, batch, 12, orders.topic)["ErrorCode"] == 0
    assert [batch.count for batch in read(client, orders)] == [5]
    with pytest.raises(DeadlineError, match=r"reading up to 5\); high watermark 5, last stable offset 0"):
        list(read(client, orders, isolation=Isolation.READ_COMMITTED, stall_s=1))
    end(client, orders.topic, producer, 5, commit=False)


def test_every_fetch_version_reads_the_same(client: Client, orders: TopicPartition) -> None:
    """At each version that the broker offers, by name or by topic id, the records are the same bytes."""
    assert produce(client, orders, encode(LINES), 9)["ErrorCode"] == 0
    connection = client.connection(client.leader_of(*orders))
    topic = client.metadata([orders.topic]).topics[orders.topic]
    lowest, highest = connection.versions[1][0], connection.version_for("Fetch")
    found = set()
    for version in range(lowest, highest + 1):
        named: Mapping[str, Any] = {"Topic": orders.topic} if version <= 12 else {"TopicId": topic.id}
        partition = {"Partition": 0, "FetchOffset": 0, "PartitionMaxBytes": 1 << 20}
        body = {"MaxWaitMs": 500, "MinBytes": 1, "Topics": [{**named, "Partitions": [partition]}]}
        body |= {"ReplicaId": -1} if version < 15 else {}
        found.add(connection.call("Fetch", body, version)["Responses"][0]["Partitions"][0]["Records"])
    assert highest >= 13
    assert len(found) == 1


def test_a_read_may_begin_in_the_middle_of_a_batch(client: Client, orders: TopicPartition) -> None:
    """The batch that holds the first offset comes whole, and the read ends with the batch that reaches the end."""
    for _ in range(3):
        produce(client, orders, encode(LINES), 9)
    log = fetch_log(client, *orders, 250, 300, bytes_max=1)
    assert [(batch.base_offset, batch.next_offset) for batch in log] == [(200, 400)]
    whole = fetch_log(client, *orders, 150, 401)
    assert [batch.base_offset for answer in whole.answers() for batch in answer] == [0, 200, 400]
    assert whole.position == 600


def test_a_read_can_name_the_topic_by_its_id(
    client: Client, orders: TopicPartition, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a broker that does not accept topic names in Fetch, the id comes from Metadata."""
    monkeypatch.setattr("wire.fetch.NAMED_MAX", 3)
    produce(client, orders, encode(LINES), 9)
    assert [batch.count for batch in read(client, orders)] == [len(LINES)]


def test_an_offset_outside_the_log_is_the_brokers_error(client: Client, orders: TopicPartition) -> None:
    """Beyond the end there is nothing to wait for: OFFSET_OUT_OF_RANGE is raised at once."""
    with pytest.raises(BrokerError, match=r"at offset 7: the broker answered OFFSET_OUT_OF_RANGE\(1\)"):
        list(fetch_log(client, *orders, 7, 9))


def test_a_replayed_batch_is_appended_once(client: Client, orders: TopicPartition) -> None:
    """The same frame on a second connection is answered with the first one's offset, and the log does not grow."""
    producer = client.init_producer_id()
    batch = encode(LINES, producer_id=producer.id, producer_epoch=0, base_sequence=0)
    first = client.connection(client.leader_of(*orders))
    topics = [{"Name": orders.topic, "PartitionData": [{"Index": 0, "Records": batch}]}]
    request = first.request("Produce", {"Acks": -1, "TimeoutMs": 30_000, "TopicData": topics}, 9)
    answers = [first.receive(first.send(request))]
    with Connection(first.host, first.port, definitions(), timeout_s=PATIENCE_S) as second:
        answers.append(second.receive(second.send(request)))
    partitions = [answer["Responses"][0]["PartitionResponses"][0] for answer in answers]
    assert [(each["ErrorCode"], each["BaseOffset"]) for each in partitions] == [(0, 0), (0, 0)]
    assert ends(client, orders)[1] == len(LINES)


def test_librdkafka_reads_what_we_write(client: Client, cluster: LocalCluster, orders: TopicPartition) -> None:
    """Batches of all codecs pass the broker's validation and are consumed with checked CRCs."""
    for codec in Compression:
        at = TopicPartition(orders.topic, int(codec))
        assert produce(client, at, encode(LINES, compression=codec), 9)["ErrorCode"] == 0
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.witness_bootstrap,
            "group.id": orders.topic,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "check.crcs": True,
        }
    )
    consumer.subscribe([orders.topic])
    found: dict[int, list[tuple[bytes, bytes]]] = {codec: [] for codec in Compression}
    deadline = Deadline.after(PATIENCE_S)
    while sum(map(len, found.values())) < len(LINES) * len(found):
        message = consumer.poll(min(1.0, deadline.remaining_s("librdkafka to read everything")))
        if message is not None:
            assert message.error() is None
            found[message.partition()].append((message.key(), message.value()))
    consumer.commit(asynchronous=False)
    consumer.close()
    assert all(lines == LINES for lines in found.values())
    everywhere = [TopicPartition(orders.topic, codec) for codec in Compression]
    committed = client.offset_fetch(orders.topic, everywhere)
    assert {each.offset for each in committed.values()} == {len(LINES)}
    assert client.offset_fetch(orders.topic).keys() == set(everywhere)


@pytest.mark.parametrize("codec", list(CODECS))
def test_we_read_what_librdkafka_writes(
    client: Client, cluster: LocalCluster, orders: TopicPartition, codec: str
) -> None:
    """An idempotent producer's batches are read in both ways, with its codec, id and sequence."""
    producer = Producer(
        {
            "bootstrap.servers": cluster.witness_bootstrap,
            "compression.type": codec,
            "enable.idempotence": True,
            "linger.ms": 100,
        }
    )
    for key, value in LINES:
        producer.produce(orders.topic, value, key, 0)
    assert producer.flush(PATIENCE_S) == 0
    batches = list(read(client, orders))
    assert {batch.compression for batch in batches} == {Compression(CODECS[codec])}
    assert [(record.key, record.value) for batch in batches for record in batch.records()] == LINES
    fast = columns(batches)
    assert [(fast.key(row), fast.value(row)) for row in range(len(fast))] == LINES
    assert batches[0].base_sequence == 0
    assert min(batch.producer_id for batch in batches) >= 0


def test_the_quorum_and_the_features_are_known(client: Client) -> None:
    """The active controller and the finalized features come from the broker."""
    assert client.describe_quorum()["LeaderId"] in client.metadata([]).brokers
    assert client.connection().features["transaction.version"] in (0, 1, 2)


def test_an_existing_topic_is_not_created_again(client: Client, orders: TopicPartition) -> None:
    """A refusal that is not retriable is raised with its code."""
    with pytest.raises(BrokerError, match=r"TOPIC_ALREADY_EXISTS\(36\)"):
        client.create_topics({orders.topic: 1})


def test_a_deleted_topic_is_gone(client: Client, orders: TopicPartition) -> None:
    """A topic is deleted once; deleting a missing one is refused with its code."""
    client.delete_topics([orders.topic])
    with pytest.raises(BrokerError, match=r"UNKNOWN_TOPIC_OR_PARTITION\(3\)"):
        client.delete_topics([orders.topic])
