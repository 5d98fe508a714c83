"""Writes the log to read: transactions of a real producer, with identities as in runs."""

from __future__ import annotations

from confluent_kafka import KafkaException, Producer

from benchmarks.reading.errors import UnfilledError
from fixtures.waiting import await_until
from verification.vocabulary.identity import Identity, RecordKind
from wire.client import Client
from wire.values import Isolation, TopicPartition

TOPIC = "bench-reading"
RUN = "bench"
PARTITIONS = 4
#: Over all partitions: 500 records to a batch, as a busy producer makes of values of a hundred bytes.
RECORDS_PER_TRANSACTION = 2_000
VALUE_BYTES = 100
WITHIN_S = 120.0


def fill(asking: Client, bootstrap: str, records: int) -> dict[int, int]:
    """Write and commit `records` records, rounded up to whole transactions; returns the end of each partition.

    Raises UnfilledError, WireError and WaitTimeoutError.
    """
    asking.create_topics({TOPIC: PARTITIONS})
    transactions = -(-records // RECORDS_PER_TRANSACTION)
    try:
        _write(bootstrap, transactions)
    except KafkaException as error:
        raise UnfilledError(f"The log to read was not written: {error}.") from error
    places = [TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)]
    wanted = transactions * (RECORDS_PER_TRANSACTION // PARTITIONS + 1)

    def ends() -> set[int]:
        return {end for level in Isolation for end in asking.list_offsets(places, isolation=level).values()}

    # A broker answers a commit before it writes the markers.
    await_until(
        lambda: ends() == {wanted}, f"every partition to end at {wanted}", timeout_s=WITHIN_S, last=lambda: str(ends())
    )
    return dict.fromkeys(range(PARTITIONS), wanted)


def _write(bootstrap: str, transactions: int) -> None:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": "bench-reading",
            "linger.ms": 50,
            "queue.buffering.max.messages": 4 * RECORDS_PER_TRANSACTION,
            "log_level": 0,
        }
    )
    producer.init_transactions(WITHIN_S)
    for operation in range(transactions):
        producer.begin_transaction()
        for index in range(RECORDS_PER_TRANSACTION):
            producer.produce(TOPIC, record_value(operation, index), partition=index % PARTITIONS)
        producer.commit_transaction(WITHIN_S)


def record_value(operation: int, index: int) -> bytes:
    """The value of one record of a transaction."""
    partition = index % PARTITIONS
    return Identity(
        run=RUN,
        process=1,
        operation=operation,
        kind=RecordKind.TRANSACTION,
        index=index,
        count=RECORDS_PER_TRANSACTION,
        topic_index=0,
        intended_partition=partition,
        send_order=operation * (RECORDS_PER_TRANSACTION // PARTITIONS) + index // PARTITIONS,
    ).encode(VALUE_BYTES)
