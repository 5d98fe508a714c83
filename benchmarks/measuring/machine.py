"""The machine on which figures are measured, described for the terminal and for the pages."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from runner.checkout import commit

_GIB = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineDescription:
    """Machine, date and software of a run; `load` is the load average over a minute before anything was started."""

    software: str
    java: int
    commit: str
    date: str
    processors: int
    model: str
    system: str
    kernel: str
    memory_gib: float
    load: float

    def lines(self) -> tuple[str, ...]:
        """The software; the machine."""
        return (
            f"{self.software}, Java {self.java}, commit {self.commit}, {self.date}",
            f"{self.processors} processors ({self.model}, {self.system}), {self.memory_gib:.0f} GiB of memory, "
            f"{self.kernel}, load average {self.load:.1f} before the start",
        )


def describe(*, software: str, java: int) -> MachineDescription:
    """This machine, now. `software` names the versions that were measured; the commit is `unknown` outside a checkout."""
    return MachineDescription(
        software=software,
        java=java,
        commit=commit(),
        date=f"{datetime.now(tz=UTC):%Y-%m-%d}",
        processors=len(os.sched_getaffinity(0)),
        model=_processor_model(),
        system=f"{platform.system()} {platform.machine()}",
        kernel=f"{os.uname().sysname} {os.uname().release}",
        memory_gib=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / _GIB,
        load=os.getloadavg()[0],
    )


def _processor_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else "model unknown"
