"""The page of the measured ratios, `docs/generated/benchmarks.md`. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.measuring.machine import MachineDescription
from benchmarks.measuring.ratio import Ratio
from benchmarks.measuring.table import render


def page(ratios: Sequence[Ratio], machine: MachineDescription) -> str:
    """The text of the page."""
    return "\n".join(
        [
            "# Benchmarks",
            "",
            "Written by `tox -e bench`. Each ratio compares two things that one run measured by turns; the ratio is the",
            "median over the pairs. The figures *seen here* belong to that machine in that minute and promise nothing.",
            "",
            *(f"* {line}" for line in machine.lines()),
            "",
            render(ratios),
            "",
        ]
    )
