"""The ratios as a table, with the circumstances under which they were measured. Pure, but for `look`."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from benchmarks.measuring.ratio import Ratio, Unit
from runner.checkout import commit

_HEAD = ("what", "against", "ratio", "min … max", "pairs", "seen here")
_GIB = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """Where, when and with what; `load` is the load average over a minute before anything was started."""

    release: str
    java: int
    commit: str
    date: str
    processors: int
    memory_gib: float
    system: str
    load: float

    def lines(self) -> tuple[str, ...]:
        """One fact per line."""
        return (
            f"Kafka {self.release}, Java {self.java}, commit {self.commit}, {self.date}",
            f"{self.processors} processors ({self.system}), {self.memory_gib:.0f} GiB of memory, "
            f"load average {self.load:.1f} before the start",
        )


def look(*, release: str, java: int) -> Circumstances:
    """The circumstances as they are now. The commit is `unknown` outside of a checkout."""
    return Circumstances(
        release=release,
        java=java,
        commit=commit(),
        date=f"{datetime.now(tz=UTC):%Y-%m-%d}",
        processors=len(os.sched_getaffinity(0)),
        memory_gib=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / _GIB,
        system=f"{platform.system()} {platform.machine()}",
        load=os.getloadavg()[0],
    )


def number(value: float) -> str:
    """Three significant digits, never in powers of ten."""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 0.1 else 3
    return f"{value:.{digits}f}"


def amount(value: float, unit: Unit) -> str:
    """One side of a ratio: seconds with a digit, anything else whole, with thousands set apart."""
    if unit is Unit.SECONDS:
        return f"{value:.1f} s"
    return f"{value:,.0f} {unit}".replace(",", " ")


def cells(ratio: Ratio) -> tuple[str, ...]:
    """One row of the table."""
    subject, against = ratio.seen
    return (
        ratio.subject,
        ratio.against,
        f"**{number(ratio.median)}**",
        f"{number(ratio.least)} … {number(ratio.most)}",
        str(len(ratio.pairs)),
        f"{amount(subject, ratio.unit)} : {amount(against, ratio.unit)}",
    )


def render(ratios: Sequence[Ratio]) -> str:
    """The ratios as a Markdown table."""
    return aligned([_HEAD, *map(cells, ratios)])


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table of a head and rows, whose columns are aligned, so that a terminal shows it as well."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


def page(ratios: Sequence[Ratio], circumstances: Circumstances) -> str:
    """`docs/generated/benchmarks.md`."""
    return "\n".join(
        [
            "# Benchmarks",
            "",
            "Written by `tox -e bench`. Ratios of things that were measured side by side in one run, by turns; the ratio",
            "is the median over the pairs. What was *seen here* is of that machine in that minute and promises nothing.",
            "",
            *(f"* {line}" for line in circumstances.lines()),
            "",
            render(ratios),
            "",
        ]
    )
