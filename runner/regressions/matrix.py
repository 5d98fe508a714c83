"""The matrix known bug × release: results in JSON, the table of docs/generated/track-record.md, and the HTML page."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from msgspec import convert

from reports.deciding.advice_boxes import box
from reports.formats import track_record_page
from reports.formats.track_record_page import Mark, Showing, TrackCell, TrackRecord, TrackRow
from reports.model.vocabulary import bugs, note_on
from runner.config import ROOT
from runner.regressions.reproduction import Reproduction, Result
from runner.resumable_matrix import UnfitMatrixError, markdown_table, replace_between_markers
from verification.evidence.atomic_write import atomic_write
from verification.known_bugs.measured import CELLS, FORMAT, measured_rows
from verification.vocabulary.releases import parse

TABLE = ROOT / "docs" / "generated" / "track-record.md"
PAGE = ROOT / "docs" / "generated" / "track-record.html"
BEGIN, END = "<!-- matrix: begin -->", "<!-- matrix: end -->"
_MARKS = {
    Result.VIOLATED: Mark.VIOLATED,
    Result.HELD: Mark.HELD,
    Result.INCONCLUSIVE: Mark.INCONCLUSIVE,
    Result.ERROR: Mark.ERROR,
}
_SIGNS = {Result.VIOLATED: "V", Result.HELD: "·", Result.INCONCLUSIVE: "?", Result.ERROR: "E"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReproductionResult:
    """The result of one reproduction on one release, a cell of the matrix.

    `row` is the reproduction's name, `evidence` the path of its script below the checkout.
    """

    row: str
    release: str
    seen: Result
    seconds: float
    note: str
    evidence: str
    commit: str

    @property
    def key(self) -> tuple[str, str]:
        """Its row and column."""
        return self.row, self.release

    @property
    def decided(self) -> bool:
        """Whether it says that the release has the bug, or that it has not."""
        return self.seen in (Result.VIOLATED, Result.HELD)


def read(path: Path = CELLS) -> list[ReproductionResult]:
    """Every stored result; none without the file. Raises UnfitMatrixError."""
    if not path.is_file():
        return []
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        if body["format"] != FORMAT:
            raise UnfitMatrixError(f"{path} is of format {body['format']}, and this version writes {FORMAT}.")
        return convert(body["cells"], list[ReproductionResult])
    except (ValueError, KeyError, TypeError) as error:
        raise UnfitMatrixError(
            f"{path} is no track record ({error}).", hint="Remove it; the next run writes a new one."
        ) from error


def write(
    results: Sequence[ReproductionResult],
    reproductions: Sequence[Reproduction],
    path: Path = CELLS,
    table: Path = TABLE,
    page: Path = PAGE,
) -> None:
    """Write the results, the table between the markers of its page, and the HTML page.

    Raises UnfitMatrixError, before anything is written, when the markers are missing.
    """
    ordered = sorted(results, key=lambda each: (each.row, parse(each.release)))
    body = {"format": FORMAT, "cells": [asdict(each) for each in ordered]}
    rendered = replace_between_markers(
        table.read_text(encoding="utf-8"), BEGIN, END, new=render(ordered, reproductions), name=str(table)
    )
    atomic_write(path, json.dumps(body, indent=1, ensure_ascii=False) + "\n")
    atomic_write(page, track_record_page.render(as_track_record(ordered, reproductions)))
    atomic_write(table, rendered)


def render(results: Sequence[ReproductionResult], reproductions: Sequence[Reproduction]) -> str:
    """The table: a row per reproduction, a column per release, and the seconds that each took."""
    releases = sorted({each.release for each in results}, key=parse)
    found = {each.key: each for each in results}
    rows = []
    for reproduction in reproductions:
        here = [found.get((reproduction.name, release)) for release in releases]
        seconds = [each.seconds for each in here if each is not None]
        if seconds:
            signs = (" " if each is None else _sign(reproduction, each) for each in here)
            rows.append([reproduction.name, *signs, f"{statistics.median(seconds):.1f}"])
    total = {release: sum(each.seconds for each in results if each.release == release) for release in releases}
    rows.append(["s", *(f"{total[release]:.0f}" for release in releases), f"{sum(total.values()):.0f}"])
    lines = ["", *markdown_table(["row", *releases, "s"], rows), "", *_summary(results, reproductions), ""]
    return "\n".join(lines) + "\n"


def as_track_record(results: Sequence[ReproductionResult], reproductions: Sequence[Reproduction]) -> TrackRecord:
    """The results in the form that the HTML page renders; reproductions without a result are left out."""
    releases = tuple(sorted({each.release for each in results}, key=parse))
    by_row: dict[str, list[ReproductionResult]] = {}
    for result in sorted(results, key=lambda each: parse(each.release)):
        by_row.setdefault(result.row, []).append(result)
    measured = measured_rows((each.row, each.release, each.seen) for each in results)
    return TrackRecord(
        releases=releases,
        rows=tuple(_as_row(each, by_row[each.name], releases) for each in reproductions if each.name in by_row),
        commits=tuple(sorted({each.commit for each in results})),
        boxes=tuple(box(bug, measured.get(name, ())) for name, bug in bugs().items()),
    )


def _as_row(reproduction: Reproduction, results: Sequence[ReproductionResult], releases: Sequence[str]) -> TrackRow:
    found = {each.release: _as_cell(reproduction, each) for each in results}
    alike: dict[tuple[Mark, str], list[str]] = {}
    for each in results:
        alike.setdefault((_MARKS[each.seen], each.note), []).append(each.release)
    return TrackRow(
        name=reproduction.name,
        claim=reproduction.claim,
        about=note_on(reproduction.bug),
        race=reproduction.race,
        cells=tuple(found.get(release) for release in releases),
        showings=tuple(
            Showing(mark=mark, releases=tuple(seen_on), note=note) for (mark, note), seen_on in alike.items()
        ),
        median_s=statistics.median(each.seconds for each in results),
        replay=f"tox -e track-record -- --bugs {reproduction.name} --rerun",
    )


def _as_cell(reproduction: Reproduction, result: ReproductionResult) -> TrackCell:
    return TrackCell(
        mark=_MARKS[result.seen],
        score=result.note if reproduction.race and result.decided else "",
        mismatch=reproduction.mismatch(result.release, result.seen),
    )


def _sign(reproduction: Reproduction, result: ReproductionResult) -> str:
    sign = _SIGNS[result.seen]
    if reproduction.race and result.decided:
        return f"{sign} {result.note}"
    return f"**{sign}!**" if reproduction.mismatch(result.release, result.seen) else sign


def _summary(results: Sequence[ReproductionResult], reproductions: Sequence[Reproduction]) -> list[str]:
    known = {each.name: each for each in reproductions}
    counted = [each for each in results if each.row in known]
    mismatches = [known[each.row].mismatch(each.release, each.seen) for each in counted]
    undecided = [f"{each.row} on {each.release}: {each.note}" for each in counted if not each.decided]
    lines = [
        f"{len({each.row for each in counted})} rows, {len(counted)} cells, {sum(map(bool, mismatches))} mismatches, "
        f"{len(undecided)} undecided."
    ]
    return lines + [f"* {each}." for each in [*filter(None, mismatches), *undecided]]
