"""One blocking connection to one broker, with pipelined requests that are answered in order.

``send`` hands a request to the operating system and returns a ``Pending``. ``receive`` waits for its answer and keeps
answers to earlier requests for later calls. Kafka answers the requests of a connection in the order they were sent. An
answer with another correlation id than the next one due ends the connection.

A deadline that passes in ``receive`` loses nothing: the bytes so far are kept, and the answer can still be received
later. So a lost response is not confused with a slow one. A deadline that passes in ``send`` closes the connection,
because half a request cannot be taken back. Not for use by several threads at once.
"""

from __future__ import annotations

import socket
import ssl
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, Protocol, TypeVar

from wire.codes import ErrorCode
from wire.deadline import Deadline
from wire.errors import (
    BrokerError,
    ConnectError,
    CorrelationError,
    DeadlineError,
    DisconnectedError,
    OversizedError,
    ProtocolError,
    VersionError,
    WireError,
)
from wire.messages import Definitions
from wire.primitives import Raw
from wire.request import Request, decode_response
from wire.schema import Body

# Brokers refuse requests above 100 MiB (socket.request.max.bytes); the bounds of our Fetch requests limit answers.
FRAME_BYTES_MAX = 128 << 20
# Small answers are taken from the operating system many at a time; a large one goes straight into its own buffer.
_AHEAD_BYTES = 64 << 10

Taken = TypeVar("Taken", int, bytes)


@dataclass(slots=True, kw_only=True, eq=False)
class Pending:
    """A request that was sent, and its answer's bytes (without the length) once they are here."""

    request: Request
    response: bytes | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return f"{self.request.api} v{self.request.version} (correlation id {self.request.correlation_id})"


class Authentication(Protocol):
    """Authenticates a fresh connection; see ``wire.sasl``."""

    def authenticate(self, connection: Connection, deadline: Deadline) -> None:
        """Run the exchange; raises BrokerError when the broker refuses it."""


