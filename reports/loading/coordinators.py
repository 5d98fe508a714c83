"""Read coordinators from the transaction log: their leaders, and the unfinished states of each transactional id.

The leader of a partition of `__transaction_state` coordinates all transactional ids that hash to it. The leader epoch
of a record tells the leadership that wrote it. The broker is known where the metadata was asked; else only the leader
epoch is known. A state lasts from its record to the next record of its id, by the brokers' clocks. States without an
open transaction are left out.

Limit: the append of a record may have failed (COORD-09), so its state was never in force. A broker whose clock differs
from the harness's shifts its records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import groupby, pairwise

from reports.model.timeline import Coordinator, Leadership, StateSpan, TransactionalIdStates
from verification.evidence.transaction_log_file import TransactionLog
from verification.vocabulary.history import History, Operation
from verification.vocabulary.transaction_log import Entry, State

#: The states in which a transaction is open, or decided and not complete.
UNFINISHED = frozenset({State.ONGOING, State.PREPARE_COMMIT, State.PREPARE_ABORT})

#: A record's time in milliseconds of the wall clock → seconds since the history's zero.
Clock = Callable[[int], float]


def coordinators(history: History, log: TransactionLog, clock: Clock, end_s: float) -> tuple[Coordinator, ...]:
    """The coordinators of the run's transactional ids by partition; the last state of an id lasts until `end_s`."""
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
                TransactionalIdStates(transactional_id=_short(name, history), spans=_spans(each, clock, end_s))
                for name, each in sorted(of_id.items())
            )
            found.append(Coordinator(partition=partition, leaderships=_leaderships(entries, brokers, clock), ids=ids))
    return tuple(found)


def _short(name: str, history: History) -> str:
    """A transactional id without the run prefix."""
    return name.removeprefix(f"{history.run}-") or name


def _spans(entries: Sequence[Entry], clock: Clock, end_s: float) -> tuple[StateSpan, ...]:
    """The states one after the other; successive records of one state are one span."""
    turns = [(state, clock(next(each).appended_ms)) for state, each in groupby(entries, lambda each: each.state)]
    ends = [began for _, began in turns[1:]]
    return tuple(
        StateSpan(state=str(state), began_s=began, ended_s=max(began, ended))
        for (state, began), ended in zip(turns, [*ends, end_s], strict=True)
        if state in UNFINISHED
    )


def _leaderships(entries: Sequence[Entry], brokers: dict[tuple[int, int], int], clock: Clock) -> tuple[Leadership, ...]:
    """The leaderships that wrote: each lasts to the first record of the next, the last one to its last record."""
    turns = [(epoch, list(each)) for epoch, each in groupby(entries, lambda each: each.leader_epoch)]
    began = [clock(each[0].appended_ms) for _, each in turns]
    limits = [*began, clock(entries[-1].appended_ms)]
    return tuple(
        Leadership(
            leader_epoch=epoch, broker=brokers.get((each[0].partition, epoch)), began_s=since, ended_s=max(since, until)
        )
        for (epoch, each), (since, until) in zip(turns, pairwise(limits), strict=True)
    )
