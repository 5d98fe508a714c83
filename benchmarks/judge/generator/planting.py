"""Plants violations: chooses the clients' operations to change, and the inputs that are not copied exactly once.

Each plant changes a few rows of a block, and returns the violations that a judge must find (`plants`). Victims are
drawn so that no two plants meet. A writer's two transactions in a row belong to one plant, and so does one operation of
a feeder or an appender. Live observers, initialisations and coordinators are not part of this evidence, so early-read,
stranded-producer and illegal-transition cannot be planted.

A broken-sequence is planted in two places: in feeders' records, where nothing else is wrong, and in writers' records,
where most other plants are. The first is a finding of its own. The second is a consequence of the other finding in its
partition (`verification.judge.primary_findings`). Numbers are assigned after all other plants (`block.number`), so that
only these plants break them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.judge.findings import FoundViolation
from benchmarks.judge.generator.block import DATA, LATE, Carried, Rows, joined, table, taken
from benchmarks.judge.generator.plan import (
    APPENDERS,
    FEEDERS,
    OUTPUTS,
    PARTITIONS,
    PROCESSES_MAX,
    SHARES,
    WRITERS,
    Fate,
)
from benchmarks.judge.generator.plants import (
    Victim,
    aborted_read,
    adopted,
    again,
    at,
    changed,
    given_twice,
    hidden,
    lost_append,
    lost_transaction,
    misrouted,
    number_again,
    number_left_out,
    reordered,
    stale_epoch,
    superseded,
    torn_by_marker,
    torn_by_reader,
    unread,
)
from verification.vocabulary.anomalies import Anomaly

#: In this input partition the group's offset is too low; other plants leave it alone.
LAGGING = 1
#: The number of copies beyond that offset.
LAG = 3
Plant = Callable[[Victim], list[FoundViolation]]
#: The plants in pairs of transactions: plant, and the end of the first of the two.
TO_WRITERS: tuple[tuple[Plant, Fate], ...] = (
    (lost_transaction, Fate.COMMITTED),
    (torn_by_reader, Fate.COMMITTED),
    (torn_by_marker, Fate.COMMITTED),
    (aborted_read, Fate.ABORTED),
    (superseded, Fate.COMMITTED),
    (reordered, Fate.COMMITTED),
    (adopted, Fate.COMMITTED),
    # These are last, because they look for earlier transactions that the others did not change.
    (number_left_out, Fate.COMMITTED),
    (stale_epoch, Fate.COMMITTED),
)
TO_FEEDERS: tuple[Plant, ...] = (number_left_out, number_again)
TO_APPENDERS: tuple[Plant, ...] = (again, lost_append, hidden, unread, given_twice, changed, misrouted)


class Planting:
    """The plants of one block: draws victims, prepares the rows, and changes them once they are laid out."""

    def __init__(self, random: np.random.Generator, *, slots: int, rounds: int) -> None:
        self.random = random
        self.rounds = rounds
        pairs = [(slot, process) for slot in range(1, slots - 1, 2) for process in WRITERS]
        appends = [(slot, process) for slot in range(slots) for process in APPENDERS]
        self.pairs = [pairs[each] for each in random.permutation(len(pairs))[: rounds * len(TO_WRITERS)]]
        self.appends = [appends[each] for each in random.permutation(len(appends))[: rounds * len(TO_APPENDERS)]]
        feeds = [(slot, process) for slot in range(1, slots) for process in FEEDERS]
        self.feeds = [feeds[each] for each in random.permutation(len(feeds))[: rounds * len(TO_FEEDERS)]]
        self.slots = slots

    def before(self, rows: Rows) -> Rows:
        """The rows with their fates, and with second copies and foreign records."""
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

    def spoil(self, rows: Rows) -> list[FoundViolation]:
        """Change the rows of the log; returns the violations that must be found."""
        foreign = np.flatnonzero(rows["genuine"] == 0)
        found = [
            at(rows, int(row), Anomaly.PHANTOM_RECORD)._replace(process=None, operation=None, record=None)
            for row in foreign
        ]
        planted = [(TO_APPENDERS[number // self.rounds], *each) for number, each in enumerate(self.appends)]
        planted += [(TO_FEEDERS[number // self.rounds], *each) for number, each in enumerate(self.feeds)]
        planted += [(TO_WRITERS[number // self.rounds][0], *each) for number, each in enumerate(self.pairs)]
        for plant, slot, process in planted:
            mine = (rows["slot"] == slot) & (rows["process"] == process) & (rows["control"] == DATA)
            found += plant(Victim(rows, np.flatnonzero(mine & (rows["genuine"] == 1)), self.random))
        return found

    def superseded(self) -> frozenset[tuple[int, int]]:
        """Slot and process of each transaction whose id a rival initialises before the decision."""
        (kind,) = [number for number, (plant, _) in enumerate(TO_WRITERS) if plant is superseded]
        return frozenset(self.pairs[kind * self.rounds : (kind + 1) * self.rounds])


@dataclass(slots=True)
class CopyFault:
    """Plants among copies: inputs that are left out, and inputs that are copied twice."""

    random: np.random.Generator
    twice: list[tuple[int, int]]

    def spoil(self, carried: Carried, rows: Rows, rounds: int) -> list[FoundViolation]:
        """Remove `rounds` of the inputs that are copied next, and duplicate as many."""
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

    def found(self, rows: Rows) -> list[FoundViolation]:
        """The second copies of the duplicated inputs, once they are laid out."""
        found = []
        for partition, offset in self.twice:
            (_, second) = np.flatnonzero((rows["source_partition"] == partition) & (rows["source_offset"] == offset))
            found.append(at(rows, int(second), Anomaly.DUPLICATE))
        return found
