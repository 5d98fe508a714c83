"""Measures the processor time of a command by part: brokers, Spark, clients, the harness and the rest.

Four times a second, the processor time of the command and of all its descendants is read from /proc, whatever session
they lead. A process counts until it ends. Time that only the end of a process shows (`cutime` of its parent) is that of
short processes and of the last quarter of a second: it is a part of its own. The times of the looks are
CLOCK_MONOTONIC, as in a history, so the processor time of any phase is known. Linux only.

Limit: a process whose parent ended before the first look at it is not found.
"""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from benchmarks.measuring.footprint import (
    CHILDREN_SYSTEM,
    PARENT,
    STARTED,
    SYSTEM,
    TICKS_PER_S,
    USER,
    processes,
    with_descendants,
)

_LOOK_S = 0.25


class Part(StrEnum):
    """What a process of a run is."""

    BROKERS = "brokers"
    SPARK = "Spark's JVM"
    WORKERS = "Spark's workers"
    CLIENTS = "clients"
    HARNESS = "harness"
    LINKS = "Toxiproxy"
    OTHER = "other"
    SHORT = "short processes"


#: A word of the command line for each part; the first that fits. The command itself is the harness.
_WORDS = (
    ("kafka.Kafka", Part.BROKERS),
    ("org.apache.spark", Part.SPARK),
    ("pyspark.daemon", Part.WORKERS),
    ("fixtures.clients", Part.CLIENTS),
    ("py4j.GatewayServer", Part.CLIENTS),
    ("toxiproxy", Part.LINKS),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The processor seconds of each part until `at_s` (CLOCK_MONOTONIC)."""

    at_s: float
    spent: Mapping[Part, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessorTimes:
    """Everything that was seen of one command; `seconds` from its start to its end."""

    seconds: float
    looks: tuple[Look, ...]

    @property
    def spent(self) -> Mapping[Part, float]:
        """The processor seconds of each part."""
        return self.looks[-1].spent if self.looks else {}


@dataclass(slots=True)
class _TreeProcess:
    """A process: its part, its parent, its own ticks and those of its ended children."""

    part: Part
    parent: tuple[int, str]
    own: int = 0
    children: int = 0
    alive: bool = True


@dataclass(slots=True)
class _Tree:
    root: int
    short: int = 0
    seen: dict[tuple[int, str], _TreeProcess] = field(default_factory=dict)

    def look(self) -> Look:
        living = dict(processes())
        keys = {pid: (pid, fields[STARTED]) for pid, fields in living.items()}
        for each in self.seen.values():
            each.alive = False
        found = with_descendants({self.root} | {pid for pid, key in keys.items() if key in self.seen}, living)
        for pid in found & living.keys():
            fields, key = living[pid], keys[pid]
            parent = keys.get(int(fields[PARENT]), (0, ""))
            each = self.seen.setdefault(key, _TreeProcess(part=Part.OTHER, parent=parent))
            # Between fork and exec a process has the command line of its parent, and while it ends it has none.
            each.part = Part.HARNESS if pid == self.root else part_of(pid) or each.part
            each.own = int(fields[USER]) + int(fields[SYSTEM])
            each.children = sum(map(int, fields[SYSTEM + 1 : CHILDREN_SYSTEM + 1]))
            each.alive = True
        return Look(at_s=time.monotonic(), spent=self._spent())

    def _spent(self) -> Mapping[Part, float]:
        spent: Counter[Part] = Counter()
        unseen = {key: each.children for key, each in self.seen.items()}
        for each in self.seen.values():
            spent[each.part] += each.own
            if not each.alive and each.parent in unseen:
                unseen[each.parent] -= each.own + each.children
        # Less for a moment, when a process has ended and was not waited for.
        self.short = max(self.short, sum(max(0, ticks) for ticks in unseen.values()))
        spent[Part.SHORT] = self.short
        return {part: ticks / TICKS_PER_S for part, ticks in spent.items()}


def part_of(pid: int) -> Part | None:
    """The part of a living process, by its command line; None when it has none."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return None
    return None if not command else next((part for word, part in _WORDS if word in command), Part.OTHER)


def processor_times(command: Sequence[str], *, cwd: Path, log: Path) -> tuple[int, ProcessorTimes]:
    """Run a command to its end, with its output in `log`; its exit code and the processor times of its parts."""
    began = time.monotonic()
    looks: list[Look] = []
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        tree = _Tree(process.pid)
        try:
            while process.poll() is None:
                looks.append(tree.look())
                time.sleep(_LOOK_S)
        except KeyboardInterrupt:
            # At a terminal Ctrl-C has reached it as well; it still heals and ends its processes.
            process.terminate()
            process.wait()
            raise
    return process.returncode, ProcessorTimes(seconds=time.monotonic() - began, looks=tuple(looks))
