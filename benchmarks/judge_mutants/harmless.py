"""Harmless mutators: they change how evidence is written down, but not its meaning."""

from __future__ import annotations

from benchmarks.judge_mutants.base import Base
from benchmarks.judge_mutants.mutant import MS, Breaks, Draft, mutator


def _another_clock(base: Base, draft: Draft) -> Breaks:
    """Every time is shifted by the same amount: the clock started at another time."""
    shift_ns = draft.random.randint(-(10**12), 10**15)
    for frame, rows in base.rows.items():
        names = [name for name in (rows[0] if rows else ()) if name.endswith("_ns")]
        if names:
            draft.rows[frame] = [
                {**row, **{name: row[name] + shift_ns for name in names if row[name] is not None}} for row in rows
            ]
    return ()


def _another_order(_: Base, draft: Draft) -> Breaks:
    """The rows of every file are in another order."""
    for rows in draft.rows.values():
        draft.random.shuffle(rows)
    return ()


def _wall_clock_back(_: Base, draft: Draft) -> Breaks:
    """The brokers' wall clock, which sets the timestamps of records, went back during the run."""
    offset = draft.random.randint(0, 3_000)
    for frame in ("log", "committed", "uncommitted"):
        draft.change(
            frame, lambda row: row["offset"] > offset, timestamp_ms=lambda row: row["timestamp_ms"] - 3_600_000
        )
    return ()


def _hole(base: Base, draft: Draft) -> Breaks:
    """All records from an offset on move one offset up: an undelivered record precedes them."""
    record = draft.pick([each for each in base.records if each.partition[0] not in base.inputs])
    draft.shift(record.partition, record.place[2])
    return ()


def _idle_instance(base: Base, draft: Draft) -> Breaks:
    """One more transactional id was initialised, and not used."""
    row = draft.pick(base.rows["operations"])
    at_ns = row["invoked_ns"]
    init = {"action": "init", "outcome": "ok", "told": None, "plain": False, "records": 0, "decided_ns": None}
    own = {"process": 55, "operation": 0, "transactional_id": "idle", "completed_ns": at_ns + MS, "fatal": False}
    draft.add("operations", row, **init, **own)
    return ()


def _answered_late(base: Base, draft: Draft) -> Breaks:
    """An operation other than an initialisation was answered later."""
    rows = [row for row in base.rows["operations"] if row["completed_ns"] is not None and row["action"] != "init"]
    chosen = draft.pick(rows)
    draft.change("operations", lambda row: row is chosen, completed_ns=chosen["completed_ns"] + 1_000 * MS)
    return ()


def _settled_later(base: Base, draft: Draft) -> Breaks:
    """A partition was not waited for, or its last stable offset was asked for once more."""
    chosen = draft.pick(base.rows["settled"])
    if draft.random.random() < 0.5:
        draft.drop("settled", lambda row: row is chosen)
    else:
        draft.add("settled", chosen, before_fencing=False)
    return ()


MUTATORS = tuple(
    mutator(make)
    for make in (
        _another_clock,
        _another_order,
        _wall_clock_back,
        _hole,
        _idle_instance,
        _answered_late,
        _settled_later,
    )
)
