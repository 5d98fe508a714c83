"""The bytes that live objects take in a JVM, by HotSpot's attach protocol: as `jcmd PID GC.class_histogram`.

A JRE has no `jcmd`, but each HotSpot JVM answers it. A file `.attach_pid<PID>` in its work directory and SIGQUIT make it
open a socket. The request is `1`, a command and three arguments, each with a zero byte behind it. The command collects
garbage first, so what it counts is live.
"""

from __future__ import annotations

import os
import re
import signal
import socket
from pathlib import Path

from benchmarks.measuring.errors import WorthlessRateError
from fixtures.waiting import await_until

#: A collection of 256 MB takes a second on a busy machine.
ANSWERS_WITHIN_S = 30.0
_HISTOGRAM = b"1\0inspectheap\0-live\0\0\0"
_TOTAL = re.compile(r"^Total\s+\d+\s+(\d+)", re.MULTILINE)


def live_bytes(pid: int) -> int:
    """The bytes of live objects of a JVM of this user. Raises WorthlessRateError, WaitTimeoutError."""
    return total_of(_asked(pid))


def total_of(answer: str) -> int:
    """The last line of a class histogram. Raises WorthlessRateError without one."""
    found = _TOTAL.search(answer)
    if found is None:
        raise WorthlessRateError(f"A JVM answered {answer[:200]!r} instead of a class histogram.")
    return int(found[1])


def _asked(pid: int) -> str:
    # The directory of temporary files that a JVM has by an option does not matter here.
    place = Path(f"/tmp/.java_pid{pid}")  # noqa: S108
    request = Path(f"/proc/{pid}/cwd/.attach_pid{pid}")
    if not place.is_socket():
        request.touch()
        try:
            os.kill(pid, signal.SIGQUIT)
            await_until(place.is_socket, f"JVM {pid} to take commands", timeout_s=ANSWERS_WITHIN_S)
        finally:
            request.unlink(missing_ok=True)
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(ANSWERS_WITHIN_S)
            line.connect(str(place))
            line.sendall(_HISTOGRAM)
            parts = list(iter(lambda: line.recv(65_536), b""))
    finally:
        # A JVM that is killed leaves it behind. The next request makes the JVM open it again.
        place.unlink(missing_ok=True)
    return b"".join(parts).decode("utf-8", errors="replace")
