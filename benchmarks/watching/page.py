"""The page `docs/generated/watch.md` and its plot, from what was measured and what `watch` printed. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from benchmarks.cost.plot import Plot, PlotCurve
from benchmarks.measuring.table import aligned, number

MEGABYTE = 1_000_000
#: A verdict of a window, and a change that others made, as `watch` prints them.
_VERDICT = re.compile(r"^(PASS|FAIL|INCONCLUSIVE|ERROR) +watch-", re.MULTILINE)
_CHANGE = re.compile(
    r"^ +((?:broker \d+ (?:left the cluster|is back after .*|changed from .*))|active controller moved .*"
    r"|[a-z.]+\.version changed from .*|leader of .* moved .*)$",
    re.MULTILINE,
)


@dataclass(slots=True)
class Seen:
    """Looks at memory and disk in bytes, by minutes since the start, and the acts of others."""

    minutes: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    disk: list[int] = field(default_factory=list)
    acts: list[tuple[float, str]] = field(default_factory=list)

    def look(self, minute: float, *, memory: int, disk: int) -> None:
        """Note one look."""
        self.minutes.append(minute)
        self.memory.append(memory)
        self.disk.append(disk)

    def each_minute(self, values: Sequence[int]) -> list[float]:
        """The greatest value of each minute in megabytes."""
        last = int(self.minutes[-1])
        of = [[v for m, v in zip(self.minutes, values, strict=True) if int(m) == minute] for minute in range(last + 1)]
        return [max(each) / MEGABYTE for each in of if each]

    def plot(self) -> Plot:
        """Memory and disk over the minutes."""
        memory = self.each_minute(self.memory)
        return Plot(
            settings=tuple(map(str, range(1, len(memory) + 1))),
            axis="minutes since the start",
            unit="MB",
            curves=(
                PlotCurve(name="resident memory of all processes", kind="subject", values=tuple(memory)),
                PlotCurve(
                    name="run directory",
                    kind="against",
                    values=tuple(max(each, 0.1) for each in self.each_minute(self.disk)),
                ),
            ),
        )


def table(seen: Seen, output: str) -> str:
    """Memory and disk by the quarters of the run, and the number of windows by verdict."""
    memory, disk = seen.each_minute(seen.memory), seen.each_minute(seen.disk)
    quarter = max(1, len(memory) // 4)
    rows = [("minutes", "memory, median of the minutes", "memory, greatest", "run directory at the end")]
    for first in range(0, len(memory), quarter):
        part = memory[first : first + quarter]
        rows.append(
            (
                f"{first + 1} … {first + len(part)}",
                f"{number(median(part))} MB",
                f"{number(max(part))} MB",
                f"{number(disk[first + len(part) - 1])} MB",
            )
        )
    verdicts = _VERDICT.findall(output)
    counts = ", ".join(f"{verdicts.count(each)} {each}" for each in dict.fromkeys(verdicts)) or "none"
    return f"{aligned(rows)}\n\nWindows: {counts}."


def page(seen: Seen, output: str, machine: Sequence[str]) -> str:
    """The text of the page."""
    acts = [f"| {minute:.1f} | {text} |" for minute, text in seen.acts]
    changes = dict.fromkeys(each for each in _CHANGE.findall(output) if not each.startswith("leader of"))
    leaders = sum(each.startswith("leader of") for each in _CHANGE.findall(output))
    text = [
        "# Memory and disk of `watch`",
        "",
        "Written by `python -m benchmarks.watching`: `tox -e watch` looks at a cluster that was started by other means, and"
        " gets its address only. Meanwhile its brokers are upgraded one by one, and then `metadata.version` is made final."
        " Memory is that of `watch` and of all its processes: harness, clients, and Spark with its workers.",
        "",
        "![Memory and disk of watch](watch.svg)",
        "",
        table(seen, output),
        "",
        "| minute | others |",
        "|---|---|",
        *acts,
        "",
        f"`watch` printed {leaders} moves of leaders, and:",
        "",
        *(f"* {each}" for each in changes),
        "",
        *(f"* {line}" for line in machine),
        "",
    ]
    return "\n".join(text)
