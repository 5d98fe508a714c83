"""The plants: each changes the rows of its victim, and returns exactly the violations that this makes.

The violations follow from `verification.vocabulary.anomalies`, not from any check.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.judge.findings import FoundViolation
from benchmarks.judge.generator.block import ABORT, COMMIT, DATA, EPOCH, Column, Rows
from benchmarks.judge.generator.plan import PARTITIONS
from verification.vocabulary.anomalies import Anomaly

#: The size of the gap that a leader accepts.
MISSING = 3


def at(rows: Rows, row: int, anomaly: Anomaly, observer: str | None = None) -> FoundViolation:
    """A violation that names a row's record and place."""
    names = ("process", "operation", "index", "topic", "partition", "offset")
    process, operation, index, topic, partition, offset = (int(rows[name][row]) for name in names)
    return FoundViolation(str(anomaly), process, operation, index, topic, partition, offset, observer)


def _of_operation(rows: Rows, row: int, anomaly: Anomaly) -> FoundViolation:
    return FoundViolation(str(anomaly), int(rows["process"][row]), int(rows["operation"][row]))


@dataclass(slots=True)
class Victim:
    """Rows of one client's operation in one slot, data only, in the order of the log; `rows` is the whole block."""

    rows: Rows
    own: Column
    random: np.random.Generator

    def one(self) -> int:
        """Any of its rows."""
        return int(self.random.choice(self.own))

    def alongside(self, row: int) -> Column:
        """Its rows in the partition of one of them."""
        same = (self.rows["topic"][self.own] == self.rows["topic"][row]) & (
            self.rows["partition"][self.own] == self.rows["partition"][row]
        )
        chosen: Column = self.own[same]
        return chosen

    def in_partition(self, row: int, **wanted: int) -> Column:
        """All rows in the partition of one of them that have these values."""
        chosen = (self.rows["topic"] == self.rows["topic"][row]) & (
            self.rows["partition"] == self.rows["partition"][row]
        )
        for name, value in wanted.items():
            chosen &= self.rows[name] == value
        return np.flatnonzero(chosen)


def _gone(victim: Victim, chosen: Column | int) -> None:
    for name in ("logged", "uncommitted", "committed"):
        victim.rows[name][chosen] = 0


def lost_transaction(victim: Victim) -> list[FoundViolation]:
    """Told committed, with its control records, but without any of its records."""
    _gone(victim, victim.own)
    return [at(victim.rows, int(row), Anomaly.LOST_WRITE) for row in victim.own]


def lost_append(victim: Victim) -> list[FoundViolation]:
    """One acknowledged record is missing."""
    row = victim.one()
    _gone(victim, row)
    return [at(victim.rows, row, Anomaly.LOST_WRITE)]


def torn_by_reader(victim: Victim) -> list[FoundViolation]:
    """One record of a committed transaction is not delivered."""
    row = victim.one()
    victim.rows["committed"][row] = 0
    return [_of_operation(victim.rows, row, Anomaly.TORN_TRANSACTION)]


def torn_by_marker(victim: Victim) -> list[FoundViolation]:
    """One partition of a committed transaction got an abort marker."""
    rows, row = victim.rows, victim.one()
    rows["committed"][victim.alongside(row)] = 0
    rows["control"][_marker(victim, row)] = ABORT
    return [_of_operation(rows, row, Anomaly.TORN_TRANSACTION)]


def _marker(victim: Victim, row: int) -> Column:
    rows = victim.rows
    slot, process = int(rows["slot"][row]), int(rows["process"][row])
    return victim.in_partition(row, slot=slot, process=process, control=COMMIT)


def aborted_read(victim: Victim) -> list[FoundViolation]:
    """A record of an aborted transaction is delivered."""
    row = victim.one()
    victim.rows["committed"][row] = 1
    return [at(victim.rows, row, Anomaly.ABORTED_READ, "committed")]


def stale_epoch(victim: Victim) -> list[FoundViolation]:
    """In one partition the transaction has an epoch that was already superseded there."""
    rows = victim.rows
    before: list[int] = []
    for row in victim.own:
        earlier = victim.in_partition(int(row), process=int(rows["process"][row]), epoch=EPOCH, logged=1)
        if (rows["slot"][earlier] < rows["slot"][row]).any():
            before.append(int(row))
    chosen = victim.alongside(before[0])
    rows["epoch"][chosen] = EPOCH - 1
    return [at(rows, int(chosen[0]), Anomaly.ZOMBIE_WRITE)]


