"""Planted histories of a pipeline that counts its inputs by key."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.support.planted.busy import Found, found
from tests.support.planted.copies import COPIED, IN, OUT
from tests.support.planted.histories import Plant, Planted
from verification.evidence.row_types import Row
from verification.vocabulary.experiment import COUNTED
from verification.vocabulary.history import Action
from verification.vocabulary.quiescent_state import KeptIn

TOPICS = (COPIED[IN], replace(COPIED[OUT], partitions=2, reference="value", shape=COUNTED))
#: Key and count of each input's output; a key begins in the partition of its number in the alphabet.
KEYS = (("a", 1), ("b", 1), ("a", 2), ("a", 3), ("b", 2), ("a", 4))


def _counting(run: str) -> tuple[Planted, list[Row]]:
    """Six inputs and their outputs, which count; and the rows of the outputs."""
    planted = Planted(run=run, topics=TOPICS, fan_out=1, pipeline=0, order_claimed=False)
    planted.plain(planted.client(), ((IN, 0),) * len(KEYS))
    places = [(OUT, "ab".index(key)) for key, _ in KEYS]
    sources = [(0, offset) for offset in range(len(KEYS))]
    _, rows = planted.transaction(planted.client("counter"), places, action=Action.COPY, sources=sources)
    return planted, rows


def _counted(row: Row, key: str | None, count: int | None) -> Row:
    return {**{name: row[name] for name in ("topic_index", "partition", "offset")}, "key": key, "count": count}


def _done(planted: Planted, rows: list[Row], changes: dict[int, Any] | None = None) -> Plant:
    """The evidence, in which some outputs have other keys and counts."""
    said = [changes.get(number, each) if changes else each for number, each in enumerate(KEYS)]
    plant = planted.finish()
    plant.rows["counts"] = [_counted(row, key, count) for row, (key, count) in zip(rows, said, strict=True)]
    plant.rows["group_offsets"].append({"run": planted.run, "topic_index": IN, "partition": 0, "offset": len(KEYS)})
    return plant


def _diverged(row: Row) -> Found:
    place = {name: row[name] for name in ("topic_index", "partition", "offset")}
    return found("state-divergence", None, **place)


def counted(run: str) -> tuple[Plant, set[Found]]:
    """Every key counts from 1 on."""
    return _done(*_counting(run)), set()


def _keeping(planted: Planted, rows: list[Row], changes: dict[tuple[str, str], int | None]) -> Plant:
    """The evidence with the state at the end; a change gives a key of an origin another count, None takes the key away."""
    plant = _done(planted, rows)
    kept = {(origin, key): count for origin in ("store", "changelog") for key, count in KEYS} | changes
    plant.rows["kept_counts"] = [
        {"origin": KeptIn(origin), "place": f"the {origin}", "key": key, "count": count}
        for (origin, key), count in kept.items()
        if count is not None
    ]
    return plant


def counts_kept(run: str) -> tuple[Plant, set[Found]]:
    """Store and changelog have the last count of each key."""
    return _keeping(*_counting(run), {}), set()


def store_is_ahead(run: str) -> tuple[Plant, set[Found]]:
    """A store has an input more than the last output of a key says."""
    planted, rows = _counting(run)
    return _keeping(planted, rows, {("store", "a"): 5}), {_diverged(rows[5])}


def changelog_lacks_a_key(run: str) -> tuple[Plant, set[Found]]:
    """A restored store would begin with an empty state for a key."""
    planted, rows = _counting(run)
    return _keeping(planted, rows, {("changelog", "b"): None}), {_diverged(rows[4])}


def key_without_outputs(run: str) -> tuple[Plant, set[Found]]:
    """A store has a key that no output has."""
    planted, rows = _counting(run)
    return _keeping(planted, rows, {("store", "c"): 1}), {found("state-divergence", None)}


def counts_jump(run: str) -> tuple[Plant, set[Found]]:
    """A state had one more input than there were, from the second input of a key on."""
    planted, rows = _counting(run)
    return _done(planted, rows, {2: ("a", 3), 3: ("a", 4), 5: ("a", 5)}), {_diverged(rows[2])}


def counts_again(run: str) -> tuple[Plant, set[Found]]:
    """A state went back, and counted on from there."""
    planted, rows = _counting(run)
    return _done(planted, rows, {3: ("a", 2), 5: ("a", 3)}), {_diverged(rows[3])}


def counts_from_two(run: str) -> tuple[Plant, set[Found]]:
    """The first output of a key does not have the count 1."""
    planted, rows = _counting(run)
    return _done(planted, rows, {1: ("b", 2), 4: ("b", 3)}), {_diverged(rows[1])}


def without_count(run: str) -> tuple[Plant, set[Found]]:
    """An output has no count, so that the next one of its key is not one more than the one before."""
    planted, rows = _counting(run)
    return _done(planted, rows, {2: (None, None)}), {_diverged(rows[2]), _diverged(rows[3])}


def key_in_two_partitions(run: str) -> tuple[Plant, set[Found]]:
    """A key goes on in another partition, where it counts on."""
    planted, rows = _counting(run)
    return _done(planted, rows, {1: ("a", 5), 4: ("a", 6)}), {_diverged(rows[1])}


def counted_twice(run: str) -> tuple[Plant, set[Found]]:
    """An output is there twice with its count: one defect."""
    planted, rows = _counting(run)
    _, (again,) = planted.transaction(
        planted.client("counter"), [(OUT, 0)], action=Action.COPY, sources=[(0, len(KEYS) - 1)]
    )
    plant = _done(planted, rows)
    plant.rows["counts"].append(_counted(again, *KEYS[-1]))
    return plant, {found("duplicate", again), _diverged(again)}


def _copied_on(run: str) -> tuple[Planted, list[Row], list[Row]]:
    """The last two inputs of a key are copied again, and then once more."""
    planted, rows = _counting(run)
    again: list[Row] = []
    for _ in range(2):
        sources = [(0, offset) for offset in (3, 5)]
        again += planted.transaction(planted.client("counter"), [(OUT, 0)] * 2, action=Action.COPY, sources=sources)[1]
    return planted, rows, again


def counted_again(run: str) -> tuple[Plant, set[Found]]:
    """A state went back twice, and counted on from there."""
    planted, rows, again = _copied_on(run)
    plant = _done(planted, rows)
    plant.rows["counts"] += [_counted(row, "a", count) for row, count in zip(again, (3, 4, 3, 4), strict=True)]
    return plant, {*(found("duplicate", row) for row in again[:2]), _diverged(again[0]), _diverged(again[2])}


def counted_again_and_kept_wrong(run: str) -> tuple[Plant, set[Found]]:
    """A state went back, and has another count at the end than its last output."""
    planted, rows, again = _copied_on(run)
    plant = _keeping(planted, rows, {("store", "a"): 9, ("changelog", "a"): 3})
    plant.rows["counts"] += [_counted(row, "a", count) for row, count in zip(again, (5, 6, 7, 3), strict=True)]
    return plant, {*(found("duplicate", row) for row in again[:2]), _diverged(again[3])}
