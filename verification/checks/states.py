"""Checks that the outputs of a pipeline that counts its inputs by key count on, key by key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from verification.evidence.row_types import Row
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.violations import Place, RawViolation


def state_divergence(frame: Iterable[Row]) -> Iterator[RawViolation]:
    """A committed output that does not count on. One violation per output, which it names.

    The outputs of a key in a topic are taken in the order of (partition, offset). Each must have the count of the one
    before it plus one, the first 1. A key stands in one partition only, so an output in another partition than the one
    before it is a violation too. An output that names an input but has no key and count is one, and is no part of any
    order.
    """
    for row, last in _steps(frame):
        if not _counts(row):
            yield _violation(row, "the output has no key and count")
            continue
        due = 1 if last is None else last["count"] + 1
        moved = last is not None and last["partition"] != row["partition"]
        if row["count"] != due or moved:
            before = (
                "the first of its key" if last is None else f"after partition {last['partition']} at {last['offset']}"
            )
            yield _violation(row, f"key {row['key']}: count {row['count']} where {due} was due, {before}")


def _steps(frame: Iterable[Row]) -> Iterator[tuple[Row, Row | None]]:
    """Every output with the one of its key before it."""
    last: dict[tuple[int, str], Row] = {}
    for row in sorted(frame, key=lambda row: (row["topic_index"], row["partition"], row["offset"])):
        key = (row["topic_index"], row["key"])
        yield row, last.get(key) if _counts(row) else None
        if _counts(row):
            last[key] = row


def _counts(row: Row) -> bool:
    return row["key"] is not None and row["count"] is not None


def before(frame: Iterable[Row], place: Place | None) -> Row | None:
    """The output before the one at a place, of the same key; None if there is none."""
    steps = (last for row, last in _steps(frame) if (row["topic_index"], row["partition"], row["offset"]) == place)
    return next(steps, None)


def _violation(row: Row, detail: str) -> RawViolation:
    where = {name: row[name] for name in ("topic_index", "partition", "offset")}
    return RawViolation(anomaly=Anomaly.STATE_DIVERGENCE, detail=detail, **where)
