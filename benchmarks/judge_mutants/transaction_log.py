"""Mutators of `__transaction_state`: a record is changed, missing, or added.

They change only bases with a transaction log. Those are runs without faults, so no append can have failed, and no wrong
step is excused by that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any

from benchmarks.judge_mutants.base import Base
from benchmarks.judge_mutants.mutant import Breaks, Draft, NothingToChangeError, mutator
from verification.evidence.transaction_log_file import TransactionLog
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.transaction_log import Entry, State

ILLEGAL = frozenset({Anomaly.ILLEGAL_TRANSITION})
OPPOSITES = {
    State.PREPARE_COMMIT: State.PREPARE_ABORT,
    State.PREPARE_ABORT: State.PREPARE_COMMIT,
    State.COMPLETE_COMMIT: State.COMPLETE_ABORT,
    State.COMPLETE_ABORT: State.COMPLETE_COMMIT,
}
DECIDED = frozenset({State.PREPARE_COMMIT, State.PREPARE_ABORT})
COMPLETE = frozenset({State.COMPLETE_COMMIT, State.COMPLETE_ABORT})
#: A partition that no run has.
ELSEWHERE = "elsewhere-0"


def _log(draft: Draft) -> TransactionLog:
    """The draft's transaction log; raises NothingToChangeError if there is none."""
    if not draft.rows["transaction_log"]:
        raise NothingToChangeError
    log: TransactionLog = draft.rows["transaction_log"][0]["log"]
    return log


def _histories(draft: Draft) -> list[list[Entry]]:
    """The records of each transactional id that has more than one, in order."""
    found: dict[str, list[Entry]] = defaultdict(list)
    for entry in sorted(_log(draft).entries, key=lambda each: each.offset):
        found[entry.transactional_id].append(entry)
    return [each for each in found.values() if len(each) > 1]


def _steps(draft: Draft) -> list[tuple[Entry, Entry]]:
    """Every record with the one that follows it in its history."""
    return [step for history in _histories(draft) for step in pairwise(history)]


def _write(draft: Draft, entries: Iterable[Entry], *, partition: int = -1, longer: int = 0) -> None:
    """Replace the records of the log; the end of a partition moves."""
    (row,) = draft.rows["transaction_log"]
    log: TransactionLog = row["log"]
    ranges = tuple(
        replace(each, end=each.end + longer) if each.partition == partition else each for each in log.header.ranges
    )
    written = TransactionLog(header=replace(log.header, ranges=ranges), entries=tuple(entries))
    draft.rows["transaction_log"] = [{**row, "log": written}]


def _say(draft: Draft, entry: Entry, **fields: Any) -> None:
    """Change fields of a record."""
    _write(draft, [replace(each, **fields) if each is entry else each for each in _log(draft).entries])


def _unwrite(draft: Draft, entry: Entry) -> None:
    """Remove a record as if it had never been written: later records of the partition move one offset down."""
    kept = [
        replace(each, offset=each.offset - 1)
        if each.partition == entry.partition and each.offset > entry.offset
        else each
        for each in _log(draft).entries
        if each is not entry
    ]
    _write(draft, kept, partition=entry.partition, longer=-1)


def _ended_otherwise(_: Base, draft: Draft) -> Breaks:
    """The decision about a transaction, or its completion, is the opposite of the other one."""
    entry = draft.pick([each for step in _steps(draft) for each in step if each.state in OPPOSITES])
    _say(draft, entry, state=OPPOSITES[entry.state])
    return ILLEGAL


def _never_decided(_: Base, draft: Draft) -> Breaks:
    """A transaction is complete right after it was open."""
    _unwrite(draft, draft.pick([entry for entry, _ in _steps(draft) if entry.state in DECIDED]))
    return ILLEGAL


def _never_completed(_: Base, draft: Draft) -> Breaks:
    """A record follows a decision before the transaction is complete."""
    _unwrite(draft, draft.pick([entry for entry, _ in _steps(draft) if entry.state in COMPLETE]))
    return ILLEGAL


def _begun_in_the_middle(_: Base, draft: Draft) -> Breaks:
    """The history of a new id does not begin with its initialisation."""
    _unwrite(draft, draft.pick([first for first, second, *_ in _histories(draft) if second.state is not State.EMPTY]))
    return ILLEGAL


