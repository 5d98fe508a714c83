"""Frame-aware links: listeners on loopback, each of which relays connections to one broker and applies the rules.

One background thread runs them all, so that a rule counts frames across links, in the order of their arrival. Every call
from outside runs on that thread and has a deadline. Closing ends listeners, connections and the thread within seconds,
whatever peers do. Frames that are held then are lost, so release them first where that matters (`remove` does).
"""

from __future__ import annotations

import asyncio
import ssl
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, TypeVar
from uuid import UUID

from chaos.errors import InjectionError
from chaos.frames.actions import FrameAction, flaw
from chaos.frames.link import ANY_PORT, FrameLink
from chaos.frames.link_context import ConnectionStatus, Tap
from chaos.frames.request_fields import FrameReader
from chaos.frames.rule import MatchedFrame, Rule
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


class FrameLinks:
    """Frame-aware links on a thread of their own, which runs from construction to `close`.

    `topic_ids` says which topics the ids in newer requests (Produce v13+, Fetch v13+) stand for; without it such
    requests have no partitions to be selected by. Frames above `frame_bytes_max` pass and are never selected. `tap` sees
    all frames; `tls` is for the connections to brokers.
    """

    def __init__(
        self,
        definitions: Definitions,
        *,
        topic_ids: Mapping[UUID, str] | None = None,
        frame_bytes_max: int = FRAME_BYTES_MAX,
        tap: Tap | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.reader, self._tap, self._tls = FrameReader(definitions, topic_ids), tap, tls
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
        return self._call(f"opening {name}", self.opened(name, upstream))

    async def opened(self, name: str, upstream: Endpoint, at: Endpoint = ANY_PORT) -> Endpoint:
        """The same on the links' own thread, at this address: port 0 is any free one."""
        if name in self._links:
            raise InjectionError(f"there is a frame-aware link {name} already")
        link = FrameLink(name, upstream, self.reader, self._frame_bytes_max, self._tap, self._tls)
        try:
            at = await link.listen(at)
        except OSError as error:
            raise InjectionError(f"cannot listen for the frame-aware link {name}: {error}") from error
        self._links[name] = link
        self._deal()
        return at

    def call(self, what: str, work: Coroutine[Any, Any, Result]) -> Result:
        """Run this on the links' own thread; raises InjectionError after 10 s."""
        return self._call(what, work)

    def add(
        self,
        frames: FrameFilter,
        action: FrameAction,
        *,
        links: tuple[str, ...] = (),
        watch: Callable[[MatchedFrame], None] | None = None,
    ) -> Rule:
        """Add a rule for these links, or for all (also later ones). Raises InjectionError for an impossible rule.

        Several rules may meet a frame, in the order in which they were added: a frame that one rule has let pass goes to
        the next one. A frame that was dropped, answered or cut off has ended, and later rules do not see it. `watch` is
        called on the links' thread with each change of a met frame.
        """
        if why := flaw(frames, action):
            raise InjectionError(f"no rule for {frames.describe()}: {why}")
        rule = Rule(
            frames, action, links=frozenset(links), api_key=self._key(frames.api), on_loop=self._on_loop, watch=watch
        )

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

    def _call(self, what: str, work: Coroutine[Any, Any, Result]) -> Result:
        if self._closing:
            work.close()
            raise InjectionError(f"{what}: these frame-aware links are closed")
        began = time.monotonic()
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(CALL_WITHIN_S)
        except TimeoutError as error:
            future.cancel()
            raise InjectionError(f"{what} took longer than {time.monotonic() - began:.1f} s") from error
