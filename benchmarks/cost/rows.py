"""The measured figures as values, and as lines of `docs/generated/cost.jsonl`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import msgspec

from benchmarks.measuring.ratio import Ratio
from reports.model.timeline import Latency


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRow:
    """One setting: its name, its place on the axis of a plot, and what was measured with it.

    `at` is a number of records, partitions or transactions, or a time in milliseconds. `ratio` was measured by turns;
    `latencies` are over all its turns, by name; `counts` are medians over them, by name.
    """

    name: str
    at: float
    ratio: Ratio
    latencies: Mapping[str, Latency] = field(default_factory=dict)
    counts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartFigures:
    """All rows of one part, and the lines that describe the machine on which they were measured together."""

    part: str
    machine: tuple[str, ...]
    rows: tuple[CostRow, ...]

    def line(self) -> dict[str, Any]:
        """As an object of JSON."""
        return asdict(self)

    @classmethod
    def of_line(cls, line: Mapping[str, Any]) -> PartFigures:
        """From an object of JSON. Raises msgspec.ValidationError."""
        return msgspec.convert(line, cls)


def lowered_by(ratio: Ratio) -> str:
    """The throughput that `against` loses to `subject` in percent, with its spread, such as `12 % (8 … 15 %)`."""
    least, middle, most = ((1 - 1 / each) * 100 for each in (ratio.least, ratio.median, ratio.most))
    return f"{middle:.0f} % ({least:.0f} … {most:.0f} %)"
