"""What an observer sees of a walk: both partitions under both isolation levels, the group's offset, the coordinator.

Few requests, because every walk ends with a look: both partitions are small enough for one Fetch per isolation level.
"""

from __future__ import annotations

from typing import Any

from wire.client import Client
from wire.codes import ErrorCode as Code
from wire.connection import Connection
from wire.fetch import FETCH_BYTES_MAX, NAMED_MAX
from wire.records import Batch, Marker, decode
from wire.router import check
from wire.schema import Body
from wire.values import Isolation

PLACES = (0, 1)
#: The last version that asks for one group, and the first in which a pending offset can be asked about.
OFFSET_FETCH = 7


class Looks:
    """Looks at one walk's topic, group and transactional id over one connection."""

    def __init__(self, eye: Connection, client: Client, *, name: str, topic: str) -> None:
        self._eye, self._client, self._name, self._topic = eye, client, name, topic

    def everything(self) -> dict[str, Any]:
        """All that the model says about visible things, by the same names; raises WireError."""
        told = self.coordinator()
        uncommitted, committed = self._fetch(Isolation.READ_UNCOMMITTED), self._fetch(Isolation.READ_COMMITTED)
        for index in PLACES:
            told[f"end {index}"] = uncommitted[index]["HighWatermark"]
            told[f"stable {index}"] = committed[index]["LastStableOffset"]
            told[f"log {index}"] = _values(_batches(uncommitted[index]))
            told[f"committed {index}"] = _values(_given(committed[index]))
        told["offset"] = self._offset(stable=False)["CommittedOffset"]
        told["offset pending"] = self._offset(stable=True)["ErrorCode"] == Code.UNSTABLE_OFFSET_COMMIT
        return told

    def coordinator(self) -> dict[str, Any]:
        """State and epoch as DescribeTransactions has them."""
        answer = self._eye.call("DescribeTransactions", {"TransactionalIds": [self._name]})
        found = answer["TransactionStates"][0]
        if found["ErrorCode"] == Code.TRANSACTIONAL_ID_NOT_FOUND:
            return {"state": "absent", "epoch": -1}
        check(found["ErrorCode"], f"DescribeTransactions of {self._name}")
        return {"state": found["TransactionState"], "epoch": found["ProducerEpoch"]}

    def _fetch(self, isolation: Isolation) -> dict[int, Body]:
        wanted = [{"Partition": index, "FetchOffset": 0, "PartitionMaxBytes": FETCH_BYTES_MAX} for index in PLACES]
        body = {
            "ReplicaId": -1,
            "MaxWaitMs": 0,
            "MinBytes": 0,
            "MaxBytes": FETCH_BYTES_MAX,
            "IsolationLevel": int(isolation),
            "Topics": [{"Topic": self._topic, "Partitions": wanted}],
        }
        answer = self._eye.call("Fetch", body, self._eye.version_for("Fetch", at_most=NAMED_MAX))
        found = {each["PartitionIndex"]: each for each in answer["Responses"][0]["Partitions"]}
        for index in PLACES:
            check(found[index]["ErrorCode"], f"Fetch of {self._topic}-{index}")
        return found

    def _offset(self, *, stable: bool) -> Body:
        topics = [{"Name": self._topic, "PartitionIndexes": [0]}]
        body = {"GroupId": self._name, "Topics": topics, "RequireStable": stable}
        answer = self._eye.call("OffsetFetch", body, OFFSET_FETCH)
        check(answer["ErrorCode"], f"OffsetFetch of {self._name}")
        found: Body = answer["Topics"][0]["Partitions"][0]
        if not stable or found["ErrorCode"] != Code.UNSTABLE_OFFSET_COMMIT:
            check(found["ErrorCode"], f"OffsetFetch of {self._name}")
        return found


def _batches(partition: Body) -> list[Batch]:
    return list(decode(partition["Records"] or b""))


def _given(partition: Body) -> list[Batch]:
    """The batches that a reader is given, by the broker's list of aborted transactions and the markers."""
    aborted = sorted((each["FirstOffset"], each["ProducerId"]) for each in partition["AbortedTransactions"] or ())
    hidden: set[int] = set()
    given: list[Batch] = []
    for batch in _batches(partition):
        if batch.last_offset >= partition["LastStableOffset"]:
            break
        while aborted and aborted[0][0] <= batch.last_offset:
            hidden.add(aborted.pop(0)[1])
        if batch.control:
            if batch.marker() is Marker.ABORT:
                hidden.discard(batch.producer_id)
        elif not (batch.transactional and batch.producer_id in hidden):
            given.append(batch)
    return given


def _values(batches: list[Batch]) -> list[str]:
    records = [record for batch in batches if not batch.control for record in batch.records()]
    return [(record.value or b"").decode(errors="replace") for record in records]
