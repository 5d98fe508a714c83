"""A history is read line by line: what is no entry is named by its number, and what later versions add is passed over."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from verification.evidence.history_file import UnfitHistoryError, footer_line, header_line, read
from verification.vocabulary.history import InputRange, Operation, Outcome

COPY = {
    "type": "operation",
    "process": 3,
    "operation": 1,
    "action": "copy",
    "outcome": "ok",
    "stage": "done",
    "invoked_ns": 5,
    "inputs": [{"topic": "orders", "partition": 0, "first": 4, "end": 9}],
}


def _written(folder: Path, *entries: str) -> Path:
    path = folder / "history.jsonl"
    header = header_line(run="r", wall_clock_anchor="2026-01-01T00:00:00+00:00", anchor_ns=0)
    path.write_text("".join(f"{line}\n" for line in (header, *entries, footer_line(len(entries)))), "utf-8")
    return path


def test_what_a_later_version_says_beside_is_passed_over(tmp_path: Path) -> None:
    """In an entry and in its parts; null stands for a missing value."""
    (inputs,) = COPY["inputs"]  # type: ignore[misc]
    body = COPY | {"mood": {"good": [1.5, None]}, "decided_ns": None, "inputs": [{**inputs, "lag": 3}]}  # type: ignore[dict-item]
    (copied,) = read(_written(tmp_path, json.dumps(body))).of(Operation)
    assert (copied.outcome, copied.decided_ns) == (Outcome.OK, None)
    assert copied.inputs == (InputRange(topic="orders", partition=0, first=4, end=9),)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"operation": "1"}, "Expected `int`, got `str`"),
        ({"invoked_ns": 5.5}, "Expected `int`, got `float`"),
        ({"outcome": "fine"}, "Invalid enum value 'fine'"),
        ({"inputs": [{"topic": "orders"}]}, "missing required field"),
        ({"type": "opinion"}, "'opinion'"),
    ],
)
def test_a_line_that_does_not_fit_is_named(tmp_path: Path, changed: dict[str, object], said: str) -> None:
    """By its number and by the field that does not fit; Spark would only see a line of nulls."""
    path = _written(tmp_path, json.dumps(COPY), json.dumps(COPY | changed))
    with pytest.raises(UnfitHistoryError, match=rf"history\.jsonl: line 3 does not fit its type: .*{said}"):
        read(path)


@pytest.mark.parametrize("line", ["[1]", "3", "{}", '{"type": 3}'])
def test_a_line_of_something_else_is_no_entry(tmp_path: Path, line: str) -> None:
    """It is JSON, and says nothing of a run."""
    with pytest.raises(UnfitHistoryError, match="line 2 is not a history entry"):
        read(_written(tmp_path, line))


def test_a_line_that_is_no_json_means_that_the_run_was_cut(tmp_path: Path) -> None:
    """Whatever of it is whole."""
    with pytest.raises(UnfitHistoryError, match="line 3 is not JSON"):
        read(_written(tmp_path, json.dumps(COPY), json.dumps(COPY)[:-1]))
