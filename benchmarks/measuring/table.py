"""Ratios as a Markdown table. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.measuring.ratio import Ratio, Unit

_HEAD = ("what", "against", "ratio", "min … max", "pairs", "seen here")


def number(value: float) -> str:
    """Three significant digits, never in powers of ten."""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 0.1 else 3
    return f"{value:.{digits}f}"


def amount(value: float, unit: Unit) -> str:
    """One side of a ratio: seconds with one digit, milliseconds with three, other units as whole numbers."""
    if unit is Unit.SECONDS:
        return f"{value:.1f} s"
    if unit is Unit.MILLISECONDS:
        return f"{number(value)} ms"
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
    """A Markdown table of a head and rows, with aligned columns for terminals."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])
