"""Frame-aware links: listeners on loopback, each of which relays connections to one broker and applies the rules.

One background thread runs them all, so that a rule counts frames across links, in the order of their arrival. Every call
from outside runs on that thread and has a deadline. Closing ends listeners, connections and the thread within seconds,
whatever peers do. Frames that are held then are lost, so release them first where that matters (`remove` does).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, TypeVar
from uuid import UUID

from chaos.errors import InjectionError
from chaos.frames.actions import Duplicate, FrameAction, flaw
from chaos.frames.connection import CHUNK_BYTES, ConnectionStatus, RelayedConnection, Stream, close
from chaos.frames.request_fields import FrameReader, RequestFrame
from chaos.frames.resend import ANSWER_WITHIN_S, DIAL_S, send_copy
from chaos.frames.rule import MatchedFrame, ResentRequest, Rule
from chaos.frames.selector import FrameFilter
from chaos.routes import Endpoint
from wire.errors import WireError
from wire.messages import Definitions

#: Requests are kilobytes, and batches at most 1 MiB by default (message.max.bytes): two per request, and a margin.
FRAME_BYTES_MAX = 4 << 20
#: A call on the thread takes milliseconds; the machine may be busy.
CALL_WITHIN_S = 10.0
#: A running broker takes released frames at once; a paused one need not be waited for.
RETIRE_WITHIN_S = 2.0

Result = TypeVar("Result")


class FrameLink:
    """One listener and its connections; used only on the links' thread."""

    def __init__(self, name: str, upstream: Endpoint, reader: FrameReader, frame_bytes_max: int) -> None:
        self.name, self.upstream, self.reader, self.frame_bytes_max = name, upstream, reader, frame_bytes_max
        self.rules: tuple[Rule, ...] = ()
        self.connections: dict[int, RelayedConnection] = {}
        self.problems: list[str] = []
        self._server: asyncio.Server | None = None
        self._numbers = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._shut = False

    async def listen(self) -> Endpoint:
        """Begin to accept; returns the address."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=CHUNK_BYTES)
        host, port = self._server.sockets[0].getsockname()[:2]
        return Endpoint(host=host, port=port)

    async def shut(self) -> None:
        """Accept nothing more and end every connection and copy."""
        self._shut = True
        if self._server is not None:
            self._server.close()
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
                broker = await asyncio.open_connection(self.upstream.host, self.upstream.port, limit=CHUNK_BYTES)
        except BaseException as error:
            await close(client[1])  # the broker is gone: behind any proxy a refused connection looks so
            if isinstance(error, OSError):  # a TimeoutError is one
                return
            raise
        self.connections[number] = connection = RelayedConnection(self, number, client, broker)
        try:
            await connection.run()
        finally:
            del self.connections[number]

    async def _duplicate(self, rule: Rule, number: int, request: RequestFrame) -> None:
        assert isinstance(rule.action, Duplicate)
        for _ in range(rule.action.times):
            with suppress(TimeoutError):
                async with asyncio.timeout(rule.action.after_s):
                    await rule.gone.wait()
            if rule.gone.is_set():
                return
            rule.copied(number, await send_copy(self.upstream, request.frame, answered=request.answered()))


class FrameLinks:
    """Frame-aware links on a thread of their own, which runs from construction to `close`.

    `topic_ids` says which topics the ids in newer requests (Produce v13+, Fetch v13+) stand for; without it such
    requests have no partitions to be selected by. Frames above `frame_bytes_max` pass and are never selected.
    """

    def __init__(
        self,
        definitions: Definitions,
        *,
        topic_ids: Mapping[UUID, str] | None = None,
        frame_bytes_max: int = FRAME_BYTES_MAX,
    ) -> None:
        self.reader = FrameReader(definitions, topic_ids)
        self._frame_bytes_max = frame_bytes_max
        self._links: dict[str, FrameLink] = {}
        self._rules: list[Rule] = []
        self._loop = asyncio.new_event_loop()
        # A daemon, so that the interpreter ends also when `close` was forgotten.
        self._thread = threading.Thread(target=self._run, name="frame-links", daemon=True)
        self._closing = False
        self._thread.start()

    def __enter__(self) -> FrameLinks:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def open(self, name: str, upstream: Endpoint) -> Endpoint:
        """Open a link to a broker; returns the loopback address on which it listens. Raises InjectionError."""

        async def work() -> Endpoint:
            if name in self._links:
                raise InjectionError(f"there is a frame-aware link {name} already")
            link = FrameLink(name, upstream, self.reader, self._frame_bytes_max)
            try:
                at = await link.listen()
            except OSError as error:
                raise InjectionError(f"cannot listen for the frame-aware link {name}: {error}") from error
            self._links[name] = link
            self._deal()
            return at

        return self._call(f"opening {name}", work())

    def add(self, frames: FrameFilter, action: FrameAction, *, links: tuple[str, ...] = ()) -> Rule:
        """Add a rule for these links, or for all (also later ones). Raises InjectionError for an impossible rule.

        Of several rules the first one that meets a frame acts on it, and the others do not see it.
        """
        if why := flaw(frames, action):
            raise InjectionError(f"no rule for {frames.describe()}: {why}")
        rule = Rule(frames, action, links=frozenset(links), api_key=self._key(frames.api), on_loop=self._on_loop)

        async def work() -> None:
            self._rules.append(rule)
            self._deal()

        self._call("adding a rule", work())
        return rule

    def remove(self, rule: Rule) -> None:
        """End a rule: held frames are released in order, later copies are not sent any more. May be repeated.

        Returns when the frames were handed over, or after 2 s when a broker or client does not take them.
        """

        async def work() -> None:
            if rule in self._rules:
                self._rules.remove(rule)
                self._deal()
            with suppress(TimeoutError):
                await rule.retire(RETIRE_WITHIN_S)

        self._call("removing a rule", work())

    def resend(
        self, met: MatchedFrame, *, link: str | None = None, timeout_s: float = ANSWER_WITHIN_S
    ) -> ResentRequest:
        """Send a met frame's request again, on a connection of its own, to its broker or that of another link."""
        name = met.link if link is None else link

        async def work() -> ResentRequest:
            if name not in self._links:
                raise InjectionError(f"there is no frame-aware link {name}; there are {', '.join(self._links)}")
            request = self.reader.request(met.request)
            return await send_copy(
                self._links[name].upstream, met.request, answered=request.answered(), within_s=timeout_s
            )

        return self._call("sending a frame again", work(), CALL_WITHIN_S + timeout_s)

    def status(self) -> tuple[ConnectionStatus, ...]:
        """The open connections."""

        async def work() -> tuple[ConnectionStatus, ...]:
            return tuple(each.status() for link in self._links.values() for each in link.connections.values())

        return self._call("looking at connections", work())

    def problems(self) -> tuple[str, ...]:
        """Errors of the relay itself that ended a connection; there should be none."""
        return tuple(problem for link in list(self._links.values()) for problem in link.problems)

    def close(self) -> None:
        """End everything. May be repeated; raises InjectionError if the thread does not end."""
        if not self._closing:
            self._closing = True
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CALL_WITHIN_S)
        if self._thread.is_alive():
            raise InjectionError(f"the frame-aware links did not end within {CALL_WITHIN_S:g} s")

    def _run(self) -> None:
        loop = self._loop
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
            loop.run_until_complete(self._shut())
        finally:
            loop.close()

    async def _shut(self) -> None:
        await asyncio.gather(*(link.shut() for link in self._links.values()))
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        await asyncio.sleep(0)  # transports that were aborted close their sockets in the loop's next step

    def _deal(self) -> None:
        for link in self._links.values():
            link.rules = tuple(rule for rule in self._rules if not rule.links or link.name in rule.links)

    def _key(self, api: str | int | None) -> int | None:
        try:
            return self.reader.definitions.api_key(api) if isinstance(api, str) else api
        except WireError as error:
            raise InjectionError(f"no frames can be selected: {error}") from error

    def _on_loop(self, work: Callable[[], None]) -> None:
        if not self._closing:
            self._loop.call_soon_threadsafe(work)

    def _call(self, what: str, work: Coroutine[Any, Any, Result], within_s: float = CALL_WITHIN_S) -> Result:
        if self._closing:
            work.close()
            raise InjectionError(f"{what}: these frame-aware links are closed")
        began = time.monotonic()
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(within_s)
        except TimeoutError as error:
            future.cancel()
            raise InjectionError(f"{what} took longer than {time.monotonic() - began:.1f} s") from error
