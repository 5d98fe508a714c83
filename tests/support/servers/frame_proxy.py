"""Starts the frame proxy as a user does, reads its log, and ends it with SIGTERM."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from tests.support.paths import ROOT

#: Python and the definitions take half a second; the machine may be busy.
PATIENT_S = 30.0

Line = dict[str, Any]


class Proxy:
    """A running proxy. After `frame_proxy` has ended it, `code` and `errors` are known."""

    def __init__(self, arguments: list[str], **environment: str) -> None:
        command = [sys.executable, "-B", "-m", "chaos.frames", *arguments]
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment or None
        )
        self.lines: list[Line] = []
        self.code, self.errors = -1, ""
        self._coming: queue.Queue[Line | None] = queue.Queue()
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def line(self, event: str, **wanted: Any) -> Line:
        """The first line with this event and these values, of all that have come or come within 30 s."""
        for line in self.lines:
            if _fits(line, event, wanted):
                return line
        until = time.monotonic() + PATIENT_S
        with suppress(queue.Empty):
            while (line_or_end := self._coming.get(timeout=max(0.01, until - time.monotonic()))) is not None:
                self.lines.append(line_or_end)
                if _fits(line_or_end, event, wanted):
                    return line_or_end
        seen = "\n".join(map(str, self.lines))
        raise AssertionError(f"no line {event} {wanted}:\n{seen}")

    @property
    def bootstrap(self) -> str:
        """The address of the first listener, once the proxy is ready."""
        self.line("ready")
        return str(self.line("listening")["listener"])

    def end(self, number: int = signal.SIGTERM) -> int:
        """Signal it, and wait for its end; returns the exit code."""
        self.process.send_signal(number)
        try:
            self.code = self.process.wait(PATIENT_S)
        finally:
            self.process.kill()
            assert self.process.stderr is not None
            self.errors = self.process.stderr.read()
            self.process.stderr.close()
            self._reading.join(PATIENT_S)
            while (line := self._coming.get_nowait()) is not None:
                self.lines.append(line)
        return self.code

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as out:
            for text in out:
                self._coming.put(json.loads(text))
        self._coming.put(None)


def _fits(line: Line, event: str, wanted: dict[str, Any]) -> bool:
    return line["event"] == event and all(line.get(name) == value for name, value in wanted.items())


@contextmanager
def frame_proxy(*arguments: str) -> Iterator[Proxy]:
    """A proxy for one test."""
    proxy = Proxy(list(arguments))
    try:
        yield proxy
    finally:
        if proxy.code == -1:
            proxy.end()
