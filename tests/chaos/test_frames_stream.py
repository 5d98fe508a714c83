"""A frame-aware link passes bytes unchanged: split, joined, huge, unreadable, cut off; and it ends when closed."""

from __future__ import annotations

import random
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.errors import InjectionError
from chaos.frames import Delay, Direction, Disposition, FrameFilter, FrameLinks, Hold, Respond
from chaos.frames.framing import SIZE_MAX, Framer, Whole
from chaos.routes import Endpoint
from tests.chaos.test_links import EchoServer, free_endpoint
from tests.support.servers.frame_broker import client, end_txn, frame_broker, heartbeat, sound
from tests.support.servers.wire_peer import PATIENT_S, Peer, broker
from tests.support.wire_definitions import definitions
from wire.connection import Connection
from wire.errors import ConnectError

TLS_HELLO = bytes.fromhex("1603010200010001fc0303") + bytes(range(256)) * 2
SILENCE_S = 0.3


@pytest.fixture(scope="module")
def echo() -> Iterator[EchoServer]:
    server = EchoServer()
    yield server
    server.close()


@contextmanager
def dialled(at: Endpoint) -> Iterator[socket.socket]:
    with socket.create_connection((at.host, at.port), timeout=PATIENT_S) as connection:
        yield connection


@contextmanager
def retried(at: Endpoint) -> Iterator[Connection]:
    """A client that tries again until it is connected."""
    until = time.monotonic() + PATIENT_S
    while True:
        try:
            connected = client(at)
            break
        except ConnectError:
            assert time.monotonic() < until
            time.sleep(0.02)
    with connected as one:
        yield one


def exactly(connection: socket.socket, count: int) -> bytes:
    """So many bytes, or as many as come before the end."""
    data = bytearray()
    with suppress(ConnectionError):  # a socket that closes with bytes unread resets
        while len(data) < count and (piece := connection.recv(count - len(data))):
            data += piece
    return bytes(data)


def ends(connection: socket.socket) -> bool:
    """Whether the other side ends it, in order or not, without another byte."""
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


PIECES = st.one_of(
    st.binary(max_size=40),
    st.binary(max_size=40).map(lambda body: struct.pack(">i", len(body)) + body),
    st.sampled_from([heartbeat().frame, end_txn().frame, TLS_HELLO[:40], b"\x00\x00\x00\x00", b"\x80\x00\x00\x00"]),
)


@given(pieces=st.lists(PIECES, max_size=8), seed=st.integers(0, 1 << 30), withhold=st.booleans())
@settings(max_examples=300, deadline=None)
def test_no_byte_is_lost_added_or_moved(pieces: list[bytes], seed: int, withhold: bool) -> None:
    """Any bytes in any chunks, with any frames collected, go out again in the same order."""
    stream, dice, out = b"".join(pieces), random.Random(seed), []
    framer = Framer(8, lambda *_: (b"", withhold and dice.random() < 0.5), lambda: b"", frame_bytes_max=30)
    position = 0
    while position < len(stream):
        step = dice.choice([1, 2, 3, 5, 20, 1000])
        out += list(framer.feed(stream[position : position + step], withhold=withhold))
        position += step
        if not withhold:
            assert b"".join(out) == stream[:position], "a byte waits although no rule can want it"
    assert b"".join([*out, framer.rest()]) == stream
    for piece in out:
        assert not isinstance(piece, Whole) or len(piece) == 4 + int.from_bytes(piece[:4], "big") <= 30


@given(pieces=st.lists(PIECES, max_size=6), seed=st.integers(0, 1 << 30), ruled=st.booleans())
@settings(max_examples=25, deadline=None)
def test_a_link_is_transparent_in_both_directions(
    echo: EchoServer, pieces: list[bytes], seed: int, ruled: bool
) -> None:
    """Arbitrary bytes in arbitrary chunks come back from an echo as they went, with and without rules."""
    stream, dice, position = b"".join(pieces), random.Random(seed), 0
    links = shared_links()
    at = links.open(f"echo-{seed}-{time.monotonic_ns()}", echo.at)
    rule = links.add(FrameFilter(), Delay(delay_s=0.0001)) if ruled else None
    with dialled(at) as connection:
        while position < len(stream):
            step = dice.choice([1, 7, 50, 1000])
            connection.sendall(stream[position : position + step])
            position += step
        connection.shutdown(socket.SHUT_WR)
        assert exactly(connection, len(stream) + 1) == stream
    if rule is not None:
        links.remove(rule)
    assert sound(links)


_shared: list[FrameLinks] = []


def shared_links() -> FrameLinks:
    """One thread for all examples: starting one per example is most of the time."""
    if not _shared:
        _shared.append(FrameLinks(definitions()))
    return _shared[0]


@pytest.fixture(scope="module", autouse=True)
def _close_shared() -> Iterator[None]:
    yield
    for each in _shared:
        each.close()


