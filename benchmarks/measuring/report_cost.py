"""Measures a report: seconds to read the evidence, seconds to write every format, bytes of each.

`tox -e bench` compares it with a yardstick.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from reports.formats.write import write_all
from reports.model.report import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportCost:
    """The cost of one report; `sizes_bytes` by the name of the file, the page first."""

    page: Path
    tried: int
    read_s: float
    written_s: float
    sizes_bytes: tuple[tuple[str, int], ...]

    @property
    def seconds(self) -> float:
        """Seconds from the evidence to every format."""
        return self.read_s + self.written_s

    @property
    def page_bytes(self) -> int:
        """The size of the page."""
        return dict(self.sizes_bytes)[self.page.name]

    def lines(self) -> Iterator[str]:
        """The cost, for a terminal."""
        yield (
            f"{self.tried} scenarios, controls and cases: evidence read in {self.read_s:.1f} s, "
            f"{len(self.sizes_bytes)} formats written in {self.written_s:.1f} s"
        )
        yield "  " + ", ".join(f"{name} {size / 1000:.0f} kB" for name, size in self.sizes_bytes)


def measure_report(read: Callable[[], Report], directory: Path) -> ReportCost:
    """Read a report, write every format into `directory`, and measure both. Raises the errors of reading, and OSError."""
    began = time.monotonic()
    report = read()
    read_at = time.monotonic()
    written = write_all(report, directory)
    return ReportCost(
        page=written.page,
        tried=len(report.tried) + len(report.controls),
        read_s=read_at - began,
        written_s=time.monotonic() - read_at,
        sizes_bytes=tuple((path.name, path.stat().st_size) for path in written.files),
    )
