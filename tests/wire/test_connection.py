"""A connection reports brokers that close, stall, send wrong lengths or speak another protocol, over real sockets."""

from __future__ import annotations

import socket
import struct
import threading
import time
from typing import Any

import pytest

from tests.support.servers.wire_peer import PATIENT_S, Peer, Script, broker
from tests.support.wire_definitions import definitions
from wire.codes import ErrorCode
from wire.connection import Connection
from wire.deadline import Deadline
from wire.errors import (
    ConnectError,
    CorrelationError,
    DeadlineError,
    DisconnectedError,
    OversizedError,
    ProtocolError,
    VersionError,
    WireError,
)
from wire.request import Request
from wire.responses import Responses

# Long enough to be sure that nothing comes, short enough to wait for it.
BRIEF_S = 0.3


def plain(address: tuple[str, int], **options: Any) -> Connection:
    """A connection that skips the negotiation, so that a script sees only the requests of the test."""
    return Connection(*address, definitions(), negotiate=False, timeout_s=PATIENT_S, **options)


def end_txn(**body: Any) -> Request:
    return Request.of(definitions(), "EndTxn", 3, body)


def confirm(peer: Peer, error: int = 0) -> None:
    _, _, correlation = peer.take()
    peer.answer(correlation, "EndTxnResponse", 3, {"ErrorCode": error})


def test_a_call_gets_its_answer() -> None:
    """A request goes out once and its answer's body comes back."""
    with broker(lambda peer: confirm(peer, 47)) as address, plain(address) as connection:
        answer = connection.receive(connection.send(end_txn(TransactionalId="t")))
    assert answer["ErrorCode"] == ErrorCode.INVALID_PRODUCER_EPOCH


def test_pipelined_answers_are_received_in_any_order() -> None:
    """Five requests are on their way before the first answer; each gets its own, whatever order they are asked for."""

    def script(peer: Peer) -> None:
        numbers = [peer.take()[2] for _ in range(5)]
        for index, number in enumerate(numbers):
            peer.answer(number, "EndTxnResponse", 3, {"ErrorCode": index})

    with broker(script) as address, plain(address) as connection:
        pendings = [connection.send(end_txn()) for _ in range(5)]
        order = (3, 0, 4, 2, 1)
        assert [connection.receive(pendings[index])["ErrorCode"] for index in order] == list(order)


def test_a_replay_is_byte_for_byte_the_same() -> None:
    """A held request goes out again on another connection as the same bytes, and twice on one."""
    seen: list[bytes] = []

    def script(times: int) -> Script:
        def run(peer: Peer) -> None:
            for _ in range(times):
                confirm(peer)
            seen.extend(peer.frames)

        return run

    request = end_txn(TransactionalId="t", ProducerId=5)
    with broker(script(1), script(2)) as address:
        with plain(address) as first:
            first.receive(first.send(request))
        with plain(address) as second:
            pendings = [second.send(request), second.send(request)]
            assert [second.receive(pending)["ErrorCode"] for pending in pendings] == [0, 0]
    assert seen == [request.frame] * 3


def framed(correlation: int, error: int) -> bytes:
    """An answer to EndTxn v3 as it travels."""
    frame = struct.pack(">i", correlation) + b"\x00" + definitions().encode("EndTxnResponse", 3, {"ErrorCode": error})
    return struct.pack(">i", len(frame)) + frame


def test_a_flood_is_answered_in_order_and_decoded_on_demand() -> None:
    """One request goes out many times in one piece; an answer that does not decode fails only when it is read."""
    count, malformed = 5000, 17

    def script(peer: Peer) -> None:
        numbers = [peer.take()[2] for _ in range(count)]
        for index, number in enumerate(numbers):
            peer.socket.sendall(framed(number, index)) if index != malformed else peer.send(number, b"")
        assert len(set(peer.frames)) == 1

    with broker(script) as address, plain(address) as connection:
        answers = Responses(connection, connection.send_repeatedly(end_txn(TransactionalId="t"), count))
        assert len(answers) == count
        assert [answers[index]["ErrorCode"] for index in (0, 16, 18, -1)] == [0, 16, 18, count - 1]
        assert [each["ErrorCode"] for each in answers[100:103]] == [100, 101, 102]
        with pytest.raises(ProtocolError):
            list(answers)


