"""Planted histories whose coordinators wrote a log, correct or with a step that the state machine does not have."""

from __future__ import annotations

from dataclasses import replace

from tests.support.planted.busy import Found, busy, found
from tests.support.planted.histories import Plant
from verification.evidence.transaction_log_file import LogHeader, LogRange, TransactionLog
from verification.vocabulary.transaction_log import TOPIC_INDEX, Entry, State

#: Where the run's part of the log begins, and the partition that it is in.
FIRST, PARTITION = 40, 2
TRANSACTION = (State.ONGOING, State.PREPARE_COMMIT, State.COMPLETE_COMMIT)


def _log(run: str, *steps: tuple[State, int]) -> TransactionLog:
    """The states of one transactional id with their epochs, after Empty in epoch 0."""
    entries = [
        Entry(
            partition=PARTITION,
            offset=FIRST + number,
            transactional_id=f"{run}-tx",
            state=state,
            producer_id=77,
            epoch=epoch,
            places=frozenset() if state in (State.EMPTY, State.COMPLETE_COMMIT) else frozenset({"a-0"}),
            began_ms=5,
            appended_ms=1_000 + number,
            leader_epoch=3,
        )
        for number, (state, epoch) in enumerate([(State.EMPTY, 0), *steps])
    ]
    ranges = (LogRange(partition=PARTITION, start=FIRST, end=FIRST + len(entries)),)
    return TransactionLog(
        header=LogHeader(run=run, ranges=ranges, new_ids=(f"{run}-tx",)),
        entries=tuple(replace(each, timeout_ms=60_000) for each in entries),
    )


def _planted(run: str, *steps: tuple[State, int]) -> Plant:
    plant = busy(run).finish()
    plant.rows["transaction_log"] = [{"run": run, "log": _log(run, *steps), "failing_ms": None}]
    return plant


def coordinated(run: str) -> tuple[Plant, set[Found]]:
    """Two transactions, as a coordinator writes them."""
    return _planted(run, *[(state, 0) for state in TRANSACTION * 2]), set()


def decided_twice(run: str) -> tuple[Plant, set[Found]]:
    """A transaction is open again after it was decided."""
    steps = [(state, 0) for state in (*TRANSACTION[:2], *TRANSACTION)]
    return _planted(run, *steps), {_at(3)}


def epoch_went_back(run: str) -> tuple[Plant, set[Found]]:
    """A transaction of an epoch that was superseded."""
    return _planted(run, (State.EMPTY, 4), *[(state, 3) for state in TRANSACTION]), {_at(2)}


def _at(number: int) -> Found:
    return found("illegal-transition", None, topic_index=TOPIC_INDEX, partition=PARTITION, offset=FIRST + number)
