"""One connection through a frame-aware link: two pumps, each of which reads, decides and passes on, in order.

A pump that holds a frame does not read on. So what follows stays in the operating system's buffers, the other side
feels it as a full window, and memory is bounded by one frame per connection and direction. The two directions do not
wait for each other: while a request is held, answers to earlier ones arrive.

The end of a connection travels as bytes do. When the client closes, the broker is told after everything the client
sent before, held frames included; what the broker answers then is nobody's, but is kept as evidence. When the broker
closes, the client is told at once, and a request that is still held here is lost when it is let go.
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
#: A closing socket's last bytes take a moment to leave; a peer that does not read them is not waited for longer.
LINGER_S = 0.5

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class LinkContext(Protocol):
    """What a connection needs from its link."""

    name: str
    reader: FrameReader
    rules: tuple[Rule, ...]
    frame_bytes_max: int

    def duplicate(self, rule: Rule, number: int, asked: RequestFrame) -> None:
        """Send a met request again, as the rule's action says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionStatus:
    """One open connection. `opaque`: its bytes are not Kafka's framing (TLS, for instance) and pass unread."""

    link: str
    connection: int
    requests: int
    responses: int
    request_bytes: int
    response_bytes: int
    opaque: bool


class RelayedConnection:
    """A client's connection and ours to the broker. `run` returns when both ends are closed."""

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
        self._read_s = dict.fromkeys(Direction, 0.0)  # when the bytes came that are being dealt with

    def status(self) -> ConnectionStatus:
        """What passed so far."""
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
        """Pump until both directions have ended; every socket is closed whatever happens."""
        try:
            async with asyncio.TaskGroup() as pumps:
                pumps.create_task(self._pump(Direction.REQUEST))
                pumps.create_task(self._pump(Direction.RESPONSE))
        except BaseException:  # being stopped, as a rule: nothing more shall leave
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
            # Behind a dropped request nothing matters; behind a dropped response, answers may still be evidence.
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
        """Pass bytes on; whether somebody is there to take them."""
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
        """A client that is gone leaves answers that may be evidence; that a broker is gone, its client must learn."""
        if direction is Direction.REQUEST:
            self._cut()
        return False

    def _cut(self) -> None:
        self._lost = dict.fromkeys(Direction, True)
        for _, writer in (self._client, self._broker):
            writer.close()

    # ---- requests ----

    def _begin_request(self, head: bytes, size: int, collectable: bool) -> tuple[bytes, bool]:
        """Collect a request that a rule may want; another one takes its place in the order and passes."""
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
        asked = self._link.reader.asked(frame)
        for rule in self._link.rules:
            if rule.frames.direction is Direction.REQUEST and rule.selects(asked) and rule.admit():
                await self._meet(rule, asked, self._strike_request)
                return
        await self._forward(asked, None)

    async def _forward(self, asked: RequestFrame, met: tuple[Rule, int] | None) -> bool:
        """Let a collected request go on; whether the broker is there to take it."""
        rules = tuple(
            rule for rule in self._link.rules if rule.frames.direction is Direction.RESPONSE and rule.selects(asked)
        )
        if asked.answered():
            self._order.expect(ResponseSlot(correlation_id=asked.correlation_id, asked=asked, rules=rules, met=met))
        # A broker that has ended its side has closed: what is written now ends in its operating system.
        gone = self._broker[0].at_eof()
        return await self._send(Direction.REQUEST, asked.frame) and not gone

    async def _strike_request(self, rule: Rule, number: int, asked: RequestFrame) -> Disposition:
        fate = await self._kept(rule, number)
        if fate is not Disposition.DELIVERED:
            return fate
        if isinstance(rule.action, Respond):
            if asked.answered():
                ready = answer_frame(asked, rule.action)
                self._order.expect(ResponseSlot(correlation_id=asked.correlation_id, ready=ready))
            if not self._answering.inside:
                await self._send(Direction.RESPONSE, self._order.due())
            return Disposition.ANSWERED
        if not await self._forward(asked, (rule, number)):
            return Disposition.LOST
        if isinstance(rule.action, Duplicate):
            self._link.duplicate(rule, number, asked)
        return Disposition.DELIVERED

    # ---- responses ----

    def _begin_response(self, head: bytes, size: int, collectable: bool) -> tuple[bytes, bool]:
        """Collect a response that somebody is interested in; say which answers of ours go before it."""
        self._frames[Direction.RESPONSE] += 1
        if size < 4:
            return b"", False  # a bare SASL token
        before = self._order.begin(int.from_bytes(head[4:], "big", signed=True))
        place = self._order.current
        if place is None:
            return before, False
        rules = tuple(rule for rule in place.rules if rule.active)
        if not collectable:
            for rule in (*rules, *((place.met[0],) if place.met else ())):
                rule.miss("a response that was passing already, or is above the size limit")
        return before, bool(rules or place.met)

    async def _response(self, frame: Whole) -> None:
        place = self._order.current
        assert place is not None
        assert place.asked is not None
        if place.met is not None:
            rule, number = place.met
            rule.note(number, answer=frame[4:], answered_ns=time.monotonic_ns())
        for rule in () if self._lost[Direction.RESPONSE] else place.rules:
            if rule.active and rule.admit():
                await self._meet(rule, place.asked, self._strike_response, frame)
                return
        await self._send(Direction.RESPONSE, frame)

    async def _strike_response(self, rule: Rule, number: int, asked: RequestFrame) -> Disposition:
        fate = await self._kept(rule, number)
        if fate is not Disposition.DELIVERED:
            return fate
        if isinstance(rule.action, Respond):
            told = await self._send(Direction.RESPONSE, answer_frame(asked, rule.action))
            return Disposition.ANSWERED if told else Disposition.LOST
        return fate

    # ---- both ----

    async def _meet(self, rule: Rule, asked: RequestFrame, strike: Strike, response: bytes | None = None) -> None:
        """Write a frame into the rule's book, do to it what the rule says, and write down how it ended."""
        answer = None if response is None else response[4:]
        number = rule.meet(asked, link=self._link.name, connection=self.number, answer=answer)
        fate = Disposition.LOST
        try:
            fate = await strike(rule, number, asked)
            if fate is Disposition.DELIVERED and response is not None:
                fate = fate if await self._send(Direction.RESPONSE, response) else Disposition.LOST
        finally:
            rule.settle(number, fate)

    async def _kept(self, rule: Rule, number: int) -> Disposition:
        """What the actions of both directions have in common: keep it, and then deliver, drop or cut."""
        action, direction = rule.action, rule.frames.direction
        if isinstance(action, Hold | Delay):
            waited_s = time.monotonic() - self._read_s[direction]
            fate = await rule.wait(number, max(0.0, action.delay_s - waited_s) if isinstance(action, Delay) else None)
            self._lost[direction] = fate is Disposition.DROPPED
            return fate
        if isinstance(action, Drop):
            self._lost[direction] = not action.alone
            return Disposition.DROPPED
        if isinstance(action, Cut):
            self._cut()
            return Disposition.CUT
        return Disposition.DELIVERED


Strike = Callable[[Rule, int, RequestFrame], Awaitable[Disposition]]


async def _read(reader: asyncio.StreamReader) -> bytes:
    """What has come; nothing at the end, and a reset is an end like any other."""
    try:
        return await reader.read(CHUNK_BYTES)
    except OSError:
        return b""


async def close(*writers: asyncio.StreamWriter) -> None:
    """Close connections: their last bytes have a moment to leave, then it is over, also for who is cancelled here."""
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
