"""Measures how fast the wire client writes and reads, compared with the client libraries that people use.

Writing: Produce requests of one batch of a hundred records each, acks=all, five in flight, to one partition of one
broker. The libraries make their batches themselves, so they are configured to make them that large and to wait for
them. The rate is in records per second of the wall clock, because a client that keeps a broker busy is no slower for
doing it with more threads. The wire client encodes each batch anew, as scripts do.

Reading: the log that was written last, from its start to its end. The wire client fetches, checks checksums and decodes
every record's offset, time, key and value (`wire.columns`, which Spark's source uses). The consumer makes a message
object of each record and checks checksums too. The rate is in records per second of processor time, because readers run
one to a core.

Every client must have written, or received, exactly the expected number of records.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measuring.errors import WorthlessRateError
from benchmarks.measuring.ratio import Ratio, Unit
from chaos.cluster import Site
from fixtures.clients.plain_reader import read_all
from fixtures.clusters.local.runtime import LocalRuntime
from fixtures.clusters.locks.releases import clients_jar
from fixtures.clusters.spec import ClusterSpec
from wire.client import Client
from wire.columns import columns
from wire.connection import Pending
from wire.fetch import fetch_log
from wire.messages import Definitions
from wire.records import Batch, encode
from wire.router import check
from wire.values import TopicPartition

RECORDS_PER_BATCH = 100
REQUESTS = 2_000
RECORDS = RECORDS_PER_BATCH * REQUESTS
#: The default of the libraries where order is kept.
IN_FLIGHT = 5
#: A record of an ordinary topic: a short key and a small body.
KEY, VALUE = b"order-0000", b"v" * 100
#: A batch of so many records with their overhead (12 bytes each, 61 in all); both libraries close it when it is full.
BATCH_BYTES = 61 + RECORDS_PER_BATCH * (len(KEY) + len(VALUE) + 12)
#: The libraries wait this long for a batch to become full; filling one takes them less than a millisecond.
LINGER_MS = 50
#: Produce versions up to this one name the topic.
NAMED_MAX = 12
DELIVERED_WITHIN_S = 120.0
#: Batches whose records are decoded together; a response to Fetch holds about as many.
BATCHES_AT_ONCE = 500


def measure(runtime: LocalRuntime, directory: Path, *, pairs: int, say: Callable[[str], None]) -> tuple[Ratio, ...]:
    """Write and read `pairs` times by turns on one broker. Raises WorthlessRateError, and the errors of a cluster."""
    spec = ClusterSpec(
        release=str(runtime.files.release), brokers=1, replicas=1, min_in_sync=1, partitions=1, sites=(Site("app"),)
    )
    cluster = runtime.launch(spec, directory, keep_data=False)
    try:
        definitions = Definitions.load(clients_jar(runtime.files))
        with Client(cluster.witness_bootstrap, definitions, client_id="bench") as client:
            rounds = [_round(client, cluster.witness_bootstrap, number, say) for number in range(1, pairs + 1)]
    finally:
        cluster.close()
    return ratios(rounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRound:
    """Records per second: of the clock for writing, of processor time for reading."""

    wire: float
    kafka_python: float
    librdkafka: float
    decoding: float
    consuming: float


def ratios(rounds: list[ClientRound]) -> tuple[Ratio, ...]:
    """The wire client compared with each library."""

    def ratio(subject: str, against: str, pair: Callable[[ClientRound], tuple[float, float]]) -> Ratio:
        return Ratio(subject=subject, against=against, unit=Unit.RECORDS_PER_S, pairs=tuple(map(pair, rounds)))

    writing = f"the wire client's Produce of {RECORDS_PER_BATCH}-record batches"
    return (
        ratio(writing, "kafka-python's", lambda each: (each.wire, each.kafka_python)),
        ratio(writing, "librdkafka's (confluent-kafka)", lambda each: (each.wire, each.librdkafka)),
        ratio(
            "the wire client's reading, per second of one core",
            "confluent-kafka's consumer",
            lambda each: (each.decoding, each.consuming),
        ),
    )


def _round(client: Client, bootstrap: str, number: int, say: Callable[[str], None]) -> ClientRound:
    rates: dict[str, float] = {}
    writers = {"wire": _wire, "kafka_python": _kafka_python, "librdkafka": _librdkafka}
    for name, write in writers.items():
        at = TopicPartition(f"bench-{name.replace('_', '-')}-{number}", 0)
        client.create_topics({at.topic: 1})
        client.list_offsets([at])
        began = time.monotonic()
        write(client, bootstrap, at)
        rates[name] = RECORDS / (time.monotonic() - began)
        if (end := client.list_offsets([at])[at]) != RECORDS:
            raise WorthlessRateError(f"{name} should have written {RECORDS} records, but the log has {end} offsets.")
    for name, read in {"decoding": _decode, "consuming": _consume}.items():
        began = time.process_time()
        count = read(client, bootstrap, at)
        rates[name] = RECORDS / (time.process_time() - began)
        if count != RECORDS:
            raise WorthlessRateError(f"{RECORDS} records are in the log, but {name} returned {count}.")
    say(f"round {number}, records/s: " + ", ".join(f"{name} {rate:,.0f}" for name, rate in rates.items()))
    return ClientRound(**rates)


def _wire(client: Client, _: str, at: TopicPartition) -> None:
    with client.open(client.leader_of(*at)) as connection:
        version = connection.version_for("Produce", at_most=NAMED_MAX)
        waiting: deque[Pending] = deque()

        def answered() -> None:
            answer = connection.receive(waiting.popleft())
            check(answer["Responses"][0]["PartitionResponses"][0]["ErrorCode"], f"Produce to {at}")

        for _request in range(REQUESTS):
            batch = encode([(KEY, VALUE)] * RECORDS_PER_BATCH)
            data = [{"Name": at.topic, "PartitionData": [{"Index": at.partition, "Records": batch}]}]
            body = {"TransactionalId": None, "Acks": -1, "TimeoutMs": 30_000, "TopicData": data}
            waiting.append(connection.send(connection.request("Produce", body, version)))
            if len(waiting) >= IN_FLIGHT:
                answered()
        while waiting:
            answered()


def _kafka_python(_: Client, bootstrap: str, at: TopicPartition) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        acks="all",
        enable_idempotence=False,
        batch_size=BATCH_BYTES,
        linger_ms=LINGER_MS,
        max_in_flight_requests_per_connection=IN_FLIGHT,
    )
    try:
        for _record in range(RECORDS):
            producer.send(at.topic, key=KEY, value=VALUE, partition=at.partition)
        producer.flush(DELIVERED_WITHIN_S)
    finally:
        producer.close(DELIVERED_WITHIN_S)


def _librdkafka(_: Client, bootstrap: str, at: TopicPartition) -> None:
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "batch.num.messages": RECORDS_PER_BATCH,
            "linger.ms": LINGER_MS,
            "max.in.flight": IN_FLIGHT,
            "queue.buffering.max.messages": RECORDS,
        }
    )
    for _record in range(RECORDS):
        producer.produce(at.topic, key=KEY, value=VALUE, partition=at.partition)
    if left := producer.flush(DELIVERED_WITHIN_S):
        raise WorthlessRateError(f"librdkafka did not deliver {left} of {RECORDS} records.")


def _decode(client: Client, _: str, at: TopicPartition) -> int:
    log = fetch_log(client, *at, 0, RECORDS)
    return sum(len(columns(batches)) for batches in together(iter(log)))


def together(batches: Iterator[Batch]) -> Iterator[list[Batch]]:
    """Groups of up to BATCHES_AT_ONCE batches."""
    held: list[Batch] = []
    for batch in batches:
        held.append(batch)
        if len(held) == BATCHES_AT_ONCE:
            yield held
            held = []
    if held:
        yield held


def _consume(_: Client, bootstrap: str, at: TopicPartition) -> int:
    return read_all(bootstrap, {(at.topic, at.partition): (0, RECORDS)})
