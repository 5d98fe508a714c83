"""The matrix bug × release: its cells on disk, its table in docs/generated/track-record.md, and its page."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from msgspec import convert

from fixtures.errors import OnceproofError
from reports.formats import track_record_page
from reports.formats.track_record_page import Mark, Showing, TrackCell, TrackRecord, TrackRow
from reports.model.vocabulary import note_on
from runner.config import ROOT
from runner.regressions.reproduction import Reproduction, Result
from verification.evidence.atomic_write import atomic_write
from verification.vocabulary.releases import parse

CELLS = ROOT / "docs" / "generated" / "track-record.json"
TABLE = ROOT / "docs" / "generated" / "track-record.md"
PAGE = ROOT / "docs" / "generated" / "track-record.html"
BEGIN, END = "<!-- matrix: begin -->", "<!-- matrix: end -->"
FORMAT = 1
#: What stands for, or behind, a commit that does not say which files were performed.
_MARKS = {
    Result.VIOLATED: Mark.VIOLATED,
    Result.HELD: Mark.HELD,
    Result.INCONCLUSIVE: Mark.INCONCLUSIVE,
    Result.ERROR: Mark.ERROR,
}
_SIGNS = {Result.VIOLATED: "V", Result.HELD: "·", Result.INCONCLUSIVE: "?", Result.ERROR: "E"}


class UnfitRecordError(OnceproofError):
    """A file of the track record is not what this version writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What came of one row on one release. `evidence` is its script, by its place in the checkout."""

    row: str
    release: str
    seen: Result
    seconds: float
    note: str
    evidence: str
    commit: str

    @property
    def decided(self) -> bool:
        """Whether it says anything about the release."""
        return self.seen in (Result.VIOLATED, Result.HELD)


def read(path: Path = CELLS) -> list[Cell]:
    """Every cell; none when nothing was ever performed. Raises UnfitRecordError."""
    if not path.is_file():
        return []
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        if body["format"] != FORMAT:
            raise UnfitRecordError(f"{path} is of format {body['format']}, and this version writes {FORMAT}.")
        return convert(body["cells"], list[Cell])
    except (ValueError, KeyError, TypeError) as error:
        raise UnfitRecordError(
            f"{path} is no track record ({error}).", hint="Remove it; it is written anew."
        ) from error


def write(
    cells: Sequence[Cell], rows: Sequence[Reproduction], path: Path = CELLS, table: Path = TABLE, page: Path = PAGE
) -> None:
    """Write the cells, the table between the markers of its file, and the page. Raises UnfitRecordError without them."""
    ordered = sorted(cells, key=lambda cell: (cell.row, parse(cell.release)))
    body = {"format": FORMAT, "cells": [asdict(cell) for cell in ordered]}
    text = table.read_text(encoding="utf-8")
    before, found, rest = text.partition(BEGIN)
    _, closed, after = rest.partition(END)
    if not found or not closed:
        raise UnfitRecordError(f"{table} has lost the lines {BEGIN} and {END}, between which the matrix belongs.")
    atomic_write(path, json.dumps(body, indent=1, ensure_ascii=False) + "\n")
    atomic_write(page, track_record_page.render(told(ordered, rows)))
    atomic_write(table, f"{before}{BEGIN}\n{render(ordered, rows)}{END}{after}")


def render(cells: Sequence[Cell], rows: Sequence[Reproduction]) -> str:
    """The table: one line per row, one column per release, and how long each took."""
    releases = sorted({cell.release for cell in cells}, key=parse)
    found = {(cell.row, cell.release): cell for cell in cells}
    lines = [
        "",
        f"| row | {' | '.join(releases)} | s |",
        f"|---|{'---|' * len(releases)}---|",
    ]
    for row in rows:
        here = [found.get((row.name, release)) for release in releases]
        seconds = [cell.seconds for cell in here if cell is not None]
        if seconds:
            signs = " | ".join(" " if cell is None else _sign(row, cell) for cell in here)
            lines.append(f"| {row.name} | {signs} | {statistics.median(seconds):.1f} |")
    total = {release: sum(cell.seconds for cell in cells if cell.release == release) for release in releases}
    lines.append(f"| s | {' | '.join(f'{total[release]:.0f}' for release in releases)} | {sum(total.values()):.0f} |")
    lines += ["", *_summary(cells, rows), ""]
    return "\n".join(lines) + "\n"


def told(cells: Sequence[Cell], rows: Sequence[Reproduction]) -> TrackRecord:
    """The matrix as the page tells it; rows of which nothing was performed are left out."""
    releases = tuple(sorted({cell.release for cell in cells}, key=parse))
    by_row: dict[str, list[Cell]] = {}
    for cell in sorted(cells, key=lambda each: parse(each.release)):
        by_row.setdefault(cell.row, []).append(cell)
    return TrackRecord(
        releases=releases,
        rows=tuple(_told(row, by_row[row.name], releases) for row in rows if row.name in by_row),
        commits=tuple(sorted({cell.commit for cell in cells})),
    )


def _told(row: Reproduction, cells: Sequence[Cell], releases: Sequence[str]) -> TrackRow:
    found = {cell.release: _told_cell(row, cell) for cell in cells}
    alike: dict[tuple[Mark, str], list[str]] = {}
    for cell in cells:
        alike.setdefault((_MARKS[cell.seen], cell.note), []).append(cell.release)
    return TrackRow(
        name=row.name,
        claim=row.claim,
        about=note_on(row.bug),
        race=row.race,
        cells=tuple(found.get(release) for release in releases),
        showings=tuple(
            Showing(mark=mark, releases=tuple(seen_on), note=note) for (mark, note), seen_on in alike.items()
        ),
        median_s=statistics.median(cell.seconds for cell in cells),
        replay=f"tox -e track-record -- --bugs {row.name} --rerun",
    )


def _told_cell(row: Reproduction, cell: Cell) -> TrackCell:
    return TrackCell(
        mark=_MARKS[cell.seen],
        score=cell.note if row.race and cell.decided else "",
        mismatch=row.mismatch(cell.release, cell.seen),
    )


def _sign(row: Reproduction, cell: Cell) -> str:
    sign = _SIGNS[cell.seen]
    if row.race and cell.decided:
        return f"{sign} {cell.note}"
    return f"**{sign}!**" if row.mismatch(cell.release, cell.seen) else sign


def _summary(cells: Sequence[Cell], rows: Sequence[Reproduction]) -> list[str]:
    known = {row.name: row for row in rows}
    told = [cell for cell in cells if cell.row in known]
    mismatches = [known[cell.row].mismatch(cell.release, cell.seen) for cell in told]
    undecided = [f"{cell.row} on {cell.release}: {cell.note}" for cell in told if not cell.decided]
    lines = [
        f"{len({cell.row for cell in told})} rows, {len(told)} cells, {sum(map(bool, mismatches))} surprises, "
        f"{len(undecided)} undecided."
    ]
    return lines + [f"* {each}." for each in [*filter(None, mismatches), *undecided]]
