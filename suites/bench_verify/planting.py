"""What is wrong with the evidence, and exactly which violations of the definitions that makes.

Each plant changes a few rows of a block and says what a judge must find, by `verification.anomalies` and not by any
check. Victims are drawn so that no two plants meet: a writer's two transactions in a row belong to one plant, and so
does one operation of an appender. Live observers, initialisations and coordinators are no part of this evidence, so
early-read, stranded-producer and illegal-transition cannot be planted; broken-sequence is not (`block.number`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from suites.bench_verify.block import ABORT, COMMIT, DATA, EPOCH, LATE, Carried, Column, Rows, joined, table, taken
from suites.bench_verify.found import Found
from suites.bench_verify.plan import (
    APPENDERS,
    OUTPUTS,
    PARTITIONS,
    PROCESSES_MAX,
    SHARES,
    WRITERS,
    Fate,
)
from verification.anomalies import Anomaly

#: Of this input partition the group's offset is too low; other plants leave it alone.
LAGGING = 1
#: By how many copies.
LAG = 3


def at(rows: Rows, row: int, anomaly: Anomaly, observer: str | None = None) -> Found:
    """A violation that names a row's record and place."""
    names = ("process", "operation", "index", "topic", "partition", "offset")
    process, operation, index, topic, partition, offset = (int(rows[name][row]) for name in names)
    return Found(str(anomaly), process, operation, index, topic, partition, offset, observer)


def _of_operation(rows: Rows, row: int, anomaly: Anomaly) -> Found:
    return Found(str(anomaly), int(rows["process"][row]), int(rows["operation"][row]))


@dataclass(slots=True)
class Victim:
    """Rows of one client's operation in one slot, data only, in the order of the log; `rows` is the whole block."""

    rows: Rows
    own: Column
    random: np.random.Generator

    def one(self) -> int:
        """Any row of it."""
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


def lost_transaction(victim: Victim) -> list[Found]:
    """Told committed, with its control records, and no record of it is there."""
    _gone(victim, victim.own)
    return [at(victim.rows, int(row), Anomaly.LOST_WRITE) for row in victim.own]


def lost_append(victim: Victim) -> list[Found]:
    """One acknowledged record is not there."""
    row = victim.one()
    _gone(victim, row)
    return [at(victim.rows, row, Anomaly.LOST_WRITE)]


def torn_by_reader(victim: Victim) -> list[Found]:
    """One record of a committed transaction is not delivered."""
    row = victim.one()
    victim.rows["committed"][row] = 0
    return [_of_operation(victim.rows, row, Anomaly.TORN_TRANSACTION)]


def torn_by_marker(victim: Victim) -> list[Found]:
    """One partition of a committed transaction was told abort."""
    rows, row = victim.rows, victim.one()
    rows["committed"][victim.alongside(row)] = 0
    rows["control"][_marker(victim, row)] = ABORT
    return [_of_operation(rows, row, Anomaly.TORN_TRANSACTION)]


def _marker(victim: Victim, row: int) -> Column:
    rows = victim.rows
    slot, process = int(rows["slot"][row]), int(rows["process"][row])
    return victim.in_partition(row, slot=slot, process=process, control=COMMIT)


def aborted_read(victim: Victim) -> list[Found]:
    """A record of an aborted transaction is delivered."""
    row = victim.one()
    victim.rows["committed"][row] = 1
    return [at(victim.rows, row, Anomaly.ABORTED_READ, "committed")]


def stale_epoch(victim: Victim) -> list[Found]:
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


def superseded(victim: Victim) -> list[Found]:
    """Another client had initialised its id before it decided; `evidence` writes that into the history."""
    return [at(victim.rows, int(victim.own[0]), Anomaly.ZOMBIE_WRITE)]


def reordered(victim: Victim) -> list[Found]:
    """Two records in a row stand in the wrong order."""
    rows = victim.rows
    first, second = next(each[:2] for row in victim.own if len(each := victim.alongside(int(row))) > 1)
    orders = rows["send_order"]
    orders[first], orders[second] = orders[second], orders[first]
    return [at(rows, int(second), Anomaly.REORDERED_WRITE)]


