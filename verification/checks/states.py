"""Checks that the outputs of a pipeline that counts its inputs by key count on, and that its state agrees with them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from verification.evidence.row_types import Row
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.quiescent_state import KeptIn
from verification.vocabulary.violations import AGAIN, Place, RawViolation


def state_divergence(frame: Iterable[Row], kept: Iterable[Row] = ()) -> Iterator[RawViolation]:
    """An output that does not count on, or with which a state disagrees. One violation per output, which it names.

    An output whose key had its count before (`cause` is `again`) may be all right where copies come again. So a state that
    disagrees with it is a violation of its own.
    `kept` has the counts of the state at the end, in stores and in changelogs. Each key of the outputs must be in both, as
    far as they were read, with the count of its last output. A key without outputs is a violation without a place.
    """
    found = set()
    for each in _jumps(frame):
        if each.cause is None:
            found.add(each.place)
        yield each
    for each in _disagreements(frame, kept):
        if each.place is None or each.place not in found:
            found.add(each.place)
            yield each


def _jumps(frame: Iterable[Row]) -> Iterator[RawViolation]:
    """The outputs that do not count on.

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
            again = AGAIN if 1 <= row["count"] < due and not moved else None
            yield _violation(row, f"key {row['key']}: count {row['count']} where {due} was due, {before}", again)


def _steps(frame: Iterable[Row]) -> Iterator[tuple[Row, Row | None]]:
    """Every output with the one of its key before it."""
    last: dict[tuple[int, str], Row] = {}
    for row in sorted(frame, key=lambda row: (row["topic_index"], row["partition"], row["offset"])):
        key = (row["topic_index"], row["key"])
        yield row, last.get(key) if _counts(row) else None
        if _counts(row):
            last[key] = row


def _disagreements(frame: Iterable[Row], kept: Iterable[Row]) -> Iterator[RawViolation]:
    """The last outputs of keys whose count a state does not have, and the keys of a state that have no output."""
    last = {(row["topic_index"], row["key"]): row for row, _ in _steps(frame) if _counts(row)}
    states: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in kept:
        states[row["origin"]][row["key"]].append(row)
    for origin, keys in sorted(states.items()):
        for (_, key), output in last.items():
            if detail := _disagreement(origin, keys, key, output["count"]):
                yield _violation(output, detail)
        for key in sorted(keys.keys() - {key for _, key in last}):
            yield RawViolation(
                anomaly=Anomaly.STATE_DIVERGENCE, detail=f"key {key}: the {origin} has it, and no output does"
            )


def _disagreement(origin: str, keys: Mapping[str, list[Row]], key: str, count: int) -> str:
    """How a state differs from the last output of a key; empty if it does not."""
    if key not in keys:
        return f"key {key}: no {origin} has it, and its last output has the count {count}"
    wrong = next((each for each in keys[key] if each["count"] != count), None)
    if wrong is None:
        return ""
    where = f"the {origin} of {wrong['place']}" if origin == KeptIn.STORE else f"the {origin} {wrong['place']}"
    return f"key {key}: {where} has the count {wrong['count']} where its last output has {count}"


def _counts(row: Row) -> bool:
    return row["key"] is not None and row["count"] is not None


def before(frame: Iterable[Row], place: Place | None) -> Row | None:
    """The output before the one at a place, of the same key; None if there is none."""
    steps = (last for row, last in _steps(frame) if (row["topic_index"], row["partition"], row["offset"]) == place)
    return next(steps, None)


def _violation(row: Row, detail: str, cause: str | None = None) -> RawViolation:
    where = {name: row[name] for name in ("topic_index", "partition", "offset")}
    return RawViolation(anomaly=Anomaly.STATE_DIVERGENCE, detail=detail, cause=cause, **where)
