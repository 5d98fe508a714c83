"""Prints the progress of a run.

On a terminal live lines are rewritten in place, one for the run and one for each running scenario. Elsewhere a heartbeat
every 30 s keeps a CI log alive and shows that the run still moves. Both show scenario, phase, outcomes of operations,
elapsed time and time left.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TextIO

LOG = logging.getLogger(__name__)
#: Redrawn twice a second: fast enough to look alive, slow enough to cost nothing.
LIVE_EVERY_S = 0.5
#: CI systems end jobs that are silent for minutes; half a minute is far below any such limit.
HEARTBEAT_EVERY_S = 30.0


@dataclass
class Console:
    """Writes to the terminal behind pytest's capturing. Thread-safe."""

    out: TextIO
    live: bool
    width: int = 120
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _shown: dict[str, Callable[[], str]] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _drawn: int = 0

    def say(self, text: str) -> None:
        """Print a line above the live ones; it is also in `run.log`."""
        LOG.info("%s", text)
        self._print(text)

    def _print(self, text: str) -> None:
        with self._lock:
            self._erase()
            self.out.write(text + "\n")
            self.out.flush()

    def detail(self, text: str, *, indent: int = 4) -> None:
        """Print a line of detail, unless a live line shows the same."""
        LOG.info("%s", text)
        if not self.live:
            self._print(" " * indent + text)

    def follow(self, key: str, status: Callable[[], str]) -> None:
        """Show `status()` in a line of its own until `unfollow`."""
        with self._lock:
            self._shown[key] = status
            if self._thread is None:
                self._stop = threading.Event()
                self._thread = threading.Thread(target=self._refresh, args=(self._stop,), name="console", daemon=True)
                self._thread.start()

    def unfollow(self, key: str) -> None:
        """Stop showing a status; after the last one the live lines are gone."""
        with self._lock:
            self._shown.pop(key, None)
            thread, last = self._thread, not self._shown
            if last:
                self._stop.set()
                self._thread = None
                self._erase()
                self.out.flush()
        if last and thread is not None:
            thread.join(timeout=5)

    def _refresh(self, stop: threading.Event) -> None:
        next_beat = time.monotonic() + HEARTBEAT_EVERY_S
        while not stop.wait(LIVE_EVERY_S):
            with self._lock:
                shown = list(self._shown.values())
            if self.live:
                lines = [fitted(status(), self.width) for status in shown]
                with self._lock:
                    if not stop.is_set():
                        self._erase()
                        self.out.write("\n".join(lines))
                        self.out.flush()
                        self._drawn = len(lines)
            elif time.monotonic() >= next_beat:
                next_beat += HEARTBEAT_EVERY_S
                for status in shown:
                    self._print(f"    … {status()}")

    def _erase(self) -> None:
        if self._drawn:
            self.out.write("\r" + "\x1b[2K\x1b[1A" * (self._drawn - 1) + "\x1b[2K")
            self._drawn = 0


def fitted(text: str, width: int) -> str:
    """The text in one line of a terminal, whose last column stays free: a cursor there would wrap."""
    line = " ".join(text.split())
    return line if len(line) < width else f"{line[: width - 2]}…"
