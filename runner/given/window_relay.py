"""Lets the windows of `watch` follow each other without a gap, although each has clients and topics of its own.

Two lanes take windows by turns. While one window is captured and judged, the other one is watched, and clients of the next
window start shortly before it ends. A window ends when its time is over and the clients of the next one work. So at every
moment some clients write and read. If the next window is late, this one goes on for at most two minutes: topics cannot be
created while a broker is away, and an upgraded broker may take a minute to be back.

The user may end the relay early (Ctrl-C): the window that is watched becomes the last one, and no other one begins.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

#: Clients start and end their first operations within 5 s, and on a busy machine in twice that.
START_AHEAD_S = 15.0
LATE_S = 120.0
#: A window is longer than the time in which clients start, also one that the user ends early.
WINDOW_MIN_S = 10.0
#: Time passes without a change, and an interruption reaches a thread only between two waits.
_LOOK_EVERY_S = 0.5


class WindowNotBegunError(KeyboardInterrupt):
    """The user ended the relay before this window began. It ends like a scenario that is interrupted."""


class WindowRelay:
    """The order of `windows` windows of `window_s` seconds each, by the names of their runs; used by several threads."""

    def __init__(self, windows: int, window_s: float, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._window_s, self._clock_s = window_s, clock_s
        self._changed = threading.Condition()
        self._left = windows
        self._watched = self._next = ""
        self._next_works = False
        self._due_s: float | None = None
        self._ended_early = False

    def end_early(self) -> bool:
        """Make the window that is watched the last one; False before the first one."""
        with self._changed:
            self._ended_early = self._due_s is not None
            self._changed.notify_all()
            return self._ended_early

    def await_start(self, run: str) -> None:
        """Return shortly before the window that is watched now is over; at once if none is, and none is next.

        Raises WindowNotBegunError.
        """
        with self._changed:
            self._wait_to_begin(lambda: not self._next and (not self._watched or self._rest_s <= START_AHEAD_S))
            self._next = run
            self._left -= 1

    def await_turn(self, run: str) -> None:
        """Say that the clients work, and return when the window before is over: this one begins.

        Raises WindowNotBegunError.
        """
        with self._changed:
            self._next_works = True
            self._changed.notify_all()
            self._wait_to_begin(lambda: not self._watched)
            self._watched, self._next, self._next_works = run, "", False
            self._due_s = self._clock_s() + self._window_s

    def hold(self, seconds: float) -> None:
        """Return after `seconds`, or earlier when the relay ends early and this window is long enough."""
        end_s = self._clock_s() + seconds
        with self._changed:
            while (left_s := end_s - self._clock_s()) > 0:
                self._changed.wait(min(left_s, _LOOK_EVERY_S))
                if self._is_last:
                    return

    def pass_on(self, run: str) -> None:
        """Return when the clients of the next window work, or it is too late; then this window is over."""
        with self._changed:
            self._wait(lambda: self._next_works or not (self._left or self._next) or self._late or self._is_last)
        self.leave(run)

    def leave(self, run: str) -> None:
        """This window is over, in whatever state. May be called again."""
        with self._changed:
            if self._watched == run:
                self._watched = ""
            if self._next == run:
                self._next, self._next_works = "", False
            self._changed.notify_all()

    @property
    def _rest_s(self) -> float:
        return 0.0 if self._due_s is None else self._due_s - self._clock_s()

    @property
    def _late(self) -> bool:
        return self._rest_s <= -LATE_S

    @property
    def _is_last(self) -> bool:
        """Whether the relay ends early, and the window that is watched has lasted long enough for a verdict."""
        return self._ended_early and self._rest_s <= self._window_s - WINDOW_MIN_S

    def _wait_to_begin(self, condition: Callable[[], bool]) -> None:
        self._wait(lambda: self._ended_early or condition())
        if self._ended_early:
            raise WindowNotBegunError

    def _wait(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._changed.wait(_LOOK_EVERY_S)
