"""Authenticates with SASL PLAIN (RFC 4616), SCRAM (RFC 5802, 7677) and OAUTHBEARER (RFC 7628), as Kafka carries them.

Sources: KIP-43, KIP-84, KIP-152, KIP-255.

Names and passwords are sent as given. SASLprep (RFC 4013) is left out; it matters only for characters that have several
forms. Secrets appear in no representation and no message.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

from wire.connection import Connection
from wire.deadline import Deadline
from wire.errors import BrokerError, ProtocolError

# RFC 7677 asks for 4096 at least; more than this would only keep the client busy.
ITERATIONS_MAX = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """Name and password in the clear: over TLS, or on a loopback."""

    username: str
    password: str = field(repr=False)

    def authenticate(self, connection: Connection, deadline: Deadline) -> None:
        """Send one message; raises BrokerError when the broker refuses it."""
        _handshake(connection, "PLAIN", deadline)
        _exchange(connection, f"\0{self.username}\0{self.password}".encode(), deadline)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scram:
    """A proof of the password that does not give it away; the broker proves that it knows it, too."""

    username: str
    password: str = field(repr=False)
    digest: str = "SHA-256"  # or SHA-512

    def authenticate(self, connection: Connection, deadline: Deadline) -> None:
        """Send two messages; raises BrokerError when refused, ProtocolError when the broker cannot prove itself."""
        _handshake(connection, f"SCRAM-{self.digest}", deadline)
        nonce = secrets.token_urlsafe(24)
        name = self.username.replace("=", "=3D").replace(",", "=2C")
        opening = f"n={name},r={nonce}"
        challenge = _exchange(connection, f"n,,{opening}".encode(), deadline).decode(errors="replace")
        final, expected = self._proof(opening, challenge, nonce)
        answer = _exchange(connection, final.encode(), deadline)
        if not hmac.compare_digest(answer.split(b",")[0], b"v=" + base64.b64encode(expected)):
            raise ProtocolError(f"{connection} does not know the password that it asked for")

    def _proof(self, opening: str, challenge: str, nonce: str) -> tuple[str, bytes]:
        """Our final message, and the signature that the broker must answer with."""
        hashing = self.digest.replace("-", "").lower()
        try:
            parts = dict(part.split("=", 1) for part in challenge.split(","))
            salt, iterations = base64.b64decode(parts["s"], validate=True), int(parts["i"])
            theirs = parts["r"]
        except (ValueError, KeyError, binascii.Error) as error:
            raise ProtocolError(f"not a SCRAM challenge: {challenge!r}") from error
        if not theirs.startswith(nonce) or not 0 < iterations <= ITERATIONS_MAX:
            raise ProtocolError(f"a SCRAM challenge with another nonce, or with {iterations} iterations")
        salted = hashlib.pbkdf2_hmac(hashing, self.password.encode(), salt, iterations)
        client_key = hmac.digest(salted, b"Client Key", hashing)
        closing = f"c=biws,r={theirs}"
        agreed = f"{opening},{challenge},{closing}".encode()
        signature = hmac.digest(hashlib.new(hashing, client_key).digest(), agreed, hashing)
        proof = bytes(key ^ sign for key, sign in zip(client_key, signature, strict=True))
        server_key = hmac.digest(salted, b"Server Key", hashing)
        return f"{closing},p={base64.b64encode(proof).decode()}", hmac.digest(server_key, agreed, hashing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bearer:
    """A token that an issuer signed; `token` gives one that is valid now, and may raise ConnectError."""

    token: Callable[[], str] = field(repr=False)

    def authenticate(self, connection: Connection, deadline: Deadline) -> None:
        """Send one message; raises BrokerError when the broker refuses the token."""
        _handshake(connection, "OAUTHBEARER", deadline)
        refusal = _exchange(connection, f"n,,\1auth=Bearer {self.token()}\1\1".encode(), deadline)
        if refusal:
            # The broker says why, and refuses with an error code once the client has confirmed that it read this.
            _exchange(connection, b"\1", deadline)
            raise ProtocolError(f"{connection} refused a token and then went on: {refusal.decode(errors='replace')}")


def _handshake(connection: Connection, mechanism: str, deadline: Deadline) -> None:
    answer = connection.call("SaslHandshake", {"Mechanism": mechanism}, 1, deadline)
    if answer["ErrorCode"]:
        offered = ", ".join(answer["Mechanisms"]) or "none"
        raise BrokerError(answer["ErrorCode"], f"SASL {mechanism} with {connection}, which offers {offered}")


def _exchange(connection: Connection, message: bytes, deadline: Deadline) -> bytes:
    answer = connection.call("SaslAuthenticate", {"AuthBytes": message}, deadline=deadline)
    if answer["ErrorCode"]:
        raise BrokerError(answer["ErrorCode"], f"SASL with {connection}: {answer['ErrorMessage']}")
    reply: bytes = answer["AuthBytes"]
    return reply
