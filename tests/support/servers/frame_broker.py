"""A broker's side of many connections at once, over real sockets, and clients to talk to it through frame-aware links.

It reads requests, writes them down with the number of their connection, and answers each with the defaults of its
response, in order, unless it was told to say nothing about that API.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from chaos.frames import FrameLinks
from chaos.frames.request_fields import FrameReader
from chaos.routes import Endpoint
from tests.support.servers.wire_peer import PATIENT_S, Peer
from tests.support.wire_definitions import definitions
from wire.connection import Connection
from wire.records import encode
from wire.request import Request, decode_request

END = {"TransactionalId": "x", "ProducerId": 17, "ProducerEpoch": 1, "Committed": True}


class FrameBroker:
    """Listens on loopback from construction to `close`."""

    def __init__(self, port: int = 0) -> None:
        self.received: list[tuple[int, bytes]] = []
        self.silent: set[str] = set()
        self.says: dict[str, dict[str, Any]] = {}
        """What it answers to an API instead of defaults."""
        self.ended: set[int] = set()
        """The connections whose clients have ended their side."""
        self._apis = FrameReader(definitions()).apis
        self._changed = threading.Condition()
        self._peers: list[Peer] = []
        self._listener = socket.create_server(("127.0.0.1", port))
        host, port = self._listener.getsockname()[:2]
        self.at = Endpoint(host=host, port=port)
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def frames(self) -> list[bytes]:
        """The requests that came, with their lengths."""
        return [frame for _, frame in self.received]

    def await_frames(self, count: int) -> list[bytes]:
        """So many requests, as soon as they have come."""
        self._await(f"{count} requests", lambda: len(self.received) >= count)
        return self.frames

    def await_ends(self, count: int) -> None:
        """Until so many connections were ended by their clients."""
        self._await(f"{count} ends", lambda: len(self.ended) >= count)

    def close(self) -> None:
        """End the listener and every connection; `shutdown` wakes the threads that `close` alone would leave."""
        for each in (self._listener, *(peer.socket for peer in self._peers)):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _await(self, what: str, holds: Any) -> None:
        with self._changed:
            assert self._changed.wait_for(holds, PATIENT_S), f"{what} did not come; there are {self.received}"

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connected, _ = self._listener.accept()
                self._peers.append(Peer(connected))
                threading.Thread(target=self._serve, args=(len(self._peers), self._peers[-1]), daemon=True).start()

    def _serve(self, number: int, peer: Peer) -> None:
        with suppress(OSError):
            while True:
                key, version, correlation_id = peer.take()
                frame = peer.frames[-1]
                with self._changed:
                    self.received.append((number, frame))
                    self._changed.notify_all()
                api = self._apis.get(key, "")
                answered = api != "Produce" or decode_request(definitions(), api, version, frame[4:])[1]["Acks"] != 0
                if answered and api and api not in self.silent:
                    peer.answer(correlation_id, f"{api}Response", version, self.says.get(api, {}))
        with self._changed:
            self.ended.add(number)
            self._changed.notify_all()
        peer.socket.close()


@contextmanager
def frame_broker(port: int = 0) -> Iterator[FrameBroker]:
    """A broker for one test, at any free port if none is given."""
    broker = FrameBroker(port)
    try:
        yield broker
    finally:
        broker.close()


def client(at: Endpoint) -> Connection:
    """A client that asks nothing by itself."""
    return Connection(at.host, at.port, definitions(), negotiate=False, timeout_s=PATIENT_S)


def request(api: str, body: dict[str, Any], version: int) -> Request:
    """A request."""
    return Request.of(definitions(), api, version, body)


def end_txn(transactional_id: str = "x", version: int = 4) -> Request:
    """An EndTxn request of producer id 17."""
    return request("EndTxn", {**END, "TransactionalId": transactional_id}, version)


def heartbeat() -> Request:
    """A request that no rule of these tests selects."""
    return request("Heartbeat", {"GroupId": "g", "GenerationId": 1, "MemberId": "m"}, 4)


def produce(
    version: int, topic: dict[str, Any], *, acks: int = -1, size: int = 10, transactional_id: str = "x"
) -> Request:
    """A transactional Produce request with producer id 17, to partition 3."""
    records = encode([(None, b"v" * size)], producer_id=17, producer_epoch=1, base_sequence=0, transactional=True)
    data = [{**topic, "PartitionData": [{"Index": 3, "Records": records}]}]
    body = {"TransactionalId": transactional_id, "Acks": acks, "TimeoutMs": 1000, "TopicData": data}
    return request("Produce", body, version)


def sound(links: FrameLinks) -> bool:
    """Whether no connection ended by an error of the links themselves."""
    assert links.problems() == ()
    return True
