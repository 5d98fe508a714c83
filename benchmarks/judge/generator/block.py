"""A block of evidence: some slots of time, with every client's records and their places in the log.

A block is a table of numpy columns, one row per record and control record, in the order of the log. From block to block
go only a few numbers per partition and client, and the inputs that copiers have yet to copy. So memory does not grow
with the evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.judge.generator.plan import (
    APPENDERS,
    COPIERS,
    COPIES,
    FEEDERS,
    INPUT,
    LEAVER,
    OUTPUTS,
    PARTITIONS,
    PROCESSES_MAX,
    TOPICS,
    WRITERS,
    EvidencePlan,
    Fate,
)

Column = NDArray[Any]
Rows = dict[str, Column]
DATA, COMMIT, ABORT = 0, 1, 2
EPOCH = 1
#: Rows after all others of their slot, before its control records.
LATE = 1 << 20
OPEN_RECORDS = 5
#: The highest number of a producer's record, after which comes 0; it is a mask.
NUMBER_MAX = (1 << 31) - 1
_PLACES = len(TOPICS) * PARTITIONS

#: Column → its default value.
DEFAULTS: dict[str, int] = {
    "slot": 0,
    "process": 0,
    "index": 0,
    "count": 1,
    "topic": 0,
    "partition": 0,
    "position": 0,
    "control": DATA,
    "transactional": 1,
    "fate": Fate.COMMITTED,
    "genuine": 1,
    "again": 0,
    "step": 1,
    "source_partition": -1,
    "source_offset": -1,
}


@dataclass(slots=True)
class Carried:
    """The state that one block leaves to the next: ends of partitions, counters of clients, and inputs to copy."""

    ends: Column = field(default_factory=lambda: np.zeros((len(TOPICS), PARTITIONS), dtype=np.int64))
    orders: Column = field(default_factory=lambda: np.zeros((PROCESSES_MAX, len(TOPICS) * PARTITIONS), dtype=np.int64))
    numbers: Column = field(default_factory=lambda: np.zeros((EPOCH + 1) * PROCESSES_MAX * _PLACES, dtype=np.int64))
    operations: Column = field(default_factory=lambda: np.zeros(PROCESSES_MAX, dtype=np.int64))
    fed_partition: Column = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    fed_offset: Column = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


def beginning(numbers_from: int) -> Carried:
    """The state before the first block: feeders' numbers in the input topic start at `numbers_from`."""
    carried = Carried()
    numbers = carried.numbers.reshape(EPOCH + 1, PROCESSES_MAX, len(TOPICS), PARTITIONS)
    numbers[:, list(FEEDERS), INPUT] = numbers_from
    return carried


def table(size: int, **columns: Column | int) -> Rows:
    """Rows with these columns and the defaults of the others."""
    rows = {name: np.full(size, value, dtype=np.int64) for name, value in DEFAULTS.items()}
    for name, values in columns.items():
        rows[name][:] = values
    return rows


def joined(tables: Sequence[Rows]) -> Rows:
    """The rows of several tables, concatenated."""
    return {name: np.concatenate([each[name] for each in tables]) for name in tables[0]}


def taken(rows: Rows, chosen: Column) -> Rows:
    """Some rows, by number or mask."""
    return {name: values[chosen] for name, values in rows.items()}


