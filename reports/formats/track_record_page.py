"""The page `docs/generated/track-record.html`: which known bugs this suite finds again, release by release.

A reader asks three things: does it find the bugs that a release has, is it silent where a release lacks them, and what
did it see. The first two are the table; the third is one section per row, in which releases that showed the same stand
together. What was seen against expectation is named before everything else.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from reports.formats.templating import environment, without_blanks


class Mark(StrEnum):
    """What one row showed on one release; the value is the class that colours it."""

    VIOLATED = "fail"
    HELD = "pass"
    INCONCLUSIVE = "inconclusive"
    ERROR = "error"


SIGNS = {Mark.VIOLATED: "✗", Mark.HELD: "✓", Mark.INCONCLUSIVE: "?", Mark.ERROR: "!"}
WORDS = {
    Mark.VIOLATED: "the bug is there",
    Mark.HELD: "the lawful answer",
    Mark.INCONCLUSIVE: "undecided",
    Mark.ERROR: "not performed to its end",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackCell:
    """One row on one release; `score` are the hits and tries of a race, `mismatch` says what was expected instead."""

    mark: Mark
    score: str = ""
    mismatch: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Showing:
    """What several releases showed alike: the releases, and the observation in one sentence."""

    mark: Mark
    releases: tuple[str, ...]
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackRow:
    """One known bug or variant of it; a cell is None where the row is not for the release.

    `about` says what the bug is and where it is tracked, `median_s` what one cell takes.
    """

    name: str
    claim: str
    about: str
    race: bool
    cells: tuple[TrackCell | None, ...]
    showings: tuple[Showing, ...]
    median_s: float
    replay: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackRecord:
    """The whole matrix; `commits` are those at which its cells were performed."""

    releases: tuple[str, ...]
    rows: tuple[TrackRow, ...]
    commits: tuple[str, ...]

    @property
    def cells(self) -> tuple[TrackCell, ...]:
        """Every cell that there is."""
        return tuple(cell for row in self.rows for cell in row.cells if cell is not None)

    @property
    def mismatches(self) -> tuple[str, ...]:
        """What was seen against expectation."""
        return tuple(cell.mismatch for cell in self.cells if cell.mismatch)

    @property
    def undecided(self) -> int:
        """Cells that say nothing about their release."""
        return sum(cell.mark in (Mark.INCONCLUSIVE, Mark.ERROR) for cell in self.cells)

    def count(self, mark: Mark) -> int:
        """How many cells have this mark."""
        return sum(cell.mark == mark for cell in self.cells)


def render(record: TrackRecord) -> str:
    """The whole page; equal records give equal bytes."""
    given: dict[str, Any] = {"record": record, "marks": tuple(Mark), "signs": SIGNS, "words": WORDS}
    return without_blanks(environment().get_template("track_record.html.j2").render(given))