def adopted(victim: Victim) -> list[Found]:
    """No control record of its own in one partition: the next transaction's decided it."""
    rows = victim.rows
    for row in victim.own:
        process, slot = int(rows["process"][row]), int(rows["slot"][row])
        if len(victim.in_partition(int(row), process=process, slot=slot + 1, control=DATA)):
            rows["logged"][_marker(victim, int(row))] = 0
            return [at(rows, int(victim.alongside(int(row))[-1]), Anomaly.HUNG_TRANSACTION)]
    raise AssertionError("a writer's next transaction meets none of the partitions of this one")


def hidden(victim: Victim) -> list[Found]:
    """A record of the log is not delivered."""
    row = victim.one()
    victim.rows["committed"][row] = 0
    return [at(victim.rows, row, Anomaly.HIDDEN_COMMITTED)]


def unread(victim: Victim) -> list[Found]:
    """A record of the log is not given to a reader who sees everything."""
    row = victim.one()
    victim.rows["uncommitted"][row] = 0
    return [at(victim.rows, row, Anomaly.POLL_SKIP, "uncommitted")]


def given_twice(victim: Victim) -> list[Found]:
    """A record is given twice."""
    row = victim.one()
    victim.rows["committed"][row] = 2
    return [at(victim.rows, row, Anomaly.NONMONOTONIC_POLL, "committed")]


def changed(victim: Victim) -> list[Found]:
    """A record is delivered with another content than the log's."""
    row = victim.one()
    victim.rows["shift"][row] = 1
    return [at(victim.rows, row, Anomaly.INCONSISTENT_OFFSET)]


def misrouted(victim: Victim) -> list[Found]:
    """A record stands in another partition than it was written to."""
    row = victim.one()
    victim.rows["intended_partition"][row] = (victim.rows["partition"][row] + 1) % PARTITIONS
    return [at(victim.rows, row, Anomaly.PHANTOM_RECORD)]


def again(victim: Victim) -> list[Found]:
    """A record stands there twice; `Planting.before` has added the second one."""
    rows = victim.rows
    (second,) = victim.own[rows["again"][victim.own] == 1]
    same = victim.own[rows["index"][victim.own] == rows["index"][second]]
    rows["send_order"][second] = rows["send_order"][same].max()
    return [at(rows, int(same[-1]), Anomaly.DUPLICATE)]


Plant = Callable[[Victim], list[Found]]
#: What happens to pairs of transactions: plant, and how the first of the two ends.
TO_WRITERS: tuple[tuple[Plant, Fate], ...] = (
    (lost_transaction, Fate.COMMITTED),
    (torn_by_reader, Fate.COMMITTED),
    (torn_by_marker, Fate.COMMITTED),
    (aborted_read, Fate.ABORTED),
    (superseded, Fate.COMMITTED),
    (reordered, Fate.COMMITTED),
    (adopted, Fate.COMMITTED),
    # Last, because it looks for what the others have left of earlier transactions.
    (stale_epoch, Fate.COMMITTED),
)
TO_APPENDERS: tuple[Plant, ...] = (again, lost_append, hidden, unread, given_twice, changed, misrouted)


