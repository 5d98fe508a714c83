"""The page `docs/generated/track-record.html`: the known bugs that this suite finds again, release by release.

A reader asks three questions: does the suite find the bugs that a release has, does it find nothing where a release
lacks them, and what are the observations? The table answers the first two. One section per row has the observations;
releases with the same observation share a line. Mismatches come first. At the end is the advice on every known bug.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from reports.deciding.advice_boxes import AdviceBox
from reports.formats.templating import environment, without_blanks


class Mark(StrEnum):
    """The result of one row on one release; the value is its CSS class."""

    VIOLATED = "fail"
    HELD = "pass"
    INCONCLUSIVE = "inconclusive"
    ERROR = "error"


SIGNS = {Mark.VIOLATED: "✗", Mark.HELD: "✓", Mark.INCONCLUSIVE: "?", Mark.ERROR: "!"}
WORDS = {
    Mark.VIOLATED: "bug found",
    Mark.HELD: "bug not found",
    Mark.INCONCLUSIVE: "undecided",
    Mark.ERROR: "stopped with an error",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackCell:
    """One row on one release; `score` has the hits and tries of a race, `mismatch` says how it differs from the expected."""

    mark: Mark
    score: str = ""
    mismatch: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Showing:
    """One observation in one sentence, and the releases that share it."""

    mark: Mark
    releases: tuple[str, ...]
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackRow:
    """One known bug or a variant of it; a cell is None where the row does not apply to the release.

    `about` describes the bug and names its issue, `median_s` is the median duration of a cell.
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
    """The whole matrix; `commits` are the commits at which its cells ran, `boxes` the advice on every known bug."""

    releases: tuple[str, ...]
    rows: tuple[TrackRow, ...]
    commits: tuple[str, ...]
    boxes: tuple[AdviceBox, ...] = ()

    @property
    def cells(self) -> tuple[TrackCell, ...]:
        """All cells."""
        return tuple(cell for row in self.rows for cell in row.cells if cell is not None)

    @property
    def mismatches(self) -> tuple[str, ...]:
        """The descriptions of all mismatches."""
        return tuple(cell.mismatch for cell in self.cells if cell.mismatch)

    @property
    def undecided(self) -> int:
        """The number of cells without a result."""
        return sum(cell.mark in (Mark.INCONCLUSIVE, Mark.ERROR) for cell in self.cells)

    def count(self, mark: Mark) -> int:
        """How many cells have this mark."""
        return sum(cell.mark == mark for cell in self.cells)


def render(record: TrackRecord) -> str:
    """The whole page; equal records give equal bytes."""
    given: dict[str, Any] = {"record": record, "marks": tuple(Mark), "signs": SIGNS, "words": WORDS}
    return without_blanks(environment().get_template("track_record.html.j2").render(given))
