"""A bound that the figures of a benchmark must meet, and whether they do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.measuring.table import aligned, number


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The bound in words, and the measured value."""

    text: str
    seen: float
    holds: bool

    def __str__(self) -> str:
        return f"{'holds' if self.holds else 'does not hold'}: {self.text}; seen {self.seen:.2f}"


def promised(bounds: Sequence[Bound]) -> str:
    """The bounds as a Markdown table; empty if there are none."""
    rows = [(each.text, number(each.seen), "yes" if each.holds else "**no**") for each in bounds]
    return aligned([("bound", "seen", "holds"), *rows]) if rows else ""