class Planting:
    """The plants of one block: draw victims, prepare the rows, and spoil them once they are laid out."""

    def __init__(self, random: np.random.Generator, *, slots: int, rounds: int) -> None:
        self.random = random
        self.rounds = rounds
        pairs = [(slot, process) for slot in range(1, slots - 1, 2) for process in WRITERS]
        appends = [(slot, process) for slot in range(slots) for process in APPENDERS]
        self.pairs = [pairs[each] for each in random.permutation(len(pairs))[: rounds * len(TO_WRITERS)]]
        self.appends = [appends[each] for each in random.permutation(len(appends))[: rounds * len(TO_APPENDERS)]]
        self.slots = slots

    def before(self, rows: Rows) -> Rows:
        """The rows with their fates, and with what is there twice and what nobody wrote."""
        fates = self.random.choice(len(SHARES), size=(self.slots, PROCESSES_MAX), p=SHARES)
        for number, (slot, process) in enumerate(self.pairs):
            fates[slot : slot + 2, process] = Fate.COMMITTED
            fates[slot, process] = TO_WRITERS[number // self.rounds][1]
        fates[:, list(APPENDERS)] = Fate.COMMITTED
        rows["fate"] = fates[rows["slot"], rows["process"]]
        added = [rows]
        for slot, process in self.appends[: self.rounds]:
            own = np.flatnonzero((rows["slot"] == slot) & (rows["process"] == process))
            second = taken(rows, self.random.choice(own, size=1))
            second["again"][:], second["position"][:] = 1, LATE
            foreign = table(1, slot=slot, topic=OUTPUTS[0], position=LATE, transactional=0, genuine=0)
            foreign["partition"][:] = self.random.integers(PARTITIONS)
            added += [second, foreign]
        return joined(added)

    def spoil(self, rows: Rows) -> list[Found]:
        """Change the rows of the log; what must be found."""
        foreign = np.flatnonzero(rows["genuine"] == 0)
        found = [
            at(rows, int(row), Anomaly.PHANTOM_RECORD)._replace(process=None, operation=None, record=None)
            for row in foreign
        ]
        planted = [(TO_APPENDERS[number // self.rounds], *each) for number, each in enumerate(self.appends)]
        planted += [(TO_WRITERS[number // self.rounds][0], *each) for number, each in enumerate(self.pairs)]
        for plant, slot, process in planted:
            mine = (rows["slot"] == slot) & (rows["process"] == process) & (rows["control"] == DATA)
            found += plant(Victim(rows, np.flatnonzero(mine & (rows["genuine"] == 1)), self.random))
        return found

    def superseded(self) -> frozenset[tuple[int, int]]:
        """Slot and process of the transactions before whose decision a rival initialises their id."""
        (kind,) = [number for number, (plant, _) in enumerate(TO_WRITERS) if plant is superseded]
        return frozenset(self.pairs[kind * self.rounds : (kind + 1) * self.rounds])


@dataclass(slots=True)
class Copying:
    """Plants among what is copied: inputs that are left out, and inputs that are copied twice."""

    random: np.random.Generator
    twice: list[tuple[int, int]]

    def spoil(self, carried: Carried, rows: Rows, rounds: int) -> list[Found]:
        """Take `rounds` of the inputs that are to be copied next away, and put as many in twice."""
        eligible = np.flatnonzero(carried.fed_partition != LAGGING)
        chosen = self.random.choice(eligible, size=2 * rounds, replace=False)
        left_out, doubled = chosen[:rounds], chosen[rounds:]
        places = {(int(carried.fed_partition[each]), int(carried.fed_offset[each])) for each in left_out}
        found = [
            at(rows, int(row), Anomaly.OFFSET_WITHOUT_OUTPUT)
            for row in np.flatnonzero((rows["topic"] == 0) & (rows["committed"] > 0))
            if (int(rows["partition"][row]), int(rows["offset"][row])) in places
        ]
        self.twice = [(int(carried.fed_partition[each]), int(carried.fed_offset[each])) for each in doubled]
        times = np.ones(len(carried.fed_offset), dtype=np.int64)
        times[left_out], times[doubled] = 0, 2
        carried.fed_partition = np.repeat(carried.fed_partition, times)
        carried.fed_offset = np.repeat(carried.fed_offset, times)
        return found

    def found(self, rows: Rows) -> list[Found]:
        """The second copies of what was put in twice, once they are laid out."""
        found = []
        for partition, offset in self.twice:
            (_, second) = np.flatnonzero((rows["source_partition"] == partition) & (rows["source_offset"] == offset))
            found.append(at(rows, int(second), Anomaly.DUPLICATE))
        return found
