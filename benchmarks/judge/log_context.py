"""The surroundings of findings: what the product wrote to `records.jsonl`, and what a yardstick made of the same evidence.

They are held against each other row by row, because a yardstick that did less would be quicker for nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.judge.errors import DisagreementError
from benchmarks.judge.findings import NAMED
from verification.evidence.run_directory import RunDirectory

#: One row of `records.jsonl`: names and values, without those that are null, in the order of their names.
Row = tuple[tuple[str, Any], ...]


def beside(found: Path) -> Path:
    """Where a party writes surroundings, by where it writes what it found."""
    return found.with_suffix(".around.parquet")


def _row(values: Mapping[str, Any]) -> Row:
    return tuple(sorted((name, value) for name, value in values.items() if value is not None))


def of_judgement(directory: RunDirectory) -> list[Row]:
    """What `python -m verification` left in `findings/`, with the anomaly of each row's finding."""
    return [
        _row({"anomaly": path.parent.name, **json.loads(line)})
        for path in sorted(directory.findings.glob("*/records.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]


def of_party(path: Path) -> list[Row]:
    """What a party wrote, in the same columns; raises what reading raises."""
    return [_row(row) for row in pq.read_table(path).to_pylist()]


def _shown(rows: Counter[Row]) -> str:
    texts = [" ".join(f"{name}={value}" for name, value in row) for row in sorted(rows, key=repr)]
    return "; ".join(texts[:NAMED]) + (f" and {len(texts) - NAMED} more" if len(texts) > NAMED else "")


def agree(contender: str, theirs: Iterable[Row], ours: Iterable[Row]) -> None:
    """Raise DisagreementError unless a party shows around its examples exactly what the product shows around them."""
    shown, expected = Counter(theirs), Counter(ours)
    if missed := expected - shown:
        raise DisagreementError(
            f"{contender} does not show {missed.total()} of {expected.total()} rows around examples: {_shown(missed)}."
        )
    if invented := shown - expected:
        raise DisagreementError(
            f"{contender} shows {invented.total()} rows around examples that the product does not: {_shown(invented)}."
        )
