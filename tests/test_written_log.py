"""What coordinators wrote while a run lasted is read from where the log ended before, or the file says why not."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from fixtures.recording.transaction_log_reader import WrittenLog, unavailable
from tests.test_transaction_log import CAPTURED, definitions
from tests.wire_peer import PATIENT_S, Peer, broker
from verification.evidence.transaction_log_file import LogHeader, LogLeader, LogRange, TransactionLog
from verification.vocabulary.transaction_log import TOPIC
from wire.client import Client
from wire.records import encode
from wire.values import EARLIEST

FETCH, LIST_OFFSETS, METADATA, API_VERSIONS = 1, 2, 3, 18
OFFERED = {FETCH: (4, 11), LIST_OFFSETS: (1, 3), METADATA: (0, 8)}
UNKNOWN, FORBIDDEN = 3, 29


@dataclass
class Coordinator:
    """A broker with one partition of the transaction log; `end` is its high watermark, `error` what Metadata says."""

    records: list[tuple[bytes, bytes | None]]
    end: int = 0
    error: int = 0
    fetch_error: int = 0
    leader_epoch: int = -1
    address: tuple[str, int] = ("", 0)

    def serve(self, peer: Peer) -> None:
        """Answer until the client goes."""
        while True:
            key, version, correlation = peer.take()
            name, body = self.answer(key, peer.frames[-1])
            peer.answer(correlation, name, version, body)

    def answer(self, key: int, frame: bytes) -> tuple[str, dict[str, object]]:
        """The response to a request, by the key of its API."""
        if key == LIST_OFFSETS:
            # Up to v3 the one timestamp of the one partition ends the request.
            return self.offsets(int.from_bytes(frame[-8:], "big", signed=True))
        return {API_VERSIONS: self.versions, METADATA: self.metadata, FETCH: self.fetched}[key]()

    def versions(self) -> tuple[str, dict[str, object]]:
        """What it offers."""
        offered = [{"ApiKey": key, "MinVersion": low, "MaxVersion": high} for key, (low, high) in OFFERED.items()]
        return "ApiVersionsResponse", {"ApiKeys": offered}

    def metadata(self) -> tuple[str, dict[str, object]]:
        """The topic, or why not."""
        partition: dict[str, object] = {"ErrorCode": 0, "PartitionIndex": 0, "LeaderId": 1}
        partition |= {"ReplicaNodes": [1], "IsrNodes": [1]}
        partition["LeaderEpoch"] = self.leader_epoch
        topic = {"ErrorCode": self.error, "Name": TOPIC, "Partitions": [] if self.error else [partition]}
        brokers = [{"NodeId": 1, "Host": self.address[0], "Port": self.address[1]}]
        return "MetadataResponse", {"Brokers": brokers, "ControllerId": 1, "Topics": [topic]}

    def offsets(self, timestamp: int) -> tuple[str, dict[str, object]]:
        """The first offset or the high watermark."""
        offset = 0 if timestamp == EARLIEST else self.end
        partition = {"PartitionIndex": 0, "ErrorCode": 0, "Offset": offset, "Timestamp": -1}
        return "ListOffsetsResponse", {"Topics": [{"Name": TOPIC, "Partitions": [partition]}]}

    def fetched(self) -> tuple[str, dict[str, object]]:
        """The whole log, whatever offset was asked for."""
        partition = {
            "PartitionIndex": 0,
            "ErrorCode": self.fetch_error,
            "HighWatermark": self.end,
            "LastStableOffset": self.end,
            "AbortedTransactions": None,
            "Records": encode(self.records),
        }
        return "FetchResponse", {"Responses": [{"Topic": TOPIC, "Partitions": [partition]}]}


def read(at: Coordinator, *, then: int, fetch_error: int = 0) -> TransactionLog:
    """Begin a run on the coordinator, let its log come to an end, and read it."""
    with broker(at.serve) as at.address:
        where = f"{at.address[0]}:{at.address[1]}"
        with Client(where, definitions(), timeout_s=PATIENT_S) as client:
            written = WrittenLog(client)
            at.error, at.end, at.fetch_error = (0 if at.error == UNKNOWN else at.error), then, fetch_error
            return written.read("r", ["r-0"])


def records(release: str = "4.4.0") -> list[tuple[bytes, bytes | None]]:
    """What a real coordinator wrote."""
    key, values = CAPTURED[release]
    return [(bytes.fromhex(key), bytes.fromhex(each)) for each in values]


def test_a_log_is_read_from_where_it_ended() -> None:
    """Of a log that served others before, what was written since the run began is read, with its range."""
    log = read(Coordinator(records=records(), end=4), then=7)
    assert log.header == LogHeader(run="r", ranges=(LogRange(partition=0, start=4, end=7),), new_ids=("r-0",))
    assert [(each.offset, str(each.state)) for each in log.entries] == [
        *((4, "Ongoing"), (5, "PrepareAbort"), (6, "CompleteAbort")),
    ]


def test_the_coordinators_are_known_where_the_metadata_names_them() -> None:
    """At the beginning and at the end of a run; a broker that tells no epoch says nothing that could be used."""
    assert read(Coordinator(records=records(), end=4), then=7).header.leaders == ()
    log = read(Coordinator(records=records(), end=4, leader_epoch=5), then=7)
    assert log.header.leaders == (LogLeader(partition=0, leader_epoch=5, broker=1),)


def test_a_log_that_comes_into_being_is_read_from_its_beginning() -> None:
    """A cluster that had no coordinator yet when the run began has none of anybody else's records."""
    log = read(Coordinator(records=records(), error=UNKNOWN), then=7)
    assert log.header.ranges == (LogRange(partition=0, start=0, end=7),)
    assert [each.offset for each in log.entries] == list(range(7))


@pytest.mark.parametrize(
    ("at", "fetch_error", "why"),
    [
        (Coordinator(records=[], error=FORBIDDEN), 0, "TOPIC_AUTHORIZATION_FAILED"),
        (Coordinator(records=[(b"no key", b"no value")]), 0, "cannot be read"),
        (Coordinator(records=records()), FORBIDDEN, "TOPIC_AUTHORIZATION_FAILED"),
    ],
)
def test_what_cannot_be_read_is_said(at: Coordinator, fetch_error: int, why: str) -> None:
    """A cluster that forbids it, and a record that nobody understands, leave a file with the reason and no error."""
    log = read(at, then=7, fetch_error=fetch_error)
    assert why in log.header.unavailable
    assert log == unavailable("r", log.header.unavailable)
