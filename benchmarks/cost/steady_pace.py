"""A steady pace of sending."""

from __future__ import annotations

import time


class SteadyPace:
    """Turns that are due at equal distances. A turn that comes late delays those that follow, and none is made up for."""

    def __init__(self, per_s: float) -> None:
        self._gap_s = 1 / per_s
        self._due_s = time.monotonic()

    def wait(self) -> None:
        """Wait until the next turn is due."""
        now_s = time.monotonic()
        if self._due_s > now_s:
            time.sleep(self._due_s - now_s)
        self._due_s = max(self._due_s, now_s) + self._gap_s