def _epoch_went_back(_: Base, draft: Draft) -> Breaks:
    """A record has a higher epoch than the one after it."""
    entry, following = draft.pick([step for step in _steps(draft) if step[0].producer_id == step[1].producer_id])
    _say(draft, entry, epoch=following.epoch + 1)
    return ILLEGAL


def _producer_went_back(_: Base, draft: Draft) -> Breaks:
    """One record has another producer id, and the next one has the old one again."""
    entry, _following = draft.pick([step for step in _steps(draft) if step[0].producer_id == step[1].producer_id])
    _say(draft, entry, producer_id=entry.producer_id + 1_000_000)
    return ILLEGAL


def _left_out(_: Base, draft: Draft) -> Breaks:
    """A partition that was in the transaction is missing when it is decided, or left it before."""
    steps = [step for step in _steps(draft) if step[0].state is State.ONGOING and step[0].places & step[1].places]
    entry, following = draft.pick(steps)
    gone = draft.pick(sorted(entry.places & following.places))
    _say(draft, following, places=following.places - {gone})
    return ILLEGAL


def _decided_for_another(_: Base, draft: Draft) -> Breaks:
    """A transaction is decided for a partition that was not in it, or is over and has one."""
    entry = draft.pick([each for _, each in _steps(draft) if each.state in DECIDED | COMPLETE])
    _say(draft, entry, places=entry.places | {ELSEWHERE})
    return ILLEGAL


def _began_at_another_time(_: Base, draft: Draft) -> Breaks:
    """The transaction that is decided began at another time than the one that was open."""
    entry = draft.pick([each for before, each in _steps(draft) if before.state is State.ONGOING])
    _say(draft, entry, began_ms=entry.began_ms + 1)
    return ILLEGAL


def _never_written(_: Base, draft: Draft) -> Breaks:
    """A record has a state that coordinators only pass through in memory."""
    _say(draft, draft.pick(_log(draft).entries), state=State.PREPARE_EPOCH_FENCE)
    return ILLEGAL


def _compacted(_: Base, draft: Draft) -> Breaks:
    """Older records of an id are gone, as after compaction."""
    history = draft.pick(_histories(draft))
    older = history[:-1]
    gone = {id(each) for each in draft.random.sample(older, draft.random.randint(1, len(older)))}
    _write(draft, [each for each in _log(draft).entries if id(each) not in gone])
    return ()


def _id_forgotten(_: Base, draft: Draft) -> Breaks:
    """An id whose last transaction is over was removed: a tombstone follows."""
    last = draft.pick([each[-1] for each in _histories(draft) if each[-1].state in COMPLETE | {State.EMPTY}])
    (end,) = [each.end for each in _log(draft).header.ranges if each.partition == last.partition]
    tombstone = Entry(
        partition=last.partition,
        offset=end,
        transactional_id=last.transactional_id,
        state=State.DEAD,
        leader_epoch=last.leader_epoch,
        appended_ms=last.appended_ms + 1,
    )
    _write(draft, [*_log(draft).entries, tombstone], partition=last.partition, longer=1)
    return ()


def _another_coordinator(_: Base, draft: Draft) -> Breaks:
    """From some record on, another broker leads the partition."""
    entry = draft.pick(_log(draft).entries)
    later = [
        replace(each, leader_epoch=each.leader_epoch + 1)
        if each.partition == entry.partition and each.offset >= entry.offset
        else each
        for each in _log(draft).entries
    ]
    _write(draft, later)
    return ()


def _other_ids_unknown(_: Base, draft: Draft) -> Breaks:
    """The capture does not say which ids were new, so their histories may have begun earlier."""
    log = _log(draft)
    (row,) = draft.rows["transaction_log"]
    draft.rows["transaction_log"] = [{**row, "log": replace(log, header=replace(log.header, new_ids=()))}]
    return ()


MUTATORS = tuple(
    mutator(make)
    for make in (
        _ended_otherwise,
        _never_decided,
        _never_completed,
        _begun_in_the_middle,
        _epoch_went_back,
        _producer_went_back,
        _left_out,
        _decided_for_another,
        _began_at_another_time,
        _never_written,
        _compacted,
        _id_forgotten,
        _another_coordinator,
        _other_ids_unknown,
    )
)