def test_single_bytes_and_many_frames_at_once_are_the_same_frames(links: FrameLinks) -> None:
    """Each frame is met once, in order, however it was cut."""
    requests = [end_txn(f"{number}") for number in range(20)]
    stream = b"".join(each.frame for each in requests)
    for step in (1, 3, len(stream)):
        with frame_broker() as other:
            rule = links.add(FrameFilter(api="EndTxn"), Delay(delay_s=0.0001))
            with dialled(links.open(f"step-{step}", other.at)) as connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for start in range(0, len(stream), step):
                    connection.sendall(stream[start : start + step])
                other.await_frames(20)
            links.remove(rule)
            assert [met.request for met in rule.met] == other.frames == [each.frame for each in requests]


def test_a_huge_frame_streams(links: FrameLinks) -> None:
    """Its first half is with the broker before its second half was sent, rule or no rule; later frames are met again."""
    size, half_here, all_here = 32 << 20, threading.Event(), threading.Event()
    seen: list[bytes] = []
    behind = end_txn()

    def script(peer: Peer) -> None:
        count = 0
        while count < 4 + size:
            count += len(peer.socket.recv(1 << 20 if 4 + size - count > 1 << 20 else 4 + size - count))
            if count > 12 << 20:
                half_here.set()
        peer.take()
        seen.extend(peer.frames)
        all_here.set()
        peer.await_end()

    rule = links.add(FrameFilter(transactional_id="x"), Delay(delay_s=0.0001))
    with broker(script) as (host, port), dialled(links.open("app→1", Endpoint(host=host, port=port))) as connection:
        connection.sendall(struct.pack(">ihhi", size, 0, 12, 1) + bytes((size >> 1) - 8))
        assert half_here.wait(PATIENT_S), "the first half waits for the second"
        connection.sendall(bytes(size >> 1) + behind.frame)
        assert all_here.wait(PATIENT_S)
    assert [met.request for met in rule.met] == seen == [behind.frame]
    assert rule.missed == {"Produce v12: passing already, or above the size limit": 1}


def test_tls_passes_unread_and_says_so(links: FrameLinks, echo: EchoServer) -> None:
    """Its first bytes are no length that a frame has; rules do not touch it, and the status says that it is opaque."""
    rule = links.add(FrameFilter(), Hold())
    with dialled(links.open("app→1", echo.at)) as connection:
        for piece in (TLS_HELLO, end_txn().frame, TLS_HELLO):
            connection.sendall(piece)
            assert exactly(connection, len(piece)) == piece
        (status,) = links.status()
        assert status.opaque
        assert status.request_bytes == status.response_bytes == 2 * len(TLS_HELLO) + len(end_txn().frame)
    assert rule.count == 0


def test_bare_sasl_tokens_pass(links: FrameLinks) -> None:
    """Frames without any head, which SaslHandshake v0 is followed by, and after them requests that are met."""

    def script(peer: Peer) -> None:
        assert peer.exactly(7) == b"\x00\x00\x00\x03tok"
        peer.socket.sendall(b"\x00\x00\x00\x00" + b"\x00\x00\x00\x02ok")
        _, version, correlation_id = peer.take()
        peer.answer(correlation_id, "EndTxnResponse", version, {})
        peer.await_end()

    rule = links.add(FrameFilter(), Delay(delay_s=0.0001))
    with broker(script) as (host, port), client(links.open("app→1", Endpoint(host=host, port=port))) as one:
        one._socket.sendall(b"\x00\x00\x00\x03tok")
        assert exactly(one._socket, 10) == b"\x00\x00\x00\x00\x00\x00\x00\x02ok"
        one.receive(one.send(end_txn()))
    assert [met.api for met in rule.met] == ["EndTxn"]


def test_a_broker_that_is_not_there_resets_one_connection_and_refuses_others(links: FrameLinks) -> None:
    """Some clients take a clean end for a wrong listener. The port stays taken; a broker that is back is reached again."""
    broker = free_endpoint()
    at = links.open("app→1", broker)
    for _ in range(2):
        with pytest.raises(ConnectionResetError), dialled(at) as connection:
            connection.recv(1)
        for _ in range(3):
            with pytest.raises(ConnectionRefusedError), dialled(at):
                pass
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind((at.host, at.port))
        with frame_broker(broker.port), retried(at) as one:
            one.receive(one.send(end_txn()))


@pytest.mark.parametrize("stage", ["at once", "in the head", "in the body", "before the answer", "in the answer"])
def test_the_client_sees_that_a_broker_leaves(links: FrameLinks, stage: str) -> None:
    """The bytes of its unfinished answer arrive, and then the end."""
    answer = b"\x00\x00\x00\x10\x00\x00\x00\x07half"

    def script(peer: Peer) -> None:
        counts = {"at once": 0, "in the head": 6, "in the body": 20}
        peer.exactly(counts.get(stage, len(frame)))
        if stage == "in the answer":
            peer.socket.sendall(answer)

    frame = end_txn().frame
    links.add(FrameFilter(transactional_id="unused"), Hold())
    with broker(script) as (host, port), dialled(links.open("app→1", Endpoint(host=host, port=port))) as connection:
        connection.sendall(frame)
        assert exactly(connection, len(answer)) == (answer if stage == "in the answer" else b"")
        assert ends(connection)


