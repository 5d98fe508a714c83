"""A broker's side of a connection that does what a test tells it, over a real socket."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from tests.support.wire_definitions import definitions

# Longer than any answer of a thread in this process takes, even on a busy machine.
PATIENT_S = 20.0

Script = Callable[["Peer"], None]


class Peer:
    """The broker's side of one connection, as a script drives it."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self.frames: list[bytes] = []

    def exactly(self, count: int) -> bytes:
        """So many bytes from the client."""
        data = b""
        while len(data) < count:
            piece = self.socket.recv(count - len(data))
            if not piece:
                raise ConnectionError("the client went away")
            data += piece
        return data

    def take(self) -> tuple[int, int, int]:
        """Read one request; its API key, version and correlation id."""
        prefix = self.exactly(4)
        frame = self.exactly(int.from_bytes(prefix, "big"))
        self.frames.append(prefix + frame)
        key, version, correlation = struct.unpack_from(">hhi", frame)
        return key, version, correlation

    def send(self, correlation: int, content: bytes, *, size: int | None = None) -> None:
        """Send a frame, of a declared size that may be a lie."""
        frame = struct.pack(">i", correlation) + content
        self.socket.sendall(struct.pack(">i", len(frame) if size is None else size) + frame)

    def answer(self, correlation: int, message: str, version: int, body: dict[str, Any]) -> None:
        """Send a response as a broker would."""
        flexible = definitions().message(message, version).flexible and message != "ApiVersionsResponse"
        self.send(correlation, b"\x00" * flexible + definitions().encode(message, version, body))

    def await_end(self) -> None:
        """Until the client closes."""
        with suppress(OSError):
            while self.socket.recv(1 << 16):
                pass


@contextmanager
def broker(*scripts: Script) -> Iterator[tuple[str, int]]:
    """A listener that treats its connections by the scripts, one each, in order; then it listens no more."""
    listener = socket.create_server(("127.0.0.1", 0))
    failures: list[BaseException] = []

    def serve() -> None:
        try:
            for script in scripts:
                connected, _ = listener.accept()
                connected.settimeout(PATIENT_S)
                with connected, suppress(ConnectionError):
                    script(Peer(connected))
        except BaseException as error:  # noqa: BLE001 - told to the test's thread
            failures.append(error)
        finally:
            listener.close()

    listener.settimeout(PATIENT_S)
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[:2]
        thread.join(PATIENT_S)
        assert not thread.is_alive(), "the script did not come to its end"
    finally:
        listener.close()
    assert not failures, failures
