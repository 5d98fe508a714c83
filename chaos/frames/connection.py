"""One connection through a frame-aware link: two pumps, one per direction, that read, decide and pass on, in order.

A pump that holds a frame does not read on. Later bytes stay in the buffers of the operating system, and the sender
sees a full window. So memory is bounded by one frame per connection and direction. The two directions do not wait for
each other: while a request is held, answers to earlier ones arrive.

The end of a connection travels in order with the bytes. When the client closes, the broker sees it after everything
that the client sent before, held frames included. Later answers of the broker have no receiver, but are kept as
evidence. When the broker closes, the client sees it at once, and a request that is still held is lost when released.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from chaos.frames.actions import Cut, Delay, Drop, Duplicate, Hold, Respond
from chaos.frames.framing import Framer, Whole
from chaos.frames.request_fields import HEAD, FrameReader, RequestFrame
from chaos.frames.response_order import ResponseOrder, ResponseSlot
from chaos.frames.responses import answer_frame
from chaos.frames.rule import Disposition, Rule
from chaos.frames.selector import Direction

CHUNK_BYTES = 1 << 18
#: The last bytes of a closing socket take a moment to leave; this bounds the wait for a peer that does not read them.
LINGER_S = 0.5

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class LinkContext(Protocol):
    """The parts of a link that a connection uses."""

    name: str
    reader: FrameReader
    rules: tuple[Rule, ...]
    frame_bytes_max: int

    def duplicate(self, rule: Rule, number: int, request: RequestFrame) -> None:
        """Send a met request again, as the rule's action says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionStatus:
    """One open connection. `opaque`: its bytes are not in Kafka's framing (for example TLS) and pass unread."""

    link: str
    connection: int
    requests: int
    responses: int
    request_bytes: int
    response_bytes: int
    opaque: bool