@pytest.mark.parametrize("sent", [0, 2, 6, 20, None])
def test_the_broker_sees_that_a_client_leaves(links: FrameLinks, sent: int | None) -> None:
    """All bytes that it has sent arrive, half a frame included, and then the end."""
    frame, received = end_txn().frame[:sent], []

    def script(peer: Peer) -> None:
        received.append(exactly(peer.socket, 1000))

    links.add(FrameFilter(transactional_id="unused"), Hold())
    with broker(script) as (host, port), dialled(links.open("app→1", Endpoint(host=host, port=port))) as connection:
        connection.sendall(frame)
    assert received == [frame]


def test_a_frame_that_is_let_go_when_its_broker_has_left_is_lost(links: FrameLinks) -> None:
    """It is recorded as lost, not as delivered."""
    rule = links.add(FrameFilter(api="EndTxn"), Hold())
    with (
        broker(lambda _: None) as (host, port),
        dialled(links.open("a", Endpoint(host=host, port=port))) as connection,
    ):
        connection.sendall(end_txn().frame)
        assert ends(connection)
        rule.until("the frame", bool, timeout_s=PATIENT_S)
        rule.release()
        rule.until("its loss", lambda met: met[0].disposition is Disposition.LOST, timeout_s=PATIENT_S)


@pytest.mark.parametrize("direction", list(Direction))
def test_stopping_while_holding_takes_no_longer_and_leaves_nothing(direction: Direction) -> None:
    """Listener and connections end at both sides, the thread ends, and held frames are lost."""
    with frame_broker() as other:
        links = FrameLinks(definitions())
        rule = links.add(FrameFilter(api="EndTxn", direction=direction), Hold())
        with dialled(at := links.open("app→1", other.at)) as connection, dialled(at) as idle:
            connection.sendall(end_txn().frame)
            rule.until("the frame", bool, timeout_s=PATIENT_S)
            began = time.monotonic()
            links.close()
            links.close()
            assert time.monotonic() - began < 5
            assert ends(connection)
            assert ends(idle)
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((at.host, at.port))
        other.await_ends(2)
    assert [met.disposition for met in rule.met] == [Disposition.LOST]
    assert not [thread for thread in threading.enumerate() if thread is links._thread]
    with pytest.raises(InjectionError, match="are closed"):
        links.status()
    rule.release()


def test_stopping_does_not_wait_for_a_peer_that_does_not_read() -> None:
    """The buffers of the operating system are full at both sides, and so are those of the relay."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        links = FrameLinks(definitions())
        host, port = mute.getsockname()[:2]
        with dialled(links.open("app→1", Endpoint(host=host, port=port))) as connection:
            connection.settimeout(SILENCE_S)
            with pytest.raises(TimeoutError):
                connection.sendall(struct.pack(">i", SIZE_MAX) + bytes(SIZE_MAX >> 1))
            began = time.monotonic()
            links.close()
            assert time.monotonic() - began < 5


def test_our_answer_does_not_get_into_the_middle_of_a_passing_one(links: FrameLinks) -> None:
    """The answer to a token has no slot in the order, so only its own bytes show that it is not over."""
    half_told = threading.Event()

    def script(peer: Peer) -> None:
        peer.exactly(7)
        peer.socket.sendall(b"\x00\x00\x00\x08half")
        assert half_told.wait(PATIENT_S)
        peer.socket.sendall(b"rest")
        peer.await_end()

    rule = links.add(FrameFilter(api="EndTxn"), Respond(error_code=51))
    with broker(script) as (host, port), dialled(links.open("a", Endpoint(host=host, port=port))) as connection:
        connection.sendall(b"\x00\x00\x00\x03tok")
        assert exactly(connection, 8) == b"\x00\x00\x00\x08half"
        connection.sendall(end_txn().frame)
        rule.until(
            "our answer", lambda met: [each.disposition for each in met] == [Disposition.ANSWERED], timeout_s=PATIENT_S
        )
        half_told.set()
        assert exactly(connection, 4) == b"rest"
        size = int.from_bytes(exactly(connection, 4), "big")
        assert links.reader.error_codes("EndTxn", 4, exactly(connection, size)) == (51,)


def test_one_slow_connection_does_not_slow_another(links: FrameLinks) -> None:
    """A peer that does not read stops its own connection only."""
    with socket.create_server(("127.0.0.1", 0)) as mute, frame_broker() as other:
        host, port = mute.getsockname()[:2]
        with dialled(links.open("app→1", Endpoint(host=host, port=port))) as stuck:
            stuck.settimeout(SILENCE_S)
            with suppress(TimeoutError):
                stuck.sendall(struct.pack(">i", SIZE_MAX) + bytes(SIZE_MAX >> 1))
            rule = links.add(FrameFilter(api="EndTxn"), Respond(error_code=51))
            with client(links.open("app→2", other.at)) as one:
                assert one.receive(one.send(end_txn()))["ErrorCode"] == 51
            assert rule.count == 1


def test_a_name_is_given_once(links: FrameLinks, echo: EchoServer) -> None:
    """A second link of one name would make proofs ambiguous."""
    links.open("app→1", echo.at)
    with pytest.raises(InjectionError, match="app→1 already"):
        links.open("app→1", echo.at)
