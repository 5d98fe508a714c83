"""Measures a command and all processes that it starts: seconds, processor seconds, and the peak of memory.

The command leads a session of its own, and the processes that it starts stay in it: the driver, its JVM, its Python
workers. Ten times a second, the resident pages of all of them are added up from /proc. Linux only. Limit: pages that
two processes share count twice, and a peak between two samples is missed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measuring.errors import ContenderError

_LOOK_S = 0.1
_TAIL_LINES = 12
_PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
#: How long the processes of a session may take to end after a request.
_ENDING_S = 20.0
# Fields of /proc/<pid>/stat after the name, counted from the state (proc(5) counts from 1, the state being its third).
PARENT, _SESSION, USER, SYSTEM, CHILDREN_SYSTEM, STARTED, _RESIDENT = 1, 3, 11, 12, 14, 19, 21


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """Seconds from start to end, processor seconds of all processes, and their peak of resident bytes at one time.

    `driver_bytes` is the peak of the command and its direct children alone. For a Spark contender that is the driver,
    Python and JVM, without the workers.
    """

    seconds: float
    processor_s: float
    peak_bytes: int
    driver_bytes: int


def processor_s() -> float:
    """Processor seconds of this process and of all its descendants in its session, ended children included.

    Other processes of the session do not count, such as those of a shell or of a test runner.
    """
    own = os.getsid(0)
    session = {pid: fields for pid, fields in processes() if int(fields[_SESSION]) == own}
    own_ones = with_descendants({os.getpid()}, session)
    ticks = (int(each) for pid in own_ones for each in session[pid][USER : CHILDREN_SYSTEM + 1])
    return sum(ticks) / TICKS_PER_S


def resident_bytes(pid: int) -> int:
    """The resident bytes of a process and of all its descendants, whatever session they lead."""
    living = dict(processes())
    return sum(int(living[each][_RESIDENT]) * _PAGE for each in with_descendants({pid}, living) & living.keys())


def with_descendants(roots: Iterable[int], living: Mapping[int, Sequence[str]]) -> set[int]:
    """These processes, and all that they or their descendants started."""
    found = set(roots)
    # A parent usually has the lower id, but ids wrap around: look until nothing new is found.
    while more := {pid for pid, fields in living.items() if int(fields[PARENT]) in found} - found:
        found |= more
    return found


@dataclass(slots=True)
class _ProcessSession:
    number: int
    peak_bytes: int = 0
    driver_bytes: int = 0
    processor_s: dict[int, float] | None = None

    def look(self) -> None:
        resident = driver = 0
        spent = self.processor_s = self.processor_s or {}
        for pid, fields in processes():
            if int(fields[_SESSION]) == self.number:
                held = int(fields[_RESIDENT]) * _PAGE
                resident += held
                if self.number in (pid, int(fields[PARENT])):
                    driver += held
                spent[pid] = (int(fields[USER]) + int(fields[SYSTEM])) / TICKS_PER_S
        self.peak_bytes = max(self.peak_bytes, resident)
        self.driver_bytes = max(self.driver_bytes, driver)

    def end(self) -> None:
        """End the processes that are left: first by request, then by force."""
        deadline = time.monotonic() + _ENDING_S
        for number in (signal.SIGTERM, signal.SIGKILL):
            while pids := [pid for pid, fields in processes() if int(fields[_SESSION]) == self.number]:
                for pid in pids:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, number)
                if time.monotonic() > deadline:
                    break
                time.sleep(_LOOK_S)


def processes() -> Iterator[tuple[int, list[str]]]:
    """Every living process, with the fields of its stat from the state on."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            # The name is in parentheses and may hold any characters, so the fields begin after the last parenthesis.
            fields = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        # A process that ended and was not waited for holds no memory.
        if fields and fields[0] != "Z":
            yield int(entry.name), fields


def measured(command: Sequence[str], *, cwd: Path, log: Path, codes: Sequence[int] = (0,)) -> Footprint:
    """Run a command to its end, with its output in `log`.

    Raises ContenderError if its exit code is not one of `codes`. In any case none of its processes is left running.
    """
    with log.open("wb") as output:
        began = time.monotonic()
        process = subprocess.Popen(
            command,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        session = _ProcessSession(process.pid)
        try:
            while process.poll() is None:
                session.look()
                time.sleep(_LOOK_S)
            seconds = time.monotonic() - began
        finally:
            session.end()
            process.wait()
    if process.returncode not in codes:
        tail = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-_TAIL_LINES:])
        raise ContenderError(f"{' '.join(command[1:4])} ended with {process.returncode}:\n{tail}")
    spent = session.processor_s or {}
    return Footprint(
        seconds=seconds,
        processor_s=sum(spent.values()),
        peak_bytes=session.peak_bytes,
        driver_bytes=session.driver_bytes,
    )
