"""The records around findings: the product's `records.jsonl`, compared row by row with those of the yardstick.

A yardstick that showed fewer records would be faster for the wrong reason.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.judge.errors import DisagreementError
from benchmarks.judge.findings import listed
from verification.evidence.run_directory import RunDirectory

#: One row of `records.jsonl`: names and values, without those that are null, in the order of their names.
Row = tuple[tuple[str, Any], ...]


def context_file(found: Path) -> Path:
    """The file for the records around findings, given the file of the findings."""
    return found.with_suffix(".around.parquet")


def _row(values: Mapping[str, Any]) -> Row:
    return tuple(sorted((name, value) for name, value in values.items() if value is not None))


def of_judgement(directory: RunDirectory) -> list[Row]:
    """The rows that `python -m verification` wrote to `findings/`, with the anomaly of each row's finding."""
    return [
        _row({"anomaly": path.parent.name, **json.loads(line)})
        for path in sorted(directory.findings.glob("*/records.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]


def of_contender(path: Path) -> list[Row]:
    """The rows that a contender wrote, in the same columns. Raises the errors of reading."""
    return [_row(row) for row in pq.read_table(path).to_pylist()]


def agree(contender: str, theirs: Iterable[Row], ours: Iterable[Row]) -> None:
    """Raise DisagreementError unless a contender shows exactly the product's rows around its examples."""
    shown, expected = Counter(theirs), Counter(ours)
    if missed := expected - shown:
        raise DisagreementError(
            f"{contender} does not show {missed.total()} of {expected.total()} rows around examples: {listed(missed)}."
        )
    if invented := shown - expected:
        raise DisagreementError(
            f"{contender} shows {invented.total()} rows around examples that the product does not: {listed(invented)}."
        )
