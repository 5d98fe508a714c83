"""Mutators of pipelines that count their inputs by key.

No clean run is of such a pipeline, so the copies of the clean runs are given keys and right counts before one is broken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from benchmarks.judge_mutants.base import Base
from benchmarks.judge_mutants.mutant import Breaks, Draft, mutator
from verification.evidence.row_types import Row
from verification.vocabulary.anomalies import Anomaly

#: Keys of a partition.
KEYS = 3


def _counts(base: Base, draft: Draft) -> list[Row]:
    """A right count for each visible output; every topic has the same keys."""
    reached: Counter[tuple[int, str]] = Counter()
    rows: list[Row] = []
    for record in sorted(base.copies(), key=lambda record: record.place):
        topic_index, partition, offset = record.place
        key = f"{partition}.{draft.random.randrange(KEYS)}"
        reached[topic_index, key] += 1
        place = {"topic_index": topic_index, "partition": partition, "offset": offset}
        rows.append({**place, "key": key, "count": reached[topic_index, key]})
    draft.pick(rows)
    return rows


def _of_key(rows: list[Row], one: Row) -> list[Row]:
    """The outputs of its key, in order."""
    return [row for row in rows if (row["topic_index"], row["key"]) == (one["topic_index"], one["key"])]


def _changed_from(draft: Draft, rows: list[Row], one: Row, change: Callable[[int], int]) -> None:
    """Give the outputs of a key, from one on, another count."""
    later = {id(row) for row in _of_key(rows, one) if row["count"] >= one["count"]}
    draft.rows["counts"] = [{**row, "count": change(row["count"])} if id(row) in later else row for row in rows]


def _counts_on(base: Base, draft: Draft) -> Breaks:
    """Every key counts from 1 on, and the same keys are in every topic."""
    draft.rows["counts"] = _counts(base, draft)
    return ()


def _count_jumps(base: Base, draft: Draft) -> Breaks:
    """A state has more inputs than there were: from one output of a key on, the counts are higher."""
    rows, more = _counts(base, draft), draft.random.randint(1, 3)
    _changed_from(draft, rows, draft.pick(rows), lambda count: count + more)
    return {Anomaly.STATE_DIVERGENCE}


def _count_repeats(base: Base, draft: Draft) -> Breaks:
    """A state went back: from one output of a key on, the counts are lower."""
    rows = _counts(base, draft)
    one = draft.pick([row for row in rows if row["count"] > 1])
    less = draft.random.randint(1, one["count"] - 1)
    _changed_from(draft, rows, one, lambda count: count - less)
    return {Anomaly.STATE_DIVERGENCE}


def _count_lost(base: Base, draft: Draft) -> Breaks:
    """An output has no key and count."""
    rows = _counts(base, draft)
    one = draft.pick(rows)
    draft.rows["counts"] = [{**row, "key": None, "count": None} if row is one else row for row in rows]
    return {Anomaly.STATE_DIVERGENCE}


def _key_moved(base: Base, draft: Draft) -> Breaks:
    """The last outputs of a key are in another partition, where they count on."""
    rows = _counts(base, draft)
    one = draft.pick([row for row in rows if row["partition"] > 0])
    before = draft.pick([row for row in rows if row["topic_index"] == one["topic_index"] and row["partition"] == 0])
    done = max(row["count"] for row in _of_key(rows, before))
    moved = {id(row) for row in _of_key(rows, one)}
    draft.rows["counts"] = [
        {**row, "key": before["key"], "count": done + row["count"]} if id(row) in moved else row for row in rows
    ]
    return {Anomaly.STATE_DIVERGENCE}


def _kept(draft: Draft) -> list[Row]:
    """The last count of each key, in the store and in the changelog. Other topics than the first count no more."""
    rows = draft.rows["counts"] = [row for row in draft.rows["counts"] if row["topic_index"] == _first_topic(draft)]
    last = {row["key"]: row["count"] for row in rows}
    return [
        {"origin": origin, "place": f"the {origin}", "key": key, "count": count}
        for origin in ("store", "changelog")
        for key, count in last.items()
    ]


def _first_topic(draft: Draft) -> int:
    return min(int(row["topic_index"]) for row in draft.rows["counts"])


def _state_kept(base: Base, draft: Draft) -> Breaks:
    """Store and changelog agree with the outputs."""
    _counts_on(base, draft)
    draft.rows["kept_counts"] = _kept(draft)
    return ()


def _state_ahead(base: Base, draft: Draft) -> Breaks:
    """A key has another count in the store, or in the changelog."""
    _counts_on(base, draft)
    kept = _kept(draft)
    one = draft.pick(kept)
    draft.rows["kept_counts"] = [{**row, "count": row["count"] + 1} if row is one else row for row in kept]
    return {Anomaly.STATE_DIVERGENCE}


def _state_lost(base: Base, draft: Draft) -> Breaks:
    """The store, or the changelog, lacks a key; as long as it has others, it was read."""
    _counts_on(base, draft)
    kept = _kept(draft)
    one = draft.pick(kept)
    draft.pick([row for row in kept if row["origin"] == one["origin"] and row is not one])
    draft.rows["kept_counts"] = [row for row in kept if row is not one]
    return {Anomaly.STATE_DIVERGENCE}


MUTATORS = tuple(
    mutator(make)
    for make in (
        _counts_on,
        _count_jumps,
        _count_repeats,
        _count_lost,
        _key_moved,
        _state_kept,
        _state_ahead,
        _state_lost,
    )
)