class Connection:
    """A connection to ``host:port``; opened, negotiated and authenticated by its construction.

    ``versions`` maps API keys to the (lowest, highest) version the broker offers, ``features`` the finalized features
    to their levels (ApiVersions v3+, KIP-584; empty below). Raises ConnectError, DeadlineError, ProtocolError.
    """

    def __init__(
        self,
        host: str,
        port: int,
        definitions: Definitions,
        *,
        client_id: str | None = "onceproof",
        timeout_s: float = 10.0,
        ssl_context: ssl.SSLContext | None = None,
        authentication: Authentication | None = None,
        frame_bytes_max: int = FRAME_BYTES_MAX,
        negotiate: bool = True,
    ) -> None:
        self.host, self.port, self.definitions, self.client_id = host, port, definitions, client_id
        self.timeout_s, self.frame_bytes_max = timeout_s, frame_bytes_max
        self.versions: dict[int, tuple[int, int]] = {}
        self.features: dict[str, int] = {}
        self._outstanding: deque[Pending] = deque()
        self._buffer, self._filled, self._in_header = bytearray(4), 0, True
        self._ahead = memoryview(b"")
        self._ended: str | None = None
        deadline = Deadline.after(timeout_s)
        self._socket = self._connect(deadline, ssl_context)
        try:
            if negotiate:
                self._negotiate(deadline)
            if authentication is not None:
                authentication.authenticate(self, deadline)
        except BaseException:
            self.close()
            raise

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def closed(self) -> bool:
        """Whether nothing can be sent any more."""
        return self._ended is not None

    def close(self, why: str = "closed by this side") -> None:
        """End the connection; the first reason is kept for the error messages of later calls."""
        if self._ended is None:
            self._ended = why
            with suppress(OSError):
                self._socket.close()

    def version_for(self, api: str, at_most: int = 0x7FFF) -> int:
        """The highest version of an API that the broker offers and the definitions know; raises VersionError."""
        key = self.definitions.api_key(api)
        if key not in self.versions:
            raise VersionError(f"the broker at {self} does not offer {api}")
        lowest, highest = self.versions[key]
        for version in range(min(highest, at_most, self.definitions.latest(f"{api}Request")), lowest - 1, -1):
            if self.definitions.knows(f"{api}Request", version):
                return version
        raise VersionError(f"the broker at {self} offers {api} v{lowest} to v{highest}, none of which is defined here")

    def request(self, api: str, body: Mapping[str, Any] | Raw, version: int | None = None) -> Request:
        """A request value for this broker, at the highest common version unless one is named."""
        chosen = self.version_for(api) if version is None else version
        return Request.of(self.definitions, api, chosen, body, client_id=self.client_id)

    def call(
        self, api: str, body: Mapping[str, Any] | Raw, version: int | None = None, deadline: Deadline | None = None
    ) -> Body:
        """Ask and wait for the answer's body. Error codes inside it are the caller's business."""
        deadline = deadline or Deadline.after(self.timeout_s)
        return self.receive(self.send(self.request(api, body, version), deadline), deadline)

    def send(self, request: Request, deadline: Deadline | None = None) -> Pending:
        """Hand over a whole request. After an error it did not leave in full, and the connection is closed."""
        return self.send_repeatedly(request, 1, deadline)[0]

    def send_repeatedly(self, request: Request, times: int, deadline: Deadline | None = None) -> list[Pending]:
        """Hand over one request so many times, in as few pieces as the operating system takes; as `send` does."""
        deadline = deadline or Deadline.after(self.timeout_s)
        pendings = [Pending(request=request) for _ in range(times)]
        self._hand_over(request.frame * times, str(pendings[0]), deadline)
        if request.answered:
            self._outstanding.extend(pendings)
        return pendings

    def _hand_over(self, frames: bytes, what: str, deadline: Deadline) -> None:
        rest = memoryview(frames)
        while rest:
            self._refuse_if_closed(f"{what} was not sent")
            try:
                self._socket.settimeout(deadline.remaining_s(f"{self} to take {what}", f"{len(rest)} bytes unsent"))
                rest = rest[self._socket.send(rest) :]
            except TimeoutError:
                continue  # the deadline itself says so, with all that is known
            except DeadlineError as error:
                self.close(str(error))
                raise
            except OSError as error:
                self.close(str(error))
                raise DisconnectedError(f"{self} ended while {what} was being sent: {error}") from error

    def receive(self, pending: Pending, deadline: Deadline | None = None) -> Body:
        """The body of the answer to a sent request. It may be called again after a deadline (see the module)."""
        request, response = pending.request, self.receive_bytes(pending, deadline)
        return decode_response(self.definitions, request.api, request.version, response)[1]

    def receive_bytes(self, pending: Pending, deadline: Deadline | None = None) -> bytes:
        """The answer as it came, without its length; also the way to one that does not decode."""
        if not pending.request.answered:
            raise ProtocolError(f"{pending} asked for no answer")
        deadline = deadline or Deadline.after(self.timeout_s)
        while pending.response is None:
            self._refuse_if_closed(f"the answer to {pending} is lost")
            try:
                self._receive_next(deadline, pending)
            except ProtocolError as error:
                self.close(str(error))
                raise
        return pending.response

    def _refuse_if_closed(self, consequence: str) -> None:
        if self._ended is not None:
            raise DisconnectedError(f"{consequence}: {self}: {self._ended}")

    def _receive_next(self, deadline: Deadline, awaited: Pending) -> None:
        frame = self._frame(deadline, awaited)
        number = int.from_bytes(frame[:4], "big", signed=True)
        if not self._outstanding or self._outstanding[0].request.correlation_id != number:
            due = self._outstanding[0] if self._outstanding else "nothing"
            raise CorrelationError(f"{self} answered correlation id {number} where {due} is due")
        self._outstanding.popleft().response = frame

    def _frame(self, deadline: Deadline, awaited: Pending) -> bytes:
        self._fill(deadline, awaited)
        if self._in_header:
            size = int.from_bytes(self._buffer, "big", signed=True)
            if size < 4:
                raise ProtocolError(f"{self} declared an answer of {size} bytes")
            if size > self.frame_bytes_max:
                raise OversizedError(f"{self} declared an answer of {size} bytes, the bound is {self.frame_bytes_max}")
            self._buffer, self._filled, self._in_header = bytearray(size), 0, False
            self._fill(deadline, awaited)
        frame = bytes(self._buffer)
        self._buffer, self._filled, self._in_header = bytearray(4), 0, True
        return frame

    def _fill(self, deadline: Deadline, awaited: Pending) -> None:
        view = memoryview(self._buffer)
        while self._filled < len(view):
            rest = view[self._filled :]
            if self._ahead:
                count = min(len(self._ahead), len(rest))
                rest[:count], self._ahead = self._ahead[:count], self._ahead[count:]
            elif len(rest) < _AHEAD_BYTES:
                self._ahead = memoryview(self._read(partial(self._socket.recv, _AHEAD_BYTES), deadline, awaited))
                continue
            else:
                count = self._read(partial(self._socket.recv_into, rest), deadline, awaited)
            self._filled += count

    def _read(self, take: Callable[[], Taken], deadline: Deadline, awaited: Pending) -> Taken:
        """The next bytes from the operating system; waits for them until the deadline."""
        while True:
            seen = f"{self._filled} of {len(self._buffer)} bytes of its {'length' if self._in_header else 'answer'}"
            self._socket.settimeout(deadline.remaining_s(f"{self} to answer {awaited}", seen))
            try:
                taken = take()
            except TimeoutError:
                continue  # the deadline itself says so, with all that is known
            except OSError as error:
                self.close(str(error))
                raise DisconnectedError(f"{self} ended before {awaited} was answered: {error}") from error
            if not taken:
                self.close("closed by the broker")
                raise DisconnectedError(f"{self} was closed by the broker before {awaited} was answered ({seen})")
            return taken

    def _connect(self, deadline: Deadline, ssl_context: ssl.SSLContext | None) -> socket.socket:
        plain: socket.socket | None = None
        try:
            plain = socket.create_connection((self.host, self.port), timeout=deadline.remaining_s(f"{self} to accept"))
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if ssl_context is None:
                return plain
            plain.settimeout(deadline.remaining_s(f"the TLS handshake with {self}"))
            return ssl_context.wrap_socket(plain, server_hostname=self.host)
        except (OSError, WireError) as error:
            if plain is not None:
                plain.close()
            raise ConnectError(f"no connection to {self}: {error or type(error).__name__}") from error

    def _negotiate(self, deadline: Deadline) -> None:
        version = self.definitions.latest("ApiVersionsRequest")
        body = self._api_versions(version, deadline)
        if body["ErrorCode"] == ErrorCode.UNSUPPORTED_VERSION:
            # An older broker: it answered in v0, with its own range of ApiVersions if it is 2.4 or later (KIP-511).
            offered = [item["MaxVersion"] for item in body["ApiKeys"] if item["ApiKey"] == 18]
            body = self._api_versions(min(offered[0] if offered else 0, version), deadline)
        if body["ErrorCode"]:
            raise BrokerError(body["ErrorCode"], f"ApiVersions of {self}")
        self.versions = {item["ApiKey"]: (item["MinVersion"], item["MaxVersion"]) for item in body["ApiKeys"]}
        self.features = {item["Name"]: item["MaxVersionLevel"] for item in body.get("FinalizedFeatures", [])}

    def _api_versions(self, version: int, deadline: Deadline) -> Body:
        body = {"ClientSoftwareName": "onceproof", "ClientSoftwareVersion": "1"} if version >= 3 else {}
        pending = self.send(self.request("ApiVersions", body, version), deadline)
        response = self.receive_bytes(pending, deadline)
        if int.from_bytes(response[4:6], "big") != ErrorCode.UNSUPPORTED_VERSION:
            return decode_response(self.definitions, "ApiVersions", version, response)[1]
        try:
            return decode_response(self.definitions, "ApiVersions", 0, response)[1]
        except ProtocolError:
            # librdkafka's mock cluster answers a version that it does not know in that version, and not in v0.
            return {"ErrorCode": ErrorCode.UNSUPPORTED_VERSION, "ApiKeys": []}
