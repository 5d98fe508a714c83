"""The matrix of whole runs: what is acceptable, what is run again, what the table says."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from suites.acceptance import MATRIX, Cell, objections, outstanding, render

CELL = Cell(release="4.3.1", runtime="local", client="confluent", seed=1)


def row(verdict: str, *known_bugs: str, convicted: bool | None = None) -> dict[str, Any]:
    """One scenario or control of a run."""
    return {"key": "a", "verdict": verdict, "convicted": convicted, "known_bugs": list(known_bugs), "seconds": 12.3}


def line(
    *scenarios: dict[str, Any], control: dict[str, Any] | None = None, cell: Cell = CELL, commit: str = "c0ffee"
) -> dict[str, Any]:
    """What is kept of a run."""
    return {
        **asdict(cell),
        "commit": commit,
        "date": "2026-01-02",
        "exit_code": 1,
        "seconds": 700,
        "decision": "NO-GO",
        "scenarios": list(scenarios) or [row("PASS")],
        "controls": [control or row("FAIL", "", convicted=True)],
    }


@pytest.mark.parametrize(
    ("ran", "complaint"),
    [
        (line(), None),
        (line(row("FAIL", "KB-16")), None),
        (line(row("FAIL")), "a fails without a known bug of 4.3.1"),
        (line(row("FAIL", "KB-16", "")), "a fails without a known bug of 4.3.1"),
        (line(row("FAIL", "KB-06")), "a fails without a known bug of 4.3.1"),
        (line(row("INCONCLUSIVE")), "a is INCONCLUSIVE"),
        (line(row("ERROR")), "a is ERROR"),
        (line(control=row("PASS", convicted=False)), "control a was not convicted"),
    ],
)
def test_only_known_bugs_of_the_release_are_acceptable(ran: dict[str, Any], complaint: str | None) -> None:
    """A violation needs the name of a bug that the release has; nothing may be undecided, no control may go free."""
    assert objections(ran) == ([] if complaint is None else [complaint])


def test_what_has_an_answer_is_not_run_again() -> None:
    """Acceptable cells stand; others only at the commit at which they were run."""
    assert outstanding([], "c0ffee") == list(MATRIX)
    rest = [cell for cell in MATRIX if cell != CELL]
    assert outstanding([line(commit="0ld")], "c0ffee") == rest
    assert outstanding([line(row("ERROR"))], "c0ffee") == rest
    assert outstanding([line(row("ERROR"), commit="0ld")], "c0ffee") == list(MATRIX)


def test_the_table_names_bugs_of_subjects_and_not_of_controls() -> None:
    """What a control is convicted of was planted."""
    text = render([line(row("FAIL", "KB-16"), row("FAIL", ""))])
    assert "commit c0ffee, 2026-01-02: **NO-GO**, exit code 1, 700 s. a fails without a known bug of 4.3.1." in text
    assert "| a | FAIL | KB-16 | 12 |" in text
    assert "| a | FAIL | unnamed | 12 |" in text
    assert "| a | convicted |  | 12 |" in text