def superseded(victim: Victim) -> list[FoundViolation]:
    """Another client initialised its id before it decided; `evidence` writes that into the history."""
    return [at(victim.rows, int(victim.own[0]), Anomaly.ZOMBIE_WRITE)]


def reordered(victim: Victim) -> list[FoundViolation]:
    """Two consecutive records are in the wrong order."""
    rows = victim.rows
    first, second = next(each[:2] for row in victim.own if len(each := victim.alongside(int(row))) > 1)
    orders = rows["send_order"]
    orders[first], orders[second] = orders[second], orders[first]
    return [at(rows, int(second), Anomaly.REORDERED_WRITE)]


def adopted(victim: Victim) -> list[FoundViolation]:
    """It has no control record of its own in one partition: the next transaction's decided it."""
    rows = victim.rows
    for row in victim.own:
        process, slot = int(rows["process"][row]), int(rows["slot"][row])
        if len(victim.in_partition(int(row), process=process, slot=slot + 1, control=DATA)):
            rows["logged"][_marker(victim, int(row))] = 0
            return [at(rows, int(victim.alongside(int(row))[-1]), Anomaly.DECIDED_LATE)]
    raise AssertionError("a writer's next transaction meets none of the partitions of this one")


def hidden(victim: Victim) -> list[FoundViolation]:
    """A record of the log is not delivered."""
    row = victim.one()
    victim.rows["committed"][row] = 0
    return [at(victim.rows, row, Anomaly.HIDDEN_COMMITTED)]


def unread(victim: Victim) -> list[FoundViolation]:
    """A record of the log is not delivered to a reader of uncommitted records."""
    row = victim.one()
    victim.rows["uncommitted"][row] = 0
    return [at(victim.rows, row, Anomaly.POLL_SKIP, "uncommitted")]


def given_twice(victim: Victim) -> list[FoundViolation]:
    """A record is delivered twice."""
    row = victim.one()
    victim.rows["committed"][row] = 2
    return [at(victim.rows, row, Anomaly.NONMONOTONIC_POLL, "committed")]


def changed(victim: Victim) -> list[FoundViolation]:
    """A record is delivered with other content than the log's."""
    row = victim.one()
    victim.rows["shift"][row] = 1
    return [at(victim.rows, row, Anomaly.INCONSISTENT_OFFSET)]


def misrouted(victim: Victim) -> list[FoundViolation]:
    """A record is in a different partition than the one that it was written to."""
    row = victim.one()
    victim.rows["intended_partition"][row] = (victim.rows["partition"][row] + 1) % PARTITIONS
    return [at(victim.rows, row, Anomaly.PHANTOM_RECORD)]


def again(victim: Victim) -> list[FoundViolation]:
    """A record is there twice; `Planting.before` added the second one."""
    rows = victim.rows
    (second,) = victim.own[rows["again"][victim.own] == 1]
    same = victim.own[rows["index"][victim.own] == rows["index"][second]]
    rows["send_order"][second] = rows["send_order"][same].max()
    return [at(rows, int(same[-1]), Anomaly.DUPLICATE)]


def _continued(victim: Victim) -> int:
    """A row with which its client's numbering in the partition continues after an earlier transaction there."""
    rows = victim.rows
    for row in map(int, victim.own):
        earlier = victim.in_partition(row, process=int(rows["process"][row]), epoch=EPOCH, logged=1, control=DATA)
        if (rows["slot"][earlier] < rows["slot"][row]).any():
            return row
    raise AssertionError("a client has written to none of the partitions of this transaction before")


def number_left_out(victim: Victim) -> list[FoundViolation]:
    """From the first record of a transaction in a partition on, its client's numbers are higher."""
    row = _continued(victim)
    victim.rows["step"][row] = 1 + MISSING
    return [at(victim.rows, row, Anomaly.BROKEN_SEQUENCE)]


def number_again(victim: Victim) -> list[FoundViolation]:
    """Within a transaction, a record has the number of the one before it in its partition, and later ones continue."""
    second = next(int(each[1]) for row in victim.own if len(each := victim.alongside(int(row))) > 1)
    victim.rows["step"][second] = 0
    return [at(victim.rows, second, Anomaly.BROKEN_SEQUENCE)]
