"""A rule: a selector, an action, and a record of the frames that it met.

A rule acts on the links' own thread; all threads may read it. The frames that it met are frozen values, replaced as more
becomes known. Beyond 1000 frames or 64 MiB the oldest are dropped, but they stay counted. Times are CLOCK_MONOTONIC
nanoseconds.

Frames that could not be decided are counted in `missed`: those above the size limit, those of a version without
definition, those that were already passing when the rule was added. A proof about "every" frame must check it first.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from chaos.errors import InjectionError
from chaos.frames.actions import FrameAction, Respond
from chaos.frames.request_fields import RequestFrame
from chaos.frames.responses import answer_frame
from chaos.frames.selector import Direction, FrameFilter
from wire.errors import WireError

KEPT_MAX, KEPT_BYTES_MAX = 1000, 64 << 20
REASONS_MAX = 32


class Disposition(StrEnum):
    """Where a met frame is, or how it ended. `LOST`: its receiver was gone, or the link was shut, before."""

    KEPT = "kept"
    DELIVERED = "delivered"
    DROPPED = "dropped"
    ANSWERED = "answered"
    CUT = "cut"
    LOST = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResentRequest:
    """A request that was sent once more, on a connection of its own; `answer` is the response without its length.

    `problem` says why there is no answer.
    """

    sent_ns: int | None = None
    answered_ns: int | None = None
    answer: bytes | None = field(default=None, repr=False)
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedFrame:
    """One frame that a rule met. `number` counts the rule's frames from 0.

    `request` is the request with its length, `answer` the broker's response without. A met request gets its answer as
    soon as the broker answered, also when the client had gone.
    """

    number: int
    link: str
    connection: int
    direction: Direction
    api: str
    version: int
    correlation_id: int
    met_ns: int
    request: bytes = field(repr=False)
    disposition: Disposition = Disposition.KEPT
    ended_ns: int | None = None
    answer: bytes | None = field(default=None, repr=False)
    answered_ns: int | None = None
    copies: tuple[ResentRequest, ...] = ()

    @property
    def size(self) -> int:
        """Bytes that are kept of it."""
        return len(self.request) + len(self.answer or b"")


class Rule:
    """Made by `FrameLinks.add`. The methods above the line are for every thread, those below for the links' own."""

    def __init__(
        self,
        frames: FrameFilter,
        action: FrameAction,
        *,
        links: frozenset[str],
        api_key: int | None,
        on_loop: Callable[[Callable[[], None]], None],
        watch: Callable[[MatchedFrame], None] | None = None,
    ) -> None:
        self.frames, self.action, self.links, self.active = frames, action, links, True
        self.gone = asyncio.Event()
        """Set on the loop when the rule was removed."""
        self._api_key, self._on_loop, self._watch = api_key, on_loop, watch
        self._changed = threading.Condition()
        self._met: dict[int, MatchedFrame] = {}
        self._count = self._seen = self._bytes = self._first_ns = 0
        self._missed: Counter[str] = Counter()
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._busy, self._idle = 0, asyncio.Event()
        self._idle.set()

    @property
    def met(self) -> tuple[MatchedFrame, ...]:
        """The frames that were met and are still stored, in order."""
        with self._changed:
            return tuple(self._met.values())

    @property
    def count(self) -> int:
        """How many frames were met, including those no longer stored."""
        return self._count

    @property
    def missed(self) -> dict[str, int]:
        """How many frames may have matched and passed, by reason."""
        with self._changed:
            return dict(self._missed)

    def describe(self) -> str:
        """The frames met so far, for a proof."""
        met = self.met
        if not met:
            return f"{self.action.verb} no {self.frames.describe()}"
        ways = ", ".join(sorted({each.link for each in met}))
        kinds = ", ".join(sorted({f"{each.api} v{each.version}" for each in met}))
        since_s = (time.monotonic_ns() - self._first_ns) / 1e9
        plural = "" if self._count == 1 else "s"
        said = f"{self.action.verb} {self._count} {kinds} {self.frames.direction}{plural} on {ways}"
        return f"{said}, the first {since_s:.1f} s ago (at {self._first_ns} ns)"

    def until(
        self, what: str, holds: Callable[[tuple[MatchedFrame, ...]], bool], *, timeout_s: float
    ) -> tuple[MatchedFrame, ...]:
        """Wait until `holds` is true of the met frames, and return them; raises InjectionError with the last frames."""
        with self._changed:
            if self._changed.wait_for(lambda: holds(tuple(self._met.values())), timeout_s):
                return tuple(self._met.values())
            seen = ", ".join(f"{each.api} {each.disposition}" for each in self._met.values()) or "no frame"
            raise InjectionError(f"{what} did not happen within {timeout_s:g} s; {self.frames.describe()}: {seen}")

    def release(self) -> None:
        """Release the frames that are held now, in order; later ones are held again."""
        self._on_loop(self.let_go)

    # ---- on the links' own thread ----

    def may_want(self, key: int) -> bool:
        """Whether a request with this API key could be selected."""
        return self._api_key is None or self._api_key == key

    def selects(self, request: RequestFrame) -> bool:
        """Whether a request matches (and can be answered, where that is the action); an unreadable one does not."""
        if not self.active or not self.may_want(request.key):
            return False
        try:
            if self.frames.needs_fields and not self.frames.fits(request.fields()):
                return False
            if isinstance(self.action, Respond):
                answer_frame(request, self.action)
        except WireError as error:
            self.miss(f"{request.api} v{request.version}: {error}")
            return False
        return True

    def admit(self) -> bool:
        """Count a frame that matches; whether `skip` and `count` include it."""
        self._seen += 1
        last = None if self.frames.count is None else self.frames.skip + self.frames.count
        return self._seen > self.frames.skip and (last is None or self._seen <= last)

    def miss(self, reason: str) -> None:
        """Count a frame that may have matched and passed."""
        with self._changed:
            if reason in self._missed or len(self._missed) < REASONS_MAX:
                self._missed[reason] += 1

    def meet(self, request: RequestFrame, *, link: str, connection: int, answer: bytes | None = None) -> int:
        """Record a frame; returns its number."""
        now_ns = time.monotonic_ns()
        with self._changed:
            met = MatchedFrame(
                number=self._count,
                link=link,
                connection=connection,
                direction=self.frames.direction,
                api=request.api,
                version=request.version,
                correlation_id=request.correlation_id,
                met_ns=now_ns,
                request=request.frame,
                answer=answer,
                answered_ns=None if answer is None else now_ns,
            )
            self._first_ns = self._first_ns or now_ns
            self._count += 1
            self._keep(met)
        self._busy += 1
        self._idle.clear()
        return met.number

    def note(self, number: int, **known: Any) -> None:
        """Record more about a frame that is still stored."""
        with self._changed:
            if number in self._met:
                self._keep(replace(self._met[number], **known))

    def copied(self, number: int, copy: ResentRequest) -> None:
        """Record how a copy ended."""
        with self._changed:
            if number in self._met:
                self._keep(replace(self._met[number], copies=(*self._met[number].copies, copy)))

    def settle(self, number: int, disposition: Disposition) -> None:
        """Record how the frame ended."""
        self.note(number, disposition=disposition, ended_ns=time.monotonic_ns())
        self._busy -= 1
        if not self._busy:
            self._idle.set()

    async def wait(self, number: int, delay_s: float | None) -> None:
        """Wait until the frame is released, or for `delay_s` seconds."""
        if not self.active:
            return
        going = asyncio.get_running_loop().create_future()
        self._waiting[number] = going
        try:
            await asyncio.wait({going}, timeout=delay_s)
        finally:
            self._waiting.pop(number, None)

    def let_go(self) -> None:
        """Release every held frame, in order."""
        for _, going in sorted(self._waiting.items()):
            if not going.done():
                going.set_result(None)

    async def retire(self, within_s: float) -> None:
        """Meet no more frames, release all, and wait until they have ended."""
        self.active = False
        self.gone.set()
        self.let_go()
        await asyncio.wait_for(self._idle.wait(), within_s)

    def _keep(self, met: MatchedFrame) -> None:
        old = self._met.get(met.number)
        self._met[met.number] = met
        self._bytes += met.size - (old.size if old else 0)
        while len(self._met) > KEPT_MAX or (self._bytes > KEPT_BYTES_MAX and len(self._met) > 1):
            self._bytes -= self._met.pop(next(iter(self._met))).size
        self._changed.notify_all()
        if self._watch is not None:
            self._watch(met)