def test_answers_that_come_in_one_piece_are_taken_apart() -> None:
    """Bytes behind an answer are kept for the next one, half an answer included; a large answer arrives whole."""
    proceed = threading.Event()
    large = b"\x01" * 300_000

    def script(peer: Peer) -> None:
        numbers = [peer.take()[2] for _ in range(4)]
        pieces = [framed(number, index) for index, number in enumerate(numbers[:3])]
        peer.socket.sendall(pieces[0] + pieces[1] + pieces[2][:6])
        assert proceed.wait(PATIENT_S)
        frame = struct.pack(">i", numbers[3]) + large
        peer.socket.sendall(pieces[2][6:] + struct.pack(">i", len(frame)) + frame)

    with broker(script) as address, plain(address) as connection:
        pendings = connection.send_repeatedly(end_txn(), 4)
        assert [connection.receive(each)["ErrorCode"] for each in pendings[:2]] == [0, 1]
        with pytest.raises(DeadlineError, match="bytes"):
            connection.receive(pendings[2], Deadline.after(BRIEF_S))
        proceed.set()
        assert connection.receive(pendings[2])["ErrorCode"] == 2
        assert connection.receive_bytes(pendings[3])[4:] == large


def test_a_late_answer_can_still_be_received() -> None:
    """A deadline in receive names the missing bytes and loses nothing: half an answer is completed later."""
    proceed = threading.Event()

    def script(peer: Peer) -> None:
        _, _, correlation = peer.take()
        whole = framed(correlation, 51)
        peer.socket.sendall(whole[:7])
        assert proceed.wait(PATIENT_S)
        peer.socket.sendall(whole[7:])

    with broker(script) as address, plain(address) as connection:
        pending = connection.send(end_txn())
        with pytest.raises(DeadlineError, match=r"waited 0\.3 s for .* to answer EndTxn v3 .*bytes"):
            connection.receive(pending, Deadline.after(BRIEF_S))
        assert not connection.closed
        proceed.set()
        assert connection.receive(pending)["ErrorCode"] == ErrorCode.CONCURRENT_TRANSACTIONS


@pytest.mark.parametrize("count", [0, 2, 9])
def test_a_close_in_any_place_is_a_disconnection(count: int) -> None:
    """A broker that closes before, inside or behind its answer's length leaves the outcome unknown, and says so."""

    def script(peer: Peer) -> None:
        _, _, correlation = peer.take()
        peer.socket.sendall((struct.pack(">ii", 100, correlation) + b"abcdef")[:count])

    with broker(script) as address, plain(address) as connection:
        pending = connection.send(end_txn())
        with pytest.raises(DisconnectedError, match="was closed by the broker before EndTxn v3"):
            connection.receive(pending)
        with pytest.raises(DisconnectedError, match=r"the answer to EndTxn v3 .* is lost"):
            connection.receive(pending)
        with pytest.raises(DisconnectedError, match="was not sent"):
            connection.send(end_txn())


def test_a_reset_is_a_disconnection() -> None:
    """A connection that is reset, as by a killed broker, is a DisconnectedError like one that is closed."""

    def script(peer: Peer) -> None:
        peer.take()
        peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with broker(script) as address, plain(address) as connection:
        pending = connection.send(end_txn())
        with pytest.raises(DisconnectedError):
            connection.receive(pending)


def test_answers_that_came_before_the_close_are_kept() -> None:
    """Of two pipelined requests the answered one has its answer, the other one is lost."""
    with broker(confirm) as address, plain(address) as connection:
        first, second = connection.send(end_txn()), connection.send(end_txn())
        with pytest.raises(DisconnectedError):
            connection.receive(second)
        assert connection.receive(first)["ErrorCode"] == 0


@pytest.mark.parametrize(
    ("noise", "expected"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", OversizedError),
        (b"\x15\x03\x03\x00\x02\x02\x46", OversizedError),  # a TLS alert
        (struct.pack(">i", 0x7FFFFFFF), OversizedError),
        (struct.pack(">i", -5), ProtocolError),
        (struct.pack(">i", 0), ProtocolError),
    ],
)
def test_something_else_than_kafka_is_refused(noise: bytes, expected: type[WireError]) -> None:
    """Garbage and impossible lengths are refused at once, whatever size they declare, and end the connection."""

    def script(peer: Peer) -> None:
        peer.take()
        peer.socket.sendall(noise)
        peer.await_end()

    with broker(script) as address, plain(address) as connection:
        pending = connection.send(end_txn())
        with pytest.raises(expected):
            connection.receive(pending)
        assert connection.closed


def test_the_frame_bound_is_the_callers() -> None:
    """An answer above the given bound is refused by its length alone."""

    def script(peer: Peer) -> None:
        _, _, correlation = peer.take()
        peer.send(correlation, b"", size=1001)
        peer.await_end()

    with broker(script) as address, plain(address, frame_bytes_max=1000) as connection:
        pending = connection.send(end_txn())
        with pytest.raises(OversizedError, match="1001 bytes, the bound is 1000"):
            connection.receive(pending)


def test_an_answer_to_another_question_ends_the_connection() -> None:
    """A correlation id out of turn means that the order is lost: nothing on this connection can be trusted."""

    def script(peer: Peer) -> None:
        _, _, correlation = peer.take()
        peer.answer(correlation + 1, "EndTxnResponse", 3, {})
        peer.await_end()

    with broker(script) as address, plain(address) as connection:
        pending = connection.send(end_txn())
        with pytest.raises(CorrelationError, match="where EndTxn v3"):
            connection.receive(pending)
        assert connection.closed


