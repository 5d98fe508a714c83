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
from functools import partial

from chaos.frames.actions import Cut, Delay, Drop, Duplicate, Hold, Respond
from chaos.frames.framing import Framer, Whole
from chaos.frames.link_context import ConnectionStatus, LinkContext
from chaos.frames.request_fields import HEAD, RequestFrame
from chaos.frames.response_order import ResponseOrder, ResponseSlot
from chaos.frames.responses import answer_frame
from chaos.frames.rule import Disposition, Rule
from chaos.frames.selector import Direction

CHUNK_BYTES = 1 << 18
#: The last bytes of a closing socket take a moment to leave; this bounds the wait for a peer that does not read them.
LINGER_S = 0.5

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


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
                abort(writer)
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
            for piece in framer.feed(chunk, withhold=bool(self._link.rules or self._link.tap)):
                if isinstance(piece, Whole):
                    await act(piece)
                else:
                    await self._send(direction, piece)
                if asking and self._lost[direction]:
                    break
        await self._send(direction, framer.rest())
        if not target.is_closing():
            with suppress(OSError, RuntimeError):
                # TLS cannot end one side only: the answers to a client that has gone are given up.
                target.write_eof() if target.can_write_eof() else target.close()

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
        if (wanting or self._link.tap) and collectable:
            return b"", True
        for rule in wanting:
            rule.miss(f"{self._link.reader.apis.get(key, key)} v{version}: passing already, or above the size limit")
        self._order.expect(ResponseSlot(correlation_id=correlation_id))
        return b"", False

    async def _request(self, frame: Whole) -> None:
        request = self._link.reader.request(frame)
        if self._link.tap is not None:
            self._link.tap.request(self._link.name, self.number, request)
        await self._ask(request, self._link.rules, ())

    async def _ask(self, request: RequestFrame, rules: tuple[Rule, ...], met: tuple[Met, ...]) -> Disposition:
        """Take a request through these rules and, if they let it pass, to the broker; returns how it ended."""
        for index, rule in enumerate(rules, start=1):
            if rule.frames.direction is Direction.REQUEST and rule.selects(request) and rule.admit():
                return await self._meet(rule, request, partial(self._strike_request, rules[index:], met))
        return Disposition.DELIVERED if await self._forward(request, met) else Disposition.LOST

    async def _forward(self, request: RequestFrame, met: tuple[Met, ...]) -> bool:
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

    async def _strike_request(
        self, rest: tuple[Rule, ...], met: tuple[Met, ...], rule: Rule, number: int, request: RequestFrame
    ) -> Disposition:
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
        disposition = await self._ask(request, rest, (*met, (rule, number)))
        if disposition is Disposition.DELIVERED and isinstance(rule.action, Duplicate):
            self._link.duplicate(rule, number, request)
        return disposition

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
            for rule in (*rules, *(rule for rule, _ in slot.met)):
                rule.miss("a response that was passing already, or is above the size limit")
        return before, bool(rules or slot.met or (self._link.tap and slot.request))

    async def _response(self, frame: Whole) -> None:
        slot = self._order.current
        assert slot is not None
        assert slot.request is not None
        response: bytes = frame
        if self._link.tap is not None:
            response = await self._link.tap.response(self._link.name, self.number, slot.request, frame)
        for rule, number in slot.met:
            rule.note(number, answer=response[4:], answered_ns=time.monotonic_ns())
        await self._answer(slot.request, response, () if self._lost[Direction.RESPONSE] else slot.rules)

    async def _answer(self, request: RequestFrame, response: bytes, rules: tuple[Rule, ...]) -> Disposition:
        """Take a response through these rules and, if they let it pass, to the client; returns how it ended."""
        for index, rule in enumerate(rules, start=1):
            if rule.active and rule.admit():
                return await self._meet(
                    rule, request, partial(self._strike_response, rules[index:], response), response
                )
        return Disposition.DELIVERED if await self._send(Direction.RESPONSE, response) else Disposition.LOST

    async def _strike_response(
        self, rest: tuple[Rule, ...], response: bytes, rule: Rule, number: int, request: RequestFrame
    ) -> Disposition:
        disposition = await self._kept(rule, number)
        if disposition is not Disposition.DELIVERED:
            return disposition
        if isinstance(rule.action, Respond):
            sent = await self._send(Direction.RESPONSE, answer_frame(request, rule.action))
            return Disposition.ANSWERED if sent else Disposition.LOST
        return await self._answer(request, response, rest)

    # ---- both ----

    async def _meet(
        self, rule: Rule, request: RequestFrame, strike: Strike, response: bytes | None = None
    ) -> Disposition:
        """Record a frame in the rule, carry out the rule's action, and record how it ended."""
        answer = None if response is None else response[4:]
        number = rule.meet(request, link=self._link.name, connection=self.number, answer=answer)
        disposition = Disposition.LOST
        try:
            disposition = await strike(rule, number, request)
        finally:
            rule.settle(number, disposition)
        return disposition

    async def _kept(self, rule: Rule, number: int) -> Disposition:
        """The common part of the actions of both directions: keep the frame, then deliver, drop or cut."""
        action, direction = rule.action, rule.frames.direction
        if isinstance(action, Hold | Delay):
            waited_s = time.monotonic() - self._read_s[direction]
            await rule.wait(number, max(0.0, action.delay_s - waited_s) if isinstance(action, Delay) else None)
            return Disposition.DELIVERED
        if isinstance(action, Drop):
            self._lost[direction] = not action.alone
            return Disposition.DROPPED
        if isinstance(action, Cut):
            self._cut()
            return Disposition.CUT
        return Disposition.DELIVERED


#: A rule, and the number under which it recorded the frame.
Met = tuple[Rule, int]
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
            abort(writer)


def abort(writer: asyncio.StreamWriter) -> None:
    """Close the socket at once, if it is still open.

    Python 3.11.2 raises AttributeError for TLS that was closed twice before, as a shutdown of both sides does.
    """
    with suppress(AttributeError):
        writer.transport.abort()
