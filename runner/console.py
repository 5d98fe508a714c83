"""Prints the progress of a run.

On a terminal one live line per scenario is rewritten in place. Elsewhere a heartbeat every 30 s keeps a CI log alive and
shows that the run still moves. Both show scenario, phase, outcomes of operations and elapsed time.
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
    _status: Callable[[], str] | None = None
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _drawn: bool = False

    def say(self, text: str) -> None:
        """Print a line above the live one; it is also in `run.log`."""
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

    def follow(self, status: Callable[[], str]) -> None:
        """Show `status()` until `unfollow`."""
        self._status = status
        self._stop.clear()
        self._thread = threading.Thread(target=self._refresh, name="console", daemon=True)
        self._thread.start()

    def unfollow(self) -> None:
        """Stop showing a status and clear the live line."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=5)
        self._thread = None
        with self._lock:
            self._erase()
            self.out.flush()

    def _refresh(self) -> None:
        next_beat = time.monotonic() + HEARTBEAT_EVERY_S
        while not self._stop.wait(LIVE_EVERY_S):
            if self._status is None:
                continue
            if self.live:
                text = fitted(self._status(), self.width)
                with self._lock:
                    self._erase()
                    self.out.write(text)
                    self.out.flush()
                    self._drawn = True
            elif time.monotonic() >= next_beat:
                next_beat += HEARTBEAT_EVERY_S
                self._print(f"    … {self._status()}")

    def _erase(self) -> None:
        if self._drawn:
            self.out.write("\r\x1b[2K")
            self._drawn = False


def fitted(text: str, width: int) -> str:
    """The text in one line of a terminal, whose last column stays free: a cursor there would wrap."""
    line = " ".join(text.split())
    return line if len(line) < width else f"{line[: width - 2]}…"
