"""Bounds the evidence of `watch`: the records of windows that passed are removed, the oldest first, above a total size.

A window that did not pass keeps all its evidence. The others keep the verdict, the history and the answers of the
cluster at their end. So the report shows them as before, but they cannot be judged again.
"""

from __future__ import annotations

import contextlib
import shutil
from collections import deque
from pathlib import Path

from verification.evidence.run_directory import RunDirectory

#: Two to four hours of windows of a minute, which have 8 to 15 MB each.
KEEP_BYTES = 2 * 1024**3
_REMOVED = (
    "\nIt passed, and its records were removed to make room for later windows: acks/, observations/, log/, uncommitted/ and"
    " committed/.\n"
)


class PassedWindows:
    """The windows that passed and still have their records, up to `keep_bytes` of them and at least the newest one."""

    def __init__(self, keep_bytes: int = KEEP_BYTES) -> None:
        self._keep_bytes = keep_bytes
        self._whole: deque[tuple[RunDirectory, int]] = deque()

    def add(self, window: RunDirectory) -> None:
        """Note a window that passed, and remove the records of the oldest ones. A file that cannot be removed stays."""
        self._whole.append(
            (window, sum(each.stat().st_size for place in _records(window) for each in place.rglob("*")))
        )
        while len(self._whole) > 1 and sum(size for _, size in self._whole) > self._keep_bytes:
            _remove(self._whole.popleft()[0])


def _remove(window: RunDirectory) -> None:
    with contextlib.suppress(OSError):
        for place in _records(window):
            shutil.rmtree(place)
        with window.readme.open("a", encoding="utf-8") as text:
            text.write(_REMOVED)


def _records(window: RunDirectory) -> list[Path]:
    places = (window.acks, window.observations, window.log, window.uncommitted, window.committed)
    return [place for place in places if place.is_dir()]
