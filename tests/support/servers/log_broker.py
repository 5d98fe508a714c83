"""A broker that serves given logs over real sockets, to our own client and to librdkafka: Metadata, ListOffsets, Fetch.

It keeps what Kafka keeps: whole batches, the first of which may begin before the offset that was asked for; under
read_committed nothing at or above the last stable offset, and a list of aborted transactions. It writes nothing.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tests.support.servers.wire_peer import Peer
from tests.support.wire_definitions import definitions
from wire.records import Batch, Marker, decode
from wire.request import decode_request

# Produce is offered because librdkafka concludes from it that batches have format v2; it is never asked for.
OFFERED = {
    "Produce": (0, 8),
    "Fetch": (4, 11),
    "ListOffsets": (1, 5),
    "Metadata": (0, 8),
    "FindCoordinator": (0, 2),
    "ApiVersions": (0, 3),
}
IDLE_S = 0.02


@dataclass(frozen=True)
class HeldLog:
    """One partition's log as bytes."""

    raw: bytes

    @cached_property
    def batches(self) -> list[tuple[int, Batch]]:
        """Position in the bytes, and batch."""
        found, position = [], 0
        for batch in decode(self.raw):
            found.append((position, batch))
            position += batch.size
        return found

    @cached_property
    def transactions(self) -> list[tuple[int, int, int | None, bool]]:
        """Producer id, first offset, offset of the marker (None: open), whether it aborted."""
        begun: dict[int, int] = {}
        found: list[tuple[int, int, int | None, bool]] = []
        for _, batch in self.batches:
            if batch.control:
                first = begun.pop(batch.producer_id, None)
                if first is not None:  # a repeated marker ends nothing
                    found.append((batch.producer_id, first, batch.base_offset, batch.marker() is Marker.ABORT))
            elif batch.transactional:
                begun.setdefault(batch.producer_id, batch.base_offset)
        return found + [(producer, first, None, False) for producer, first in begun.items()]

    @property
    def end(self) -> int:
        """The high watermark."""
        return self.batches[-1][1].next_offset

    @property
    def stable(self) -> int:
        """The last stable offset."""
        return min((first for _, first, marker, _ in self.transactions if marker is None), default=self.end)

    def fetched(self, offset: int, most: int, *, committed: bool) -> tuple[bytes, list[dict[str, int]]]:
        """Whole batches from an offset on, one at least, and the aborted transactions that reach into the rest."""
        limit = self.stable if committed else self.end
        given = [each for each in self.batches if each[1].next_offset > offset and each[1].base_offset < limit]
        aborted = [
            {"ProducerId": producer, "FirstOffset": first}
            for producer, first, marker, was_aborted in self.transactions
            if was_aborted and marker is not None and marker >= offset
        ]
        if not given:
            return b"", aborted
        begin = given[0][0]
        ends = [position + batch.size for position, batch in given]
        end = max((each for each in ends if each - begin <= most), default=ends[0])
        return self.raw[begin:end], aborted


class LogBroker:
    """Broker 1 and only; `bootstrap` is its address."""

    def __init__(self, logs: Mapping[tuple[str, int], bytes]) -> None:
        self.logs = {place: HeldLog(raw) for place, raw in logs.items()}
        self.fetches = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.host, self.port = self._listener.getsockname()[:2]
        self.bootstrap = f"{self.host}:{self.port}"
        self._peers: list[Peer] = []
        self._apis = {definitions().api_key(api): api for api in OFFERED}
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """End the listener and every connection."""
        for each in (self._listener, *(peer.socket for peer in self._peers)):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connected, _ = self._listener.accept()
                self._peers.append(Peer(connected))
                threading.Thread(target=self._serve, args=(self._peers[-1],), daemon=True).start()

    def _serve(self, peer: Peer) -> None:
        with suppress(OSError):
            while True:
                key, version, correlation = peer.take()
                frame = peer.frames.pop()
                api = self._apis[key]
                if version > OFFERED[api][1]:
                    # Only ApiVersions may be asked for in a version that is unknown (KIP-511).
                    peer.answer(correlation, "ApiVersionsResponse", 0, {**self._versions(), "ErrorCode": 35})
                    continue
                body = decode_request(definitions(), api, version, frame[4:])[1]
                peer.answer(correlation, f"{api}Response", version, self._answer(api, body))

    def _answer(self, api: str, body: Mapping[str, Any]) -> dict[str, Any]:
        answers = {"ApiVersions": self._versions, "Metadata": self._metadata, "FindCoordinator": self._coordinator}
        if api in answers:
            return answers[api]()
        return self._offsets(body) if api == "ListOffsets" else self._fetch(body)

    def _versions(self) -> dict[str, Any]:
        ranges = OFFERED.items()
        offered = [
            {"ApiKey": definitions().api_key(api), "MinVersion": low, "MaxVersion": high} for api, (low, high) in ranges
        ]
        return {"ApiKeys": offered}

    def _coordinator(self) -> dict[str, Any]:
        return {"NodeId": 1, "Host": self.host, "Port": self.port}

    def _metadata(self) -> dict[str, Any]:
        topics = []
        for name in sorted({topic for topic, _ in self.logs}):
            partitions = [
                {"PartitionIndex": partition, "LeaderId": 1, "ReplicaNodes": [1], "IsrNodes": [1]}
                for topic, partition in self.logs
                if topic == name
            ]
            topics.append({"Name": name, "Partitions": partitions})
        broker = {"NodeId": 1, "Host": self.host, "Port": self.port}
        return {"Brokers": [broker], "ControllerId": 1, "ClusterId": "logs", "Topics": topics}

    def _offsets(self, body: Mapping[str, Any]) -> dict[str, Any]:
        topics = []
        for topic in body["Topics"]:
            partitions = []
            for asked in topic["Partitions"]:
                log = self.logs[topic["Name"], asked["PartitionIndex"]]
                latest = log.stable if body.get("IsolationLevel") else log.end
                offset = 0 if asked["Timestamp"] == -2 else latest
                partitions.append({"PartitionIndex": asked["PartitionIndex"], "Offset": offset, "Timestamp": -1})
            topics.append({"Name": topic["Name"], "Partitions": partitions})
        return {"Topics": topics}

    def _fetch(self, body: Mapping[str, Any]) -> dict[str, Any]:
        self.fetches += 1
        topics, empty = [], True
        for topic in body["Topics"]:
            partitions = []
            for asked in topic["Partitions"]:
                partition = asked["Partition"]
                log = self.logs[topic["Topic"], partition]
                committed = body["IsolationLevel"] == 1
                records, aborted = log.fetched(asked["FetchOffset"], asked["PartitionMaxBytes"], committed=committed)
                empty &= not records
                partitions.append(
                    {
                        "PartitionIndex": partition,
                        "HighWatermark": log.end,
                        "LastStableOffset": log.stable,
                        "LogStartOffset": 0,
                        "AbortedTransactions": aborted if committed else None,
                        "Records": records,
                    }
                )
            topics.append({"Topic": topic["Topic"], "Partitions": partitions})
        if empty:
            time.sleep(IDLE_S)
        return {"Responses": topics}


@contextmanager
def log_broker(logs: Mapping[tuple[str, int], bytes]) -> Iterator[LogBroker]:
    """A broker for one test."""
    broker = LogBroker(logs)
    try:
        yield broker
    finally:
        broker.close()
