"""The releases on which each known bug was looked for, and whether it was there, from the stored track record.

`docs/generated/track-record.json` has one cell per row and release; a row is a known bug in one variant. The file is
written by `runner.regressions.matrix`. It is read here, because a report names only releases that were measured.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from verification.vocabulary.errors import KnownBugsError, ReleaseError
from verification.vocabulary.releases import parse

CELLS = Path(__file__).parents[2] / "docs" / "generated" / "track-record.json"
FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRow:
    """One row of the track record: the bug, its variant (empty for the bug itself), and releases in ascending order.

    `affected` showed the bug, `clean` gave the expected answer. `not_tried` are releases of the track record on which
    this row was not run, or not decided.
    """

    bug: str
    variant: str
    affected: tuple[str, ...]
    clean: tuple[str, ...]
    not_tried: tuple[str, ...]


def load_measured(path: Path = CELLS) -> Mapping[str, tuple[MeasuredRow, ...]]:
    """The rows by the id of their bug; none without the file. Raises KnownBugsError when it is no track record."""
    if not path.is_file():
        return {}
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        if body["format"] != FORMAT:
            raise KnownBugsError(f"{path.name} is of format {body['format']}, and this version reads {FORMAT}")
        return measured_rows((str(each["row"]), str(each["release"]), str(each["seen"])) for each in body["cells"])
    except (ValueError, KeyError, TypeError, ReleaseError) as error:
        raise KnownBugsError(f"{path.name} is no track record ({error})") from error


def measured_rows(cells: Iterable[tuple[str, str, str]]) -> Mapping[str, tuple[MeasuredRow, ...]]:
    """The rows by the id of their bug, made of cells: name of the row, release, result.

    Raises ReleaseError for a release that is not a version number.
    """
    rows: dict[str, dict[str, str]] = {}
    for row, release, seen in cells:
        rows.setdefault(row, {})[release] = seen
    releases = sorted({each for seen_on in rows.values() for each in seen_on}, key=parse)
    found: dict[str, list[MeasuredRow]] = {}
    for row, seen_on in rows.items():
        measured = _row(row, seen_on, releases)
        found.setdefault(measured.bug, []).append(measured)
    return {bug: tuple(each) for bug, each in found.items()}


def _row(name: str, seen_on: Mapping[str, str], releases: list[str]) -> MeasuredRow:
    bug, variant = name[:5], name[5:].removeprefix("/")
    having = {
        result: tuple(each for each in releases if seen_on.get(each) == result) for result in ("VIOLATED", "HELD")
    }
    decided = {*having["VIOLATED"], *having["HELD"]}
    return MeasuredRow(
        bug=bug,
        variant=variant,
        affected=having["VIOLATED"],
        clean=having["HELD"],
        not_tried=tuple(each for each in releases if each not in decided),
    )