def _numbered(keys: Column) -> Column:
    """For every row, the number of earlier rows with the same key."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    first = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(keys) else np.zeros(0, dtype=np.int64)
    counted = np.arange(len(keys)) - np.repeat(first, np.diff(np.r_[first, len(keys)]))
    numbers = np.empty(len(keys), dtype=np.int64)
    numbers[order] = counted
    return numbers


def spread(
    random: np.random.Generator, processes: Sequence[int], *, slots: int, size: int, topics: Sequence[int]
) -> Rows:
    """One operation of `size` records per process and slot, spread over the partitions of some topics."""
    rows = slots * len(processes) * size
    return table(
        rows,
        slot=np.repeat(np.arange(slots), len(processes) * size),
        process=np.tile(np.repeat(np.asarray(processes), size), slots),
        index=np.tile(np.arange(size), slots * len(processes)),
        position=np.tile(np.arange(size), slots * len(processes)),
        count=size,
        topic=random.choice(np.asarray(topics), rows),
        partition=random.integers(PARTITIONS, size=rows),
        transactional=int(tuple(processes) != APPENDERS),
    )


def copies(random: np.random.Generator, plan: EvidencePlan, partition: Column, offset: Column) -> Rows:
    """Copies of inputs in the order of their offsets, by the copiers of their partitions."""
    rank = _numbered(partition)
    slot, index = rank // plan.per_transaction, rank % plan.per_transaction
    left = np.bincount(partition, minlength=PARTITIONS)[partition] - slot * plan.per_transaction
    return table(
        len(partition),
        slot=slot,
        process=np.asarray(COPIERS)[partition],
        index=index,
        position=index,
        count=np.minimum(left, plan.per_transaction),
        topic=COPIES,
        partition=random.integers(PARTITIONS, size=len(partition)),
        source_partition=partition,
        source_offset=offset,
    )


def left_open(slot: int) -> Rows:
    """A transaction that is never ended, at the end of one partition."""
    index = np.arange(OPEN_RECORDS)
    return table(
        OPEN_RECORDS,
        slot=slot,
        process=LEAVER,
        index=index,
        position=index,
        count=OPEN_RECORDS,
        topic=OUTPUTS[-1],
        partition=PARTITIONS - 1,
        fate=Fate.UNKNOWN_ABORTED,
    )


def written(random: np.random.Generator, plan: EvidencePlan, slots: int) -> Rows:
    """The records of writers, feeders and appenders in so many slots."""
    clients = (
        (WRITERS, plan.per_transaction, OUTPUTS),
        (FEEDERS, plan.per_transaction, (INPUT,)),
        (APPENDERS, plan.per_append, OUTPUTS),
    )
    return joined([spread(random, who, slots=slots, size=size, topics=where) for who, size, where in clients])


def _markers(rows: Rows) -> Rows:
    """One control record per transaction and partition, except for the transaction that is left open."""
    ended = taken(rows, (rows["transactional"] == 1) & (rows["process"] != LEAVER) & (rows["genuine"] == 1))
    place = ended["topic"] * PARTITIONS + ended["partition"]
    _, first = np.unique((ended["slot"] * PROCESSES_MAX + ended["process"]) * 64 + place, return_index=True)
    one = taken(ended, first)
    committed = np.isin(one["fate"], (Fate.COMMITTED, Fate.UNKNOWN_COMMITTED))
    kept = {name: one[name] for name in ("slot", "process", "topic", "partition", "fate")}
    return table(len(first), **kept, control=np.where(committed, COMMIT, ABORT))


def lay_out(rows: Rows, carried: Carried) -> Rows:
    """The rows with their control records in the order of the log, with offsets, send orders and deliveries.

    Added columns: offset, operation, send_order, intended_partition, epoch, logged, uncommitted, committed (how often
    each capture has the row) and shift (the difference of the committed capture's digest). `carried` goes on to the
    next block.
    """
    rows = joined([rows, _markers(rows)])
    place = rows["topic"] * PARTITIONS + rows["partition"]
    rows = taken(rows, np.lexsort((rows["process"], rows["position"], rows["control"] > 0, rows["slot"], place)))
    place = rows["topic"] * PARTITIONS + rows["partition"]
    size = len(place)
    rows["offset"] = carried.ends.ravel()[place] + _numbered(place)
    carried.ends += np.bincount(place, minlength=carried.ends.size).reshape(carried.ends.shape)
    rows["operation"] = 2 * (carried.operations[rows["process"]] + rows["slot"]) + 1
    counts = (rows["control"] == DATA) & (rows["again"] == 0) & (rows["genuine"] == 1)
    process, where = rows["process"][counts], place[counts]
    orders = np.zeros(size, dtype=np.int64)
    orders[counts] = carried.orders[process, where] + _numbered(process * carried.ends.size + where)
    np.add.at(carried.orders, (process, where), 1)
    rows["send_order"] = orders
    rows["intended_partition"] = rows["partition"].copy()
    rows["epoch"] = np.full(size, EPOCH)
    data = rows["control"] == DATA
    visible = np.isin(rows["fate"], (Fate.COMMITTED, Fate.UNKNOWN_COMMITTED))
    rows["logged"] = np.ones(size, dtype=np.int64)
    rows["uncommitted"] = data.astype(np.int64)
    rows["committed"] = (data & visible).astype(np.int64)
    rows["shift"] = np.zeros(size, dtype=np.int64)
    return rows


def number(rows: Rows, carried: Carried) -> None:
    """Add the column sequence: the numbers in the log, counted per client, epoch and partition; -1 for other rows.

    A record's number is by `step` above that of the one before it. Call this when no more rows are removed from the
    log: a leader never numbered a lost record.
    """
    counts = (rows["control"] == DATA) & (rows["genuine"] == 1) & (rows["logged"] > 0)
    own = (rows["epoch"] * PROCESSES_MAX + rows["process"]) * _PLACES + rows["topic"] * PARTITIONS + rows["partition"]
    keys, steps = own[counts], rows["step"][counts]
    rows["sequence"] = np.full(len(own), -1)
    rows["sequence"][counts] = (carried.numbers[keys] + _summed(keys, steps) - 1) & NUMBER_MAX
    np.add.at(carried.numbers, keys, steps)


def _summed(keys: Column, values: Column) -> Column:
    """For every row the sum of its value and of all values before it with the same key."""
    order = np.argsort(keys, kind="stable")
    whole = np.cumsum(values[order])
    ordered = keys[order]
    before = np.r_[0, whole[:-1]] if len(keys) else whole
    begins = np.r_[True, ordered[1:] != ordered[:-1]] if len(keys) else np.zeros(0, dtype=bool)
    sums = np.empty(len(keys), dtype=np.int64)
    sums[order] = whole - before[begins][np.cumsum(begins) - 1]
    return sums


def advance(carried: Carried, rows: Rows) -> None:
    """Remember the inputs that the next block's copiers copy, and the next operations."""
    genuine = rows["genuine"] == 1
    np.maximum.at(carried.operations, rows["process"][genuine], ((rows["operation"] + 1) // 2)[genuine])
    fed = (rows["topic"] == INPUT) & (rows["committed"] > 0)
    carried.fed_partition, carried.fed_offset = rows["partition"][fed], rows["offset"][fed]
