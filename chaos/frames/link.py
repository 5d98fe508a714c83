"""One frame-aware link: a listener, its connections, and the copies that are sent to its broker."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from chaos.frames.actions import Duplicate
from chaos.frames.connection import CHUNK_BYTES, RelayedConnection, Stream
from chaos.frames.link_context import Tap
from chaos.frames.listener import Listener
from chaos.frames.request_fields import FrameReader, RequestFrame
from chaos.frames.resend import DIAL_S, send_copy
from chaos.frames.rule import Rule
from chaos.routes import Endpoint

ANY_PORT = Endpoint(host="127.0.0.1", port=0)
#: Clients pause for 50 ms and more between attempts, and a broker starts in seconds.
LOOK_EVERY_S = 0.1


class FrameLink:
    """One listener and its connections; used only on the links' thread."""

    def __init__(
        self,
        name: str,
        upstream: Endpoint,
        reader: FrameReader,
        frame_bytes_max: int,
        tap: Tap | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.name, self.upstream, self.reader, self.frame_bytes_max = name, upstream, reader, frame_bytes_max
        self.tap, self.tls = tap, tls
        self.rules: tuple[Rule, ...] = ()
        self.connections: dict[int, RelayedConnection] = {}
        self.problems: list[str] = []
        self._listener = Listener(self._accept)
        self._numbers = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._shut = False

    async def listen(self, at: Endpoint = ANY_PORT) -> Endpoint:
        """Begin to accept; returns the address."""
        return await self._listener.open(at)

    async def shut(self) -> None:
        """Accept nothing more and end every connection and copy."""
        self._shut = True
        self._listener.close()
        # A connection that was accepted just now is on its way to `_accept`, by steps of the loop.
        for _ in range(3):
            await asyncio.sleep(0)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def duplicate(self, rule: Rule, number: int, request: RequestFrame) -> None:
        """Send a met request again, as the rule's action says."""
        self.spawn(self._duplicate(rule, number, request))

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a task that ends with the link at the latest."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.problems.append(f"{self.name}: {error!r}")

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._shut:
            writer.transport.abort()
            return
        self._numbers += 1
        task = self.spawn(self._connect(self._numbers, (reader, writer)))
        # A task that is cancelled before its first step closes nothing.
        task.add_done_callback(lambda _: writer.transport.abort())

    async def _connect(self, number: int, client: Stream) -> None:
        try:
            async with asyncio.timeout(DIAL_S):
                broker = await asyncio.open_connection(
                    self.upstream.host, self.upstream.port, limit=CHUNK_BYTES, ssl=self.tls
                )
        except BaseException as error:
            if isinstance(error, OSError) and self.tap is not None:  # a TimeoutError is one
                self.tap.unreachable(self.name, error)
            if isinstance(error, OSError) and self._listener.refuse():
                self.spawn(self._resume())
            _reset(client[1])
            if isinstance(error, OSError):
                return
            raise
        self.connections[number] = connection = RelayedConnection(self, number, client, broker)
        try:
            await connection.run()
        finally:
            del self.connections[number]

    async def _resume(self) -> None:
        """Accept again as soon as the broker listens; whether it speaks TLS shows in the next connection."""
        broker: asyncio.StreamWriter | None = None
        while broker is None:
            await asyncio.sleep(LOOK_EVERY_S)
            with suppress(OSError):
                async with asyncio.timeout(DIAL_S):
                    _, broker = await asyncio.open_connection(self.upstream.host, self.upstream.port)
        broker.transport.abort()
        await self._listener.resume()

    async def _duplicate(self, rule: Rule, number: int, request: RequestFrame) -> None:
        assert isinstance(rule.action, Duplicate)
        for _ in range(rule.action.times):
            with suppress(TimeoutError):
                async with asyncio.timeout(rule.action.after_s):
                    await rule.gone.wait()
            if rule.gone.is_set():
                return
            rule.copied(
                number, await send_copy(self.upstream, request.frame, answered=request.answered(), tls=self.tls)
            )


def _reset(client: asyncio.StreamWriter) -> None:
    """End a connection by a reset: after a clean end before the first answer, a client may think the address wrong."""
    with suppress(OSError):  # the client has closed it
        client.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.transport.abort()
