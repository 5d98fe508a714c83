"""The measured figures as values, and as lines of `docs/generated/cost.jsonl`. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

import msgspec

from benchmarks.measuring.ratio import Ratio, Unit
from reports.loading.availability import latency_of
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


def row_of_times(name: str, at: float, turns: Sequence[Mapping[str, Sequence[float]]], *, subject: str) -> CostRow:
    """A row of milliseconds: the ratio of the medians of each turn, of the first kind to the second one, by their names."""
    with_it, without = turns[0]
    return CostRow(
        name=name,
        at=at,
        ratio=Ratio(
            subject=f"{subject}, {name}",
            against=without,
            unit=Unit.MILLISECONDS,
            pairs=tuple((median(each[with_it]), median(each[without])) for each in turns),
        ),
        latencies={kind: latency_of([ms for each in turns for ms in each[kind]]) for kind in (with_it, without)},
    )


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


def next_to(ratio: Ratio) -> str:
    """The throughput of `against` next to `subject` in percent, with its spread, such as `lower by 12 % (8 … 15 %)`."""
    least, middle, most = ((1 - 1 / each) * 100 for each in (ratio.least, ratio.median, ratio.most))
    if middle < 0:
        return f"higher by {-middle:.0f} % ({-most:.0f} … {-least:.0f} %)"
    return f"lower by {middle:.0f} % ({least:.0f} … {most:.0f} %)"
