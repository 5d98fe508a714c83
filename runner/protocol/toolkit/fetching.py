"""Reads a partition with single requests: Fetch and ListOffsets of the script, and the aborts that the log itself shows.

Topics are named (Fetch up to v12), because topic ids add nothing about isolation. A Fetch does not wait: it answers at
once with the records that are there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from runner.protocol.toolkit.context import BrokerConnection, CaseContext
from runner.protocol.toolkit.responses import Response
from wire.fetch import FETCH_BYTES_MAX
from wire.records import Batch, Marker, decode
from wire.schema import Body
from wire.values import Isolation, TopicPartition

FETCH_VERSION = 12
COMMITTED, UNCOMMITTED = Isolation.READ_COMMITTED, Isolation.READ_UNCOMMITTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """One partition of a Fetch answer; `aborted` is None where the list is null."""

    code: int
    batches: list[Batch]
    stable: int
    end: int
    aborted: list[tuple[int, int]] | None

    def values(self) -> list[str]:
        """The values of all data records in it, hidden or not."""
        return [
            (record.value or b"").decode() for each in self.batches if not each.control for record in each.records()
        ]


def fetch(
    case: CaseContext,
    at: TopicPartition,
    isolation: Isolation,
    *,
    offset: int = 0,
    broker: int | None = None,
    connection: BrokerConnection | None = None,
) -> Fetched:
    """Fetch a partition from an offset, by its leader unless another broker or connection is named."""
    topic = {
        "Topic": at.topic,
        "Partitions": [{"Partition": at.partition, "FetchOffset": offset, "PartitionMaxBytes": FETCH_BYTES_MAX}],
    }
    body = {
        "ReplicaId": -1,
        "MaxWaitMs": 100,
        "MinBytes": 0,
        "MaxBytes": FETCH_BYTES_MAX,
        "IsolationLevel": int(isolation),
        "Topics": [topic],
    }
    asked = connection or case.connection(case.leader(at) if broker is None else broker)
    # 2.7 is the first release with v12; older versions have the same fields for isolation.
    version = asked.wire.version_for("Fetch", at_most=FETCH_VERSION)
    answer = case.ask("Fetch", body, connection=asked, version=version)
    found = answer["Responses"][0]["Partitions"][0]
    aborted = found["AbortedTransactions"]
    return Fetched(
        code=found["ErrorCode"],
        batches=[each for each in decode(found["Records"] or b"") if each.next_offset > offset],
        stable=found["LastStableOffset"],
        end=found["HighWatermark"],
        aborted=None if aborted is None else sorted((each["ProducerId"], each["FirstOffset"]) for each in aborted),
    )


def list_offset(case: CaseContext, at: TopicPartition, isolation: Isolation, timestamp: int) -> tuple[int, int]:
    """The (offset, timestamp) that ListOffsets returns for a time in milliseconds, EARLIEST or LATEST."""
    topic = {"Name": at.topic, "Partitions": [{"PartitionIndex": at.partition, "Timestamp": timestamp}]}
    body = {"ReplicaId": -1, "IsolationLevel": int(isolation), "Topics": [topic]}
    answer = case.require_code("ListOffsets", case.ask("ListOffsets", body, broker=case.leader(at)))
    found = answer["Topics"][0]["Partitions"][0]
    return found["Offset"], found["Timestamp"]


def delete_records(case: CaseContext, at: TopicPartition, before: int) -> Response:
    """Delete the records below an offset (DeleteRecords)."""
    topic = {"Name": at.topic, "Partitions": [{"PartitionIndex": at.partition, "Offset": before}]}
    return case.ask("DeleteRecords", {"Topics": [topic], "TimeoutMs": 10_000}, broker=case.leader(at))


def aborted_in(batches: Iterable[Batch]) -> list[tuple[int, int, int]]:
    """(producer id, first offset, offset of the marker) of each aborted transaction that wrote something."""
    first: dict[int, int] = {}
    found = []
    for batch in batches:
        if not batch.control:
            if batch.transactional:
                first.setdefault(batch.producer_id, batch.base_offset)
        elif (marker := batch.marker()) is not None:
            began = first.pop(batch.producer_id, None)
            if marker is Marker.ABORT and began is not None:
                found.append((batch.producer_id, began, batch.base_offset))
    return found


def write_marker(
    case: CaseContext,
    at: TopicPartition,
    *,
    producer_id: int,
    epoch: int,
    coordinator_epoch: int,
    commit: bool = False,
    transaction_version: int = 0,
    broker: int | None = None,
    version: int | None = None,
) -> Response:
    """Send WriteTxnMarkers for one partition, as a coordinator or an administrator does.

    Before v2 (4.2, KIP-1228) the request cannot name its transaction version.
    """
    marker = {
        "ProducerId": producer_id,
        "ProducerEpoch": epoch,
        "TransactionResult": commit,
        "Topics": [{"Name": at.topic, "PartitionIndexes": [at.partition]}],
        "CoordinatorEpoch": coordinator_epoch,
    }

    def body(version: int) -> Body:
        return {"Markers": [marker | ({"TransactionVersion": transaction_version} if version >= 2 else {})]}

    return case.ask("WriteTxnMarkers", body, broker=case.leader(at) if broker is None else broker, version=version)


def coordinator_epoch(case: CaseContext, at: TopicPartition, producer_id: int) -> int:
    """The coordinator epoch of a producer's last marker, which its leader must remember (2.8+)."""
    epochs = [int(each["CoordinatorEpoch"]) for each in case.inspect.producers(at) if each["ProducerId"] == producer_id]
    case.require("the leader remembers the producer", len(epochs), 1)
    return epochs[0]
