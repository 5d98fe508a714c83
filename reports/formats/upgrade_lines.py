"""The stages of upgrades as lines of a terminal: a table of fixed widths, with a row per stage."""

from __future__ import annotations

from collections.abc import Iterator

from reports.formats.stage_cells import SHORT_COLUMNS, short_rows
from reports.model.report import Report
from reports.model.wording import one_line

#: Longer names of stages would wrap the row.
STAGE_MAX = 32


def upgrade_lines(report: Report) -> Iterator[str]:
    """The table of each upgrade, in the order of the scenarios."""
    for scenario in report.worst_first:
        upgrade = scenario.upgrade
        if upgrade is None or not upgrade.stages:
            continue
        compared = f", in brackets: {upgrade.baseline_word}" if upgrade.baseline else ""
        yield f"stages of {one_line(scenario.key)}{compared}"
        rows: list[tuple[str, ...]] = [
            SHORT_COLUMNS,
            *((one_line(name, STAGE_MAX), *rest) for name, *rest in short_rows(upgrade)),
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            yield "  " + "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        yield ""
