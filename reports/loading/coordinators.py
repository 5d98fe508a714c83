"""Transaction log → what each coordinator had open, and who it was.

A partition of `__transaction_state` is one coordinator at a time: the ids that hash to it are coordinated by its leader,
and a record's leader epoch says under which leadership it was written. Which broker that was is known where the metadata
was asked; else only that it was another one. A state stands from its record on until the next record of its id, by the
brokers' clocks; the states in which nothing is open are left out.

What is doubtful: the append of a record may have failed (COORD-09), so that the state never was in force, and a broker
with another clock than the harness dates its records by that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import groupby, pairwise

from reports.model.timeline import Coordinated, Coordinator, Reign, Stretch
from verification.evidence.transaction_log_file import TransactionLog
from verification.vocabulary.history import History, Operation
from verification.vocabulary.transaction_log import Entry, State

#: The states in which a transaction is open, or decided and not complete.
STANDING = frozenset({State.ONGOING, State.PREPARE_COMMIT, State.PREPARE_ABORT})

#: A record's time in milliseconds of the wall clock → seconds since the history's zero.
Clock = Callable[[int], float]


def coordinators(history: History, log: TransactionLog, clock: Clock, end_s: float) -> tuple[Coordinator, ...]:
    """The coordinators of the run's own transactional ids, by partition; what stands at the end stands to `end_s`."""
    own = {each.transactional_id for each in history.of(Operation)} - {None}
    by_partition: dict[int, list[Entry]] = defaultdict(list)
    for entry in log.entries:
        by_partition[entry.partition].append(entry)
    brokers = {(each.partition, each.leader_epoch): each.broker for each in log.header.leaders}
    found = []
    for partition, entries in sorted(by_partition.items()):
        entries.sort(key=lambda each: each.offset)
        of_id: dict[str, list[Entry]] = defaultdict(list)
        for entry in entries:
            if entry.transactional_id in own:
                of_id[entry.transactional_id].append(entry)
        if of_id:
            ids = tuple(
                Coordinated(transactional_id=_short(name, history), stretches=_stretches(each, clock, end_s))
                for name, each in sorted(of_id.items())
            )
            found.append(Coordinator(partition=partition, reigns=_reigns(entries, brokers, clock), ids=ids))
    return tuple(found)


def _short(name: str, history: History) -> str:
    """An id without the run that it belongs to."""
    return name.removeprefix(f"{history.run}-") or name


def _stretches(entries: Sequence[Entry], clock: Clock, end_s: float) -> tuple[Stretch, ...]:
    """States one after the other; the records of one that only changed its partitions are one stretch."""
    turns = [(state, clock(next(each).appended_ms)) for state, each in groupby(entries, lambda each: each.state)]
    ends = [began for _, began in turns[1:]]
    return tuple(
        Stretch(state=str(state), began_s=began, ended_s=max(began, ended))
        for (state, began), ended in zip(turns, [*ends, end_s], strict=True)
        if state in STANDING
    )


def _reigns(entries: Sequence[Entry], brokers: dict[tuple[int, int], int], clock: Clock) -> tuple[Reign, ...]:
    """Leaderships in which something was written: each to the first record of the next, the last to its last record."""
    turns = [(epoch, list(each)) for epoch, each in groupby(entries, lambda each: each.leader_epoch)]
    began = [clock(each[0].appended_ms) for _, each in turns]
    limits = [*began, clock(entries[-1].appended_ms)]
    return tuple(
        Reign(
            leader_epoch=epoch, broker=brokers.get((each[0].partition, epoch)), began_s=since, ended_s=max(since, until)
        )
        for (epoch, each), (since, until) in zip(turns, pairwise(limits), strict=True)
    )
