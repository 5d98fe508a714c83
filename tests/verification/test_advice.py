"""The advice on known bugs: its parts, its sources, the releases that were measured, and the errors for mistakes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from verification.known_bugs.advice import Advice, AdvicePart, read_advice
from verification.known_bugs.catalogue import KnownBug, affects, load
from verification.known_bugs.measured import MeasuredRow, load_measured
from verification.requirements.toml_table import Table
from verification.vocabulary.errors import KnownBugsError

BUGS = load()
PARTS = ("concerns", "avoid", "alert", "repair")
GOOD: dict[str, object] = {name: {"sources": ["KIP-664"], "points": ["Look at\nit."]} for name in PARTS}
NEWEST = ("3.9.2", "4.0.2", "4.1.2", "4.2.1", "4.3.1", "4.4.0")


def _read(**changed: object) -> Advice:
    return read_advice(Table({**GOOD, **changed}, file="bugs.toml", entry="KB-01.advice", complain=KnownBugsError))


def test_points_are_read_on_one_line() -> None:
    """White space is collapsed, and sources are kept."""
    assert _read().alert == AdvicePart(points=("Look at it.",), sources=("KIP-664",))


def test_what_no_source_says_is_not_known() -> None:
    """It has no source, and says so."""
    part = _read(alert={"points": ["not known"]}).alert
    assert (part.known, part.sources) == (False, ())


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"alert": {"sources": ["KIP-664"], "points": []}}, r"KB-01\.advice\.alert: says nothing"),
        ({"alert": {"sources": ["KIP-664"], "points": [" "]}}, r"KB-01\.advice\.alert: says nothing"),
        ({"alert": {"points": ["Look at it."]}}, r"KB-01\.advice\.alert: has no source"),
        ({"alert": {"sources": ["KIP-664"], "points": ["not known"]}}, "has sources but nothing is known"),
        ({"alert": {"sources": ["a friend"], "points": ["Look."]}}, r"source \['a friend'\] is of no known kind"),
        ({"alert": {"sources": ["KIP-664"], "points": ["Run `this."]}}, "opens a backtick that is not closed"),
        ({"alert": {"sources": ["KIP-664"], "points": ["Look."], "until": "now"}}, "has unknown fields: until"),
        ({"cost": {"points": ["much"]}}, r"KB-01\.advice: has unknown fields: cost"),
        ({"repair": "by hand"}, r"KB-01\.advice\.repair: is not a table"),
    ],
)
def test_a_mistake_is_named_by_its_part(changed: dict[str, object], complaint: str) -> None:
    """Every mistake ends in one sentence that names file, entry and part."""
    with pytest.raises(KnownBugsError, match=rf"^bugs\.toml, .*{complaint}"):
        _read(**changed)


def test_every_part_must_be_there() -> None:
    """An entry without a part is refused, because a reader would take it for "nothing to do"."""
    for name in PARTS:
        body = {each: value for each, value in GOOD.items() if each != name}
        with pytest.raises(KnownBugsError, match=f"{name} is missing"):
            read_advice(Table(body, file="bugs.toml", entry="KB-01.advice", complain=KnownBugsError))


@pytest.mark.parametrize("bug", BUGS.values(), ids=lambda each: each.id)
def test_advice_is_short_sentences(bug: KnownBug) -> None:
    """A sentence has at most 25 words; what a bug concerns and what avoids it is always known."""
    assert bug.advice.concerns.known
    assert bug.advice.avoid.known
    for name in PARTS:
        for point in getattr(bug.advice, name).points:
            # A command counts as one word, and may end a sentence.
            words = re.sub(r"`[^`]*`( (?=[A-Z]))?", lambda code: "code." if code[1] else "code", point)
            assert all(len(each.split()) <= 25 for each in re.split(r"(?<=[.:;]) ?", words)), point


def test_the_marker_bug_is_repaired_in_an_order_that_harms_nobody() -> None:
    """KB-16: stop, find out what was decided, act by that decision, verify; an abort comes after the copies."""
    advice = BUGS["KB-16"].advice
    assert any("Replication factor 3" in each for each in advice.concerns.points)
    assert "LastStableOffsetLag" in advice.alert.points[0]
    assert any("Couldn't find leader endpoint" in each for each in advice.alert.points)
    (stop, find, whose, decided, described, ask, commit, copy, abort, verify, _) = advice.repair.points
    assert stop.startswith("Stop: ")
    assert "After a lost abort, its commit shows aborted records" in stop
    assert "find-hanging" in find
    assert "--max-transaction-timeout 0" in find
    assert "`kafka-transactions.sh --bootstrap-server HOST:PORT list`" in whose
    assert "PrepareCommit or PrepareAbort" in decided
    assert "CompleteCommit: the lost marker was a commit. CompleteAbort: it was an abort." in described
    assert "Change nothing before you know." in ask
    assert commit.startswith("If it was a commit, let the same transactional id")
    assert "throws away" in copy
    assert copy.index("copy the records first") < copy.index("abort")
    assert abort.startswith("If it was an abort: `kafka-transactions.sh --bootstrap-server HOST:PORT abort ")
    assert verify.startswith("Verify: ")


@pytest.mark.parametrize("bug", BUGS.values(), ids=lambda each: each.id)
def test_advice_finds_out_before_it_acts(bug: KnownBug) -> None:
    """A command that ends a transaction or sets an offset never comes first: what to stop, or to look at, does."""
    points = bug.advice.repair.points
    if any(re.search(r"\.sh [^`]* abort |--execute", each) for each in points):
        assert re.match(r"(Nothing hangs\. )?(Stop|Find)", points[0]), bug.id
        assert not re.search(r"\.sh [^`]* abort |--execute", points[0]), bug.id


def test_what_was_measured_agrees_with_the_ranges() -> None:
    """The stored track record and the ranges of the catalogue say the same of every bug itself, but for races."""
    rows = [row for of_bug in load_measured().values() for row in of_bug if not row.variant and row.bug != "KB-15"]
    assert len(rows) >= 13
    for row in rows:
        assert all(affects(BUGS[row.bug], each) for each in row.affected), row
        assert not any(affects(BUGS[row.bug], each) for each in row.clean), row


def test_the_marker_bug_was_measured_on_the_newest_releases() -> None:
    """KB-16 was run on the newest release of most lines."""
    (row,) = load_measured()["KB-16"]
    assert row.affected == ("4.3.1", "4.4.0")
    assert set(NEWEST) - {"4.0.2"} <= {*row.affected, *row.clean}
    assert "4.0.2" in row.not_tried


def _cells(directory: Path, *cells: tuple[str, str, str], **changed: object) -> Path:
    path = directory / "cells.json"
    body = {"format": 1, "cells": [{"row": row, "release": on, "seen": seen} for row, on, seen in cells], **changed}
    path.write_text(json.dumps(body), encoding="utf-8")
    return path


def test_rows_are_read_in_the_order_of_releases(tmp_path: Path) -> None:
    """A variant is a row of its own; a cell without a result was not tried."""
    path = _cells(
        tmp_path,
        ("KB-03/TV1", "3.10.0", "VIOLATED"),
        ("KB-03/TV1", "3.9.2", "HELD"),
        ("KB-03/TV1", "2.4.0", "ERROR"),
        ("KB-01b", "2.4.0", "VIOLATED"),
    )
    assert load_measured(path) == {
        "KB-03": (
            MeasuredRow(bug="KB-03", variant="TV1", affected=("3.10.0",), clean=("3.9.2",), not_tried=("2.4.0",)),
        ),
        "KB-01": (MeasuredRow(bug="KB-01", variant="b", affected=("2.4.0",), clean=(), not_tried=("3.9.2", "3.10.0")),),
    }


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    """Without the file nothing is measured; another file is refused by its name."""
    assert load_measured(tmp_path / "absent.json") == {}
    for path in (
        _cells(tmp_path, format=2),
        _cells(tmp_path, ("KB-01", "newest", "HELD")),
        _cells(tmp_path, cells=[{}]),
    ):
        with pytest.raises(KnownBugsError, match=r"cells\.json is"):
            load_measured(path)
