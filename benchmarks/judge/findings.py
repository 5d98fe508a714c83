"""The findings of a contender, in the columns in which all formulations must agree.

A violation is identified by its anomaly and by the record, place and observer that a check names
(`verification.checks`). Only the product writes a sentence about it.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.judge.errors import DisagreementError
from verification.evidence.run_directory import RunDirectory
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.experiment import Experiment

#: How many differences an error names.
NAMED = 5


class FoundViolation(NamedTuple):
    """One violation; columns that do not apply are None. `record` is the index of a record in its operation."""

    anomaly: str
    process: int | None = None
    operation: int | None = None
    record: int | None = None
    topic_index: int | None = None
    partition: int | None = None
    offset: int | None = None
    observer: str | None = None


def of_judgement(directory: RunDirectory, experiment: Experiment) -> list[FoundViolation]:
    """All violations that `python -m verification` wrote to `findings/`, consequences included."""
    indexes = {topic.name: index for index, topic in enumerate(experiment.topics)}
    found = []
    for path in sorted(directory.findings.glob("*/violations.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row: dict[str, Any] = json.loads(line)
            process, operation, index = (row.get(name) for name in ("process", "operation", "index"))
            place = (indexes.get(row.get("topic", "")), row.get("partition"), row.get("offset"))
            found.append(FoundViolation(row["anomaly"], process, operation, index, *place, row.get("observer")))
    return found


def write(path: Path, found: Iterable[FoundViolation]) -> None:
    """Write as CSV with a header; None is empty."""
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(FoundViolation._fields)
        rows.writerows(found)


def read(path: Path) -> list[FoundViolation]:
    """Read the CSV that `write`, or a database with the same columns, wrote. Raises OSError."""
    found = []
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            numbers = {name: int(row[name]) if row[name] else None for name in FoundViolation._fields[1:-1]}
            found.append(FoundViolation(anomaly=row["anomaly"], observer=row["observer"] or None, **numbers))
    return found


def listed(rows: Iterable[Iterable[tuple[str, Any]]]) -> str:
    """Some rows of names and values as text: the first `NAMED`, and the number of the others."""
    texts = [" ".join(f"{name}={value}" for name, value in row) for row in sorted(rows, key=repr)]
    return "; ".join(texts[:NAMED]) + (f" and {len(texts) - NAMED} more" if len(texts) > NAMED else "")


def _shown(found: Iterable[FoundViolation]) -> str:
    return listed([(name, value) for name, value in each._asdict().items() if value is not None] for each in found)


def agree(contender: str, found: Iterable[FoundViolation], planted: Iterable[FoundViolation]) -> None:
    """Raise DisagreementError unless a contender found each planted violation once, and nothing else."""
    theirs, ours = list(found), set(planted)
    missed, invented = ours - set(theirs), set(theirs) - ours
    if missed:
        raise DisagreementError(
            f"{contender} missed {len(missed)} of {len(ours)} planted violations: {_shown(missed)}."
        )
    if invented:
        raise DisagreementError(f"{contender} found {len(invented)} that were not planted: {_shown(invented)}.")
    if len(theirs) != len(ours):
        raise DisagreementError(f"{contender} found {len(theirs) - len(ours)} of the planted violations twice.")


def kinds(found: Iterable[FoundViolation]) -> tuple[Anomaly, ...]:
    """Their anomalies, the most severe first."""
    there = {each.anomaly for each in found}
    return tuple(each for each in Anomaly if each in there)
