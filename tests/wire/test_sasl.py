"""Authentication follows the RFCs, and refuses a server without a proof."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.servers.wire_peer import PATIENT_S, Peer, Script, broker
from tests.support.wire_definitions import definitions
from wire.client import Client
from wire.codes import ErrorCode
from wire.connection import Connection
from wire.errors import BrokerError, ProtocolError
from wire.primitives import Reader
from wire.request import decode_request
from wire.sasl import Plain, Scram

# The example of RFC 7677, section 3.
NONCE = "rOprNGfwEbeRWgbNEkqO"
CHALLENGE = f"r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
PROOF = f"c=biws,r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
SIGNATURE = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="

OFFERED = [{"ApiKey": 17, "MinVersion": 0, "MaxVersion": 1}, {"ApiKey": 36, "MinVersion": 0, "MaxVersion": 1}]


def authenticating(*replies: dict[str, Any], heard: list[bytes]) -> Script:
    """A broker that accepts the mechanism and then gives the replies, noting the messages that it receives."""

    def script(peer: Peer) -> None:
        _, version, correlation = peer.take()
        peer.answer(correlation, "ApiVersionsResponse", version, {"ApiKeys": OFFERED})
        _, version, correlation = peer.take()
        peer.answer(correlation, "SaslHandshakeResponse", version, {})
        for reply in replies:
            _, version, correlation = peer.take()
            source = Reader(peer.frames[-1], 4)
            _, body = decode_request(definitions(), "SaslAuthenticate", version, source.take(source.remaining))
            heard.append(body["AuthBytes"])
            peer.answer(correlation, "SaslAuthenticateResponse", version, reply)

    return script


@pytest.fixture
def fixed_nonce(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secrets.token_urlsafe", lambda _: NONCE)


@pytest.mark.usefixtures("fixed_nonce")
def test_scram_speaks_the_example_of_the_rfc() -> None:
    """With the RFC's name, password and nonces, the messages are those of the RFC, and its server is accepted."""
    heard: list[bytes] = []
    replies = ({"AuthBytes": CHALLENGE.encode()}, {"AuthBytes": SIGNATURE.encode()})
    login = Scram(username="user", password="pencil")
    with (
        broker(authenticating(*replies, heard=heard)) as address,
        Connection(*address, definitions(), authentication=login, timeout_s=PATIENT_S),
    ):
        pass
    assert heard == [f"n,,n=user,r={NONCE}".encode(), PROOF.encode()]


@pytest.mark.usefixtures("fixed_nonce")
@pytest.mark.parametrize(
    ("challenge", "signature", "complaint"),
    [
        (CHALLENGE, "v=AAAA", "does not know the password"),
        (CHALLENGE, "", "does not know the password"),
        (CHALLENGE.replace(NONCE, "x"), SIGNATURE, "another nonce"),
        (CHALLENGE.replace("4096", "99999999"), SIGNATURE, "99999999 iterations"),
        (CHALLENGE.replace("s=", "s=!"), SIGNATURE, "not a SCRAM challenge"),
        ("nonsense", SIGNATURE, "not a SCRAM challenge"),
        ("\xff", SIGNATURE, "not a SCRAM challenge"),
    ],
)
def test_scram_refuses_a_server_that_proves_nothing(challenge: str, signature: str, complaint: str) -> None:
    """A wrong signature, a foreign nonce, absurd work and garbage are protocol errors, and the connection ends."""
    replies = ({"AuthBytes": challenge.encode("latin-1")}, {"AuthBytes": signature.encode()})
    login = Scram(username="user", password="pencil")
    with broker(authenticating(*replies, heard=[])) as address, pytest.raises(ProtocolError, match=complaint):
        Connection(*address, definitions(), authentication=login, timeout_s=PATIENT_S)


def test_plain_is_one_message() -> None:
    """PLAIN sends an empty authorization identity, the name and the password."""
    heard: list[bytes] = []
    with (
        broker(authenticating({}, heard=heard)) as address,
        Connection(*address, definitions(), authentication=Plain(username="a", password="b"), timeout_s=PATIENT_S),
    ):
        pass
    assert heard == [b"\0a\0b"]


def test_a_wrong_password_is_an_error_at_once() -> None:
    """A refusal is raised with the broker's code and sentence, without another attempt and without the secret."""
    refusal = {"ErrorCode": 58, "ErrorMessage": "Invalid username or password"}
    with broker(authenticating(refusal, heard=[])) as address:
        login = Plain(username="a", password="hush")
        with (
            Client(f"{address[0]}:{address[1]}", definitions(), authentication=login, timeout_s=PATIENT_S) as client,
            pytest.raises(BrokerError, match="Invalid username or password") as caught,
        ):
            client.metadata()
    assert caught.value.error is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert "hush" not in f"{caught.value} {login!r}"