class RelayedConnection:
    """A client's connection and the relay's own to the broker. `run` returns when both ends are closed."""

    def __init__(self, link: LinkContext, number: int, client: Stream, broker: Stream) -> None:
        self.number = number
        self._link, self._client, self._broker = link, client, broker
        self._order = ResponseOrder()
        limit = link.frame_bytes_max
        self._asking = Framer(HEAD.size, self._begin_request, lambda: b"", frame_bytes_max=limit)
        self._answering = Framer(4, self._begin_response, self._order.end, frame_bytes_max=limit)
        self._lost = {Direction.REQUEST: False, Direction.RESPONSE: False}
        self._frames = dict.fromkeys(Direction, 0)
        self._bytes = dict.fromkeys(Direction, 0)
        self._read_s = dict.fromkeys(Direction, 0.0)  # when the current bytes arrived

    def status(self) -> ConnectionStatus:
        """The counts so far."""
        return ConnectionStatus(
            link=self._link.name,
            connection=self.number,
            requests=self._frames[Direction.REQUEST],
            responses=self._frames[Direction.RESPONSE],
            request_bytes=self._bytes[Direction.REQUEST],
            response_bytes=self._bytes[Direction.RESPONSE],
            opaque=self._asking.opaque or self._answering.opaque,
        )

    async def run(self) -> None:
        """Pump until both directions have ended; closes every socket in any case."""
        try:
            async with asyncio.TaskGroup() as pumps:
                pumps.create_task(self._pump(Direction.REQUEST))
                pumps.create_task(self._pump(Direction.RESPONSE))
        except BaseException:  # mostly a cancellation: nothing more may leave
            for _, writer in (self._client, self._broker):
                writer.transport.abort()
            raise
        finally:
            await close(self._client[1], self._broker[1])

    async def _pump(self, direction: Direction) -> None:
        asking = direction is Direction.REQUEST
        source, (_, target) = (self._client, self._broker) if asking else (self._broker, self._client)
        framer, act = (self._asking, self._request) if asking else (self._answering, self._response)
        while chunk := await _read(source[0]):
            self._bytes[direction] += len(chunk)
            self._read_s[direction] = time.monotonic()
            # Bytes behind a dropped request do not matter; answers behind a dropped response may still be evidence.
            if asking and self._lost[direction]:
                continue
            for piece in framer.feed(chunk, withhold=bool(self._link.rules)):
                if isinstance(piece, Whole):
                    await act(piece)
                else:
                    await self._send(direction, piece)
                if asking and self._lost[direction]:
                    break
        await self._send(direction, framer.rest())
        if not target.is_closing():
            with suppress(OSError, RuntimeError):
                target.write_eof()

    async def _send(self, direction: Direction, data: bytes) -> bool:
        """Pass bytes on; whether the other side still takes them."""
        _, writer = self._broker if direction is Direction.REQUEST else self._client
        if self._lost[direction]:
            return False
        if writer.is_closing():
            return self._send_failed(direction)
        if data:
            writer.write(data)
            try:
                await writer.drain()
            except OSError:
                return self._send_failed(direction)
        return True

    def _send_failed(self, direction: Direction) -> bool:
        """After the client's end answers may still be evidence; after the broker's end the client must see it."""
        if direction is Direction.REQUEST:
            self._cut()
        return False

    def _cut(self) -> None:
        self._lost = dict.fromkeys(Direction, True)
        for _, writer in (self._client, self._broker):
            writer.close()

    # ---- requests ----

    def _begin_request(self, head: bytes, size: int, collectable: bool) -> tuple[bytes, bool]:
        """Collect a request that a rule may want; any other one gets its slot in the order and passes."""
        self._frames[Direction.REQUEST] += 1
        if size < HEAD.size:
            return b"", False  # a bare SASL token: no head, and no correlation id in its answer
        key, version, correlation_id = HEAD.unpack_from(head, 4)
        wanting = [rule for rule in self._link.rules if rule.may_want(key)]
        if wanting and collectable:
            return b"", True
        for rule in wanting:
            rule.miss(f"{self._link.reader.apis.get(key, key)} v{version}: passing already, or above the size limit")
        self._order.expect(ResponseSlot(correlation_id=correlation_id))
        return b"", False

    async def _request(self, frame: Whole) -> None:
        request = self._link.reader.request(frame)
        for rule in self._link.rules:
            if rule.frames.direction is Direction.REQUEST and rule.selects(request) and rule.admit():
                await self._meet(rule, request, self._strike_request)
                return
        await self._forward(request, None)

    async def _forward(self, request: RequestFrame, met: tuple[Rule, int] | None) -> bool:
        """Let a collected request go on; whether the broker still takes it."""
        rules = tuple(
            rule for rule in self._link.rules if rule.frames.direction is Direction.RESPONSE and rule.selects(request)
        )
        if request.answered():
            self._order.expect(
                ResponseSlot(correlation_id=request.correlation_id, request=request, rules=rules, met=met)
            )
        # A broker that has ended its side has closed: bytes written now end in its operating system.
        gone = self._broker[0].at_eof()
        return await self._send(Direction.REQUEST, request.frame) and not gone

    async def _strike_request(self, rule: Rule, number: int, request: RequestFrame) -> Disposition:
        disposition = await self._kept(rule, number)
        if disposition is not Disposition.DELIVERED:
            return disposition
        if isinstance(rule.action, Respond):
            if request.answered():
                ready = answer_frame(request, rule.action)
                self._order.expect(ResponseSlot(correlation_id=request.correlation_id, ready=ready))
            if not self._answering.inside:
                await self._send(Direction.RESPONSE, self._order.due())
            return Disposition.ANSWERED
        if not await self._forward(request, (rule, number)):
            return Disposition.LOST
        if isinstance(rule.action, Duplicate):
            self._link.duplicate(rule, number, request)
        return Disposition.DELIVERED

    # ---- responses ----

    def _begin_response(self, head: bytes, size: int, collectable: bool) -> tuple[bytes, bool]:
        """Collect a response that a rule wants; also returns the relay's own answers that go before it."""
        self._frames[Direction.RESPONSE] += 1
        if size < 4:
            return b"", False  # a bare SASL token
        before = self._order.begin(int.from_bytes(head[4:], "big", signed=True))
        slot = self._order.current
        if slot is None:
            return before, False
        rules = tuple(rule for rule in slot.rules if rule.active)
        if not collectable:
            for rule in (*rules, *((slot.met[0],) if slot.met else ())):
                rule.miss("a response that was passing already, or is above the size limit")
        return before, bool(rules or slot.met)

    async def _response(self, frame: Whole) -> None:
        slot = self._order.current
        assert slot is not None
        assert slot.request is not None
        if slot.met is not None:
            rule, number = slot.met
            rule.note(number, answer=frame[4:], answered_ns=time.monotonic_ns())
        for rule in () if self._lost[Direction.RESPONSE] else slot.rules:
            if rule.active and rule.admit():
                await self._meet(rule, slot.request, self._strike_response, frame)
                return
        await self._send(Direction.RESPONSE, frame)

    async def _strike_response(self, rule: Rule, number: int, request: RequestFrame) -> Disposition:
        disposition = await self._kept(rule, number)
        if disposition is not Disposition.DELIVERED:
            return disposition
        if isinstance(rule.action, Respond):
            sent = await self._send(Direction.RESPONSE, answer_frame(request, rule.action))
            return Disposition.ANSWERED if sent else Disposition.LOST
        return disposition

    # ---- both ----

    async def _meet(self, rule: Rule, request: RequestFrame, strike: Strike, response: bytes | None = None) -> None:
        """Record a frame in the rule, carry out the rule's action, and record how it ended."""
        answer = None if response is None else response[4:]
        number = rule.meet(request, link=self._link.name, connection=self.number, answer=answer)
        disposition = Disposition.LOST
        try:
            disposition = await strike(rule, number, request)
            if disposition is Disposition.DELIVERED and response is not None:
                disposition = disposition if await self._send(Direction.RESPONSE, response) else Disposition.LOST
        finally:
            rule.settle(number, disposition)

    async def _kept(self, rule: Rule, number: int) -> Disposition:
        """The common part of the actions of both directions: keep the frame, then deliver, drop or cut."""
        action, direction = rule.action, rule.frames.direction
        if isinstance(action, Hold | Delay):
            waited_s = time.monotonic() - self._read_s[direction]
            disposition = await rule.wait(
                number, max(0.0, action.delay_s - waited_s) if isinstance(action, Delay) else None
            )
            self._lost[direction] = disposition is Disposition.DROPPED
            return disposition
        if isinstance(action, Drop):
            self._lost[direction] = not action.alone
            return Disposition.DROPPED
        if isinstance(action, Cut):
            self._cut()
            return Disposition.CUT
        return Disposition.DELIVERED


Strike = Callable[[Rule, int, RequestFrame], Awaitable[Disposition]]


async def _read(reader: asyncio.StreamReader) -> bytes:
    """The next bytes; none at the end, and a reset counts as an end."""
    try:
        return await reader.read(CHUNK_BYTES)
    except OSError:
        return b""


async def close(*writers: asyncio.StreamWriter) -> None:
    """Close connections. Their last bytes have `LINGER_S` to leave; then they are aborted, also on cancellation."""
    for writer in writers:
        writer.close()
    try:
        for writer in writers:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(LINGER_S):
                    await writer.wait_closed()
    finally:
        for writer in writers:
            writer.transport.abort()
