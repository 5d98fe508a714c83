"""Measures transactions of protocol 2 against those of protocol 1, by partitions, with requests of the wire client.

confluent-kafka speaks only protocol 1. One cluster accepts both, and the version of a request decides. Protocol 1 adds all
partitions at the coordinator with one request, sends the records, and ends the transaction. Protocol 2 (KIP-890) only sends
records and the end: the leaders add their partitions themselves, and the end raises the epoch. Transactions follow each
other without a pause. CONCURRENT_TRANSACTIONS means that the one before is not complete; then the request is repeated
after `PAUSE_S`, and that time counts.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from statistics import median
from typing import Any

from benchmarks.cost.cost_cluster import CostCluster
from benchmarks.cost.producing import VALUE
from benchmarks.cost.rows import CostRow
from benchmarks.cost.throughput import MANY_PARTITIONS
from benchmarks.measuring.ratio import Ratio, Unit
from reports.loading.availability import latency_of
from wire.codes import ErrorCode
from wire.records import encode
from wire.router import check
from wire.values import CoordinatorType, Producer, TopicPartition

TRANSACTIONS = 40
#: The pause of librdkafka.
PAUSE_S = 0.02
ADD_VERSION = 3
PRODUCE_WITHIN_MS = 15_000


class TransactionProtocol(IntEnum):
    """The transaction protocols; KIP-890 brought the second."""

    ONE = 1
    TWO = 2


#: The last versions of Produce and EndTxn that a producer of each protocol sends, with topics by name.
PRODUCE_VERSION = {TransactionProtocol.ONE: 11, TransactionProtocol.TWO: 12}
END_VERSION = {TransactionProtocol.ONE: 4, TransactionProtocol.TWO: 5}

#: Milliseconds of each transaction from its first request to its commit, and of the commit alone.
Times = Mapping[str, list[float]]


def measure(cluster: CostCluster, rounds: int, say: Callable[[str], None]) -> tuple[CostRow, ...]:
    """A row for each number of partitions. Raises WireError; VersionError before Kafka 4.0."""
    found: dict[int, list[Times]] = {each: [] for each in MANY_PARTITIONS}
    for number in range(1, rounds + 1):
        for partitions in MANY_PARTITIONS:
            with cluster.topic(f"cost-protocols-{number}-{partitions}", partitions) as topic:
                took: dict[str, list[float]] = {}
                for protocol in TransactionProtocol:
                    by = ProtocolProducer.initialised(cluster, f"{topic}-{protocol}", topic, partitions, protocol)
                    took |= by.times()
            found[partitions].append(took)
            said = ", ".join(f"{name} {median(took_ms):.1f} ms" for name, took_ms in took.items())
            say(f"round {number} of {rounds}, {partitions} partitions: {said}")
    return tuple(row(partitions, took) for partitions, took in found.items())


def row(partitions: int, rounds: list[Times]) -> CostRow:
    """The times of all rounds as a row; the ratio is that of whole transactions."""
    name = "1 partition" if partitions == 1 else f"{partitions} partitions"
    one, two = (f"protocol {protocol}" for protocol in TransactionProtocol)
    return CostRow(
        name=name,
        at=partitions,
        ratio=Ratio(
            subject=f"transaction of {two}, {name}",
            against=one,
            unit=Unit.MILLISECONDS,
            pairs=tuple((median(each[two]), median(each[one])) for each in rounds),
        ),
        latencies={each: latency_of([ms for took in rounds for ms in took[each]]) for each in rounds[0]},
    )


@dataclass(slots=True, kw_only=True)
class ProtocolProducer:
    """A transactional producer that writes a record to each partition of a topic in every transaction."""

    cluster: CostCluster
    name: str
    protocol: TransactionProtocol
    coordinator: int
    leaders: Mapping[TopicPartition, int]
    now: Producer
    sequence: int = 0
    commits_ms: list[float] = field(default_factory=list)

    @classmethod
    def initialised(
        cls, cluster: CostCluster, name: str, topic: str, partitions: int, protocol: TransactionProtocol
    ) -> ProtocolProducer:
        """With a producer id. Raises WireError."""
        return cls(
            cluster=cluster,
            name=name,
            protocol=protocol,
            now=cluster.client.init_producer_id(name),
            coordinator=cluster.client.find_coordinator(name, CoordinatorType.TRANSACTION),
            leaders=cluster.client.leaders(TopicPartition(topic, each) for each in range(partitions)),
        )

    def times(self) -> dict[str, list[float]]:
        """The milliseconds of transactions and commits, after a transaction that does not count. Raises WireError."""
        self._transaction()
        self.commits_ms.clear()
        took_ms = []
        for _ in range(TRANSACTIONS):
            began_s = time.monotonic()
            self._transaction()
            took_ms.append((time.monotonic() - began_s) * 1000)
        return {f"protocol {self.protocol}": took_ms, f"commit {self.protocol}": list(self.commits_ms)}

    def _transaction(self) -> None:
        if self.protocol is TransactionProtocol.ONE:
            self._add()
        self.produce()
        asked_s = time.monotonic()
        self.commit()
        self.commits_ms.append((time.monotonic() - asked_s) * 1000)

    def _add(self) -> None:
        topic = next(iter(self.leaders)).topic
        body = {
            "V3AndBelowTransactionalId": self.name,
            "V3AndBelowProducerId": self.now.id,
            "V3AndBelowProducerEpoch": self.now.epoch,
            "V3AndBelowTopics": [{"Name": topic, "Partitions": [each.partition for each in self.leaders]}],
        }
        while True:
            answer = self.cluster.client.call("AddPartitionsToTxn", body, ADD_VERSION, broker=self.coordinator)
            results = answer["ResultsByTopicV3AndBelow"][0]["ResultsByPartition"]
            codes = {each["PartitionErrorCode"] for each in results}
            if ErrorCode.CONCURRENT_TRANSACTIONS not in codes:
                break
            time.sleep(PAUSE_S)
        for code in codes:
            check(code, f"AddPartitionsToTxn of {self.name}")

    def produce(self) -> None:
        """Send a record to every partition, to all leaders at the same time. Raises WireError."""
        batch = encode(
            [(None, VALUE)],
            producer_id=self.now.id,
            producer_epoch=self.now.epoch,
            base_sequence=self.sequence,
            transactional=True,
        )
        left = set(self.leaders)
        while left:
            refused = self._produce_once(left, batch)
            if refused:
                time.sleep(PAUSE_S)
            left = refused
        self.sequence += 1

    def _produce_once(self, places: set[TopicPartition], batch: bytes) -> set[TopicPartition]:
        """The places that are to be asked again."""
        data: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for at in sorted(places):
            data[self.leaders[at]].append({"Index": at.partition, "Records": batch})
        topic = next(iter(places)).topic
        sent = []
        for leader, partitions in data.items():
            connection = self.cluster.client.connection(leader)
            body = {
                "TransactionalId": self.name,
                "Acks": -1,
                "TimeoutMs": PRODUCE_WITHIN_MS,
                "TopicData": [{"Name": topic, "PartitionData": partitions}],
            }
            request = connection.request("Produce", body, PRODUCE_VERSION[self.protocol])
            sent.append((connection, connection.send(request)))
        refused = set()
        for connection, pending in sent:
            for each in connection.receive(pending)["Responses"][0]["PartitionResponses"]:
                if each["ErrorCode"] == ErrorCode.CONCURRENT_TRANSACTIONS:
                    refused.add(TopicPartition(topic, each["Index"]))
                else:
                    check(each["ErrorCode"], f"Produce of {self.name} to partition {each['Index']}")
        return refused

    def commit(self) -> None:
        """End the transaction; returns with the answer of the coordinator. Raises WireError."""
        body = {
            "TransactionalId": self.name,
            "ProducerId": self.now.id,
            "ProducerEpoch": self.now.epoch,
            "Committed": True,
        }
        answer = self.cluster.client.call("EndTxn", body, END_VERSION[self.protocol], broker=self.coordinator)
        check(answer["ErrorCode"], f"EndTxn of {self.name}")
        if self.protocol is TransactionProtocol.TWO:
            # The next transaction has another epoch, in which sequences begin again.
            self.now, self.sequence = Producer(id=answer["ProducerId"], epoch=answer["ProducerEpoch"]), 0
