"""The machine on which figures are measured, described for the terminal and for the pages."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path

from runner.checkout import commit

_GIB = 1 << 30


def describe(*, software: str, java: int) -> tuple[str, ...]:
    """Two lines: the software that is measured, and this machine with its load average over the last minute.

    `software` names versions. The commit is `unknown` outside a checkout.
    """
    system, memory = os.uname(), os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return (
        f"{software}, Java {java}, commit {commit()}, {datetime.now(tz=UTC):%Y-%m-%d}",
        f"{len(os.sched_getaffinity(0))} processors ({_processor_model()}, {platform.system()} {platform.machine()}), "
        f"{memory / _GIB:.0f} GiB of memory, {system.sysname} {system.release}, "
        f"load average {os.getloadavg()[0]:.1f} before the start",
    )


def _processor_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else "model unknown"
