"""Read `findings/<anomaly>/records.jsonl` once: the log entries of every example's operation, and their neighbours.

A missing or damaged file gives no entries and a problem: the finding itself is in verdicts.json.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: The judge writes at most 5 000 lines; a foreign file can have any number.
LINES_MAX = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingRecords:
    """The log entries of one finding as they are in the file at `path`, and the problem of the file, if any."""

    path: Path
    entries: tuple[Mapping[str, Any], ...] = ()
    problem: str = ""


def read(path: Path) -> FindingRecords:
    """The entries of a file. Bad content raises no error."""
    if not path.is_file():
        return FindingRecords(path=path)
    try:
        return FindingRecords(path=path, entries=tuple(_entries(path)))
    except (OSError, ValueError) as error:
        return FindingRecords(path=path, problem=problem_of(path, error))


def problem_of(path: Path, error: Exception) -> str:
    """One sentence on a file that does not fit."""
    return f"{path.name} of {path.parent.name} is truncated, or not written by Onceproof: {error!r}"


def _entries(path: Path) -> Iterator[Mapping[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for _, line in zip(range(LINES_MAX), lines, strict=False):
            body = json.loads(line)
            if not isinstance(body, dict):
                raise ValueError("a line is no object")  # noqa: TRY004 - it is the file that is wrong
            yield body