def test_a_body_that_does_not_decode_is_kept_as_bytes() -> None:
    """A malformed body in a sound frame is a ProtocolError, its bytes can be had, and the connection goes on."""

    def script(peer: Peer) -> None:
        _, _, correlation = peer.take()
        peer.send(correlation, b"\x00junk")
        confirm(peer)

    with broker(script) as address, plain(address) as connection:
        pending = connection.send(end_txn())
        with pytest.raises(ProtocolError, match="EndTxnResponse v3"):
            connection.receive(pending)
        assert connection.receive_bytes(pending).endswith(b"junk")
        assert connection.receive(connection.send(end_txn()))["ErrorCode"] == 0


def test_a_broker_that_does_not_read_ends_in_the_deadline() -> None:
    """When the broker takes nothing any more, send gives up in time and closes: half a request cannot be taken back."""
    release = threading.Event()
    with broker(lambda _: _until(release)) as address, plain(address) as connection:
        request = Request.of(definitions(), "SaslAuthenticate", 1, {"AuthBytes": bytes(64 << 20)})
        with pytest.raises(DeadlineError, match=r"to take SaslAuthenticate v1 .* bytes unsent"):
            connection.send(request, Deadline.after(BRIEF_S))
        assert connection.closed
        release.set()


def _until(event: threading.Event) -> None:
    assert event.wait(PATIENT_S)


def test_an_unanswered_request_waits_for_nothing() -> None:
    """After a Produce with Acks 0 the next answer belongs to the next request."""

    def script(peer: Peer) -> None:
        assert peer.take()[0] == 0
        confirm(peer)

    with broker(script) as address, plain(address) as connection:
        silent = connection.send(Request.of(definitions(), "Produce", 9, {"Acks": 0}))
        assert connection.receive(connection.send(end_txn()))["ErrorCode"] == 0
        with pytest.raises(ProtocolError, match="asked for no answer"):
            connection.receive(silent)


def test_a_closed_port_is_a_connect_error() -> None:
    """When the connection is refused, the error says that nothing was sent."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()[:2]
    with pytest.raises(ConnectError, match=f"no connection to 127.0.0.1:{address[1]}"):
        plain(address)


VERSIONS = {"ErrorCode": 0, "ApiKeys": [{"ApiKey": 26, "MinVersion": 0, "MaxVersion": 3}]}


def test_negotiation_learns_versions_and_features() -> None:
    """Versions and finalized features are those of the broker; the chosen version is known to both sides."""

    def script(peer: Peer) -> None:
        key, version, correlation = peer.take()
        assert (key, version) == (18, definitions().latest("ApiVersionsRequest"))
        features = [{"Name": "transaction.version", "MaxVersionLevel": 2, "MinVersionLevel": 0}]
        body = VERSIONS | {"FinalizedFeatures": features, "FinalizedFeaturesEpoch": 3}
        peer.answer(correlation, "ApiVersionsResponse", version, body)

    with broker(script) as address, Connection(*address, definitions(), timeout_s=PATIENT_S) as connection:
        assert connection.features == {"transaction.version": 2}
        assert connection.version_for("EndTxn") == 3
        assert connection.version_for("EndTxn", at_most=1) == 1
        with pytest.raises(VersionError, match="does not offer Fetch"):
            connection.version_for("Fetch")
        with pytest.raises(VersionError, match="none of which is defined here"):
            connection.version_for("EndTxn", at_most=-1)


def test_an_old_broker_is_asked_again_in_its_own_version() -> None:
    """A broker that answers 35 in the format of v0 is asked again at the version that it named (KIP-511)."""
    asked: list[int] = []

    def script(peer: Peer) -> None:
        _, version, correlation = peer.take()
        asked.append(version)
        refusal = {"ErrorCode": 35, "ApiKeys": [{"ApiKey": 18, "MinVersion": 0, "MaxVersion": 2}]}
        peer.answer(correlation, "ApiVersionsResponse", 0, refusal)
        _, version, correlation = peer.take()
        asked.append(version)
        peer.answer(correlation, "ApiVersionsResponse", version, VERSIONS)

    with broker(script) as address, Connection(*address, definitions(), timeout_s=PATIENT_S) as connection:
        assert connection.versions == {26: (0, 3)}
        assert connection.features == {}
    assert asked == [definitions().latest("ApiVersionsRequest"), 2]


def test_a_silent_broker_ends_in_the_deadline() -> None:
    """A paused broker accepts and stays silent: opening a connection to it ends in time."""
    with broker(Peer.await_end) as address:
        started = time.monotonic()
        with pytest.raises(DeadlineError, match="to answer ApiVersions"):
            Connection(*address, definitions(), timeout_s=BRIEF_S)
        assert time.monotonic() - started < PATIENT_S / 2
