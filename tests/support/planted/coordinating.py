"""Planted histories whose coordinators wrote a log, correct or with a step that the state machine does not have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from tests.support.planted.busy import Found, busy, found
from tests.support.planted.files import ANCHOR
from tests.support.planted.histories import Plant
from verification.evidence.transaction_log_file import LogHeader, LogRange, TransactionLog
from verification.evidence.transaction_log_rows import Answer
from verification.vocabulary.history import Action, FaultRecord, Intent, Operation, Outcome, Phase, Sample
from verification.vocabulary.transaction_log import TOPIC_INDEX, Entry, State

#: Where the run's part of the log begins, and the partition that it is in.
FIRST, PARTITION = 40, 2
NS = 1_000_000_000
#: The operations of a busy run have lower numbers.
FIRST_ENDED = 100
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
    row = {
        "run": run,
        "log": _log(run, *steps),
        "failing_ms": None,
        "undisturbed_ms": (),
        "looks_ms": {},
        "answers": (),
    }
    plant.rows["transaction_log"] = [row]
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


def issued_twice(run: str) -> tuple[Plant, set[Found]]:
    """A second transactional id, later and in another partition, gets the producer id of the first one."""
    plant, _ = coordinated(run)
    (row,) = plant.rows["transaction_log"]
    log: TransactionLog = row["log"]
    second = replace(log.entries[0], transactional_id="late", partition=0, offset=FIRST, appended_ms=9_000)
    ranges = (LogRange(partition=0, start=FIRST, end=FIRST + 1), *log.header.ranges)
    row["log"] = TransactionLog(header=replace(log.header, ranges=ranges), entries=(second, *log.entries))
    return plant, {found("illegal-transition", None, topic_index=TOPIC_INDEX, partition=0, offset=FIRST)}


def _ended(failed_at_s: Sequence[int]) -> list[Operation]:
    """An operation of process 0 that ends each second, and fails at these times."""
    return [
        Operation(
            process=0,
            operation=FIRST_ENDED + at_s,
            action=Action.TRANSACTION,
            outcome=Outcome.FAIL if at_s in failed_at_s else Outcome.OK,
            stage="produce" if at_s in failed_at_s else "done",
            invoked_ns=at_s * NS - 900_000_000,
            decided_ns=None if at_s in failed_at_s else at_s * NS - 1,
            completed_ns=at_s * NS,
            intent=Intent.ABORT,
            transactional_id="tx-0",
        )
        for at_s in range(2, 20)
    ]


def _answers(failed_at_s: Sequence[int], zero_ms: int) -> tuple[Answer, ...]:
    """The same operations as the row of the transaction log has them."""
    return tuple(
        Answer(
            process=0,
            operation=FIRST_ENDED + at_s,
            transactional_id="tx-0",
            began_ms=zero_ms + at_s * 1_000 - 900,
            ended_ms=zero_ms + at_s * 1_000,
            failed=at_s in failed_at_s,
        )
        for at_s in range(2, 20)
    )


def _upgraded(
    run: str, rolls: Sequence[tuple[int, int]], *steps: State, moving: bool = False, failed_at_s: Sequence[int] = ()
) -> Plant:
    """A log of 20 s in which a node went down and came back some times, and one look a second (whole seconds).

    Each second process 0 ends an operation, which fails at the times in `failed_at_s`.
    """
    planted = busy(run)
    planted.operations += _ended(failed_at_s)
    looks = [(at_s, at_s if moving else 3, 90) for at_s in range(20)]
    planted.entries += [
        Sample(at_ns=at_s * NS, topic="a", partition=0, leader=1, high_watermark=high, last_stable_offset=stable)
        for at_s, stable, high in looks
    ]
    planted.entries.append(Phase(name="roll", began_ns=0, ended_ns=20 * NS))
    planted.entries += [
        FaultRecord(
            step=number,
            fault="RollNext",
            description="",
            target="node 1",
            began_ns=down * NS,
            struck_ns=down * NS,
            confirmed_ns=back * NS,
            healed_ns=back * NS,
            stage="roll",
            releases={"1": "4.3.1"},
        )
        for number, (down, back) in enumerate(rolls)
    ]
    plant = planted.finish()
    plant.experiment = replace(plant.experiment, nodes={"1": "4.2.1"})
    zero_ms = round(datetime.fromisoformat(ANCHOR).timestamp() * 1_000)
    log = _log(run, *[(state, 0) for state in steps])
    entries = tuple(replace(each, appended_ms=zero_ms + each.appended_ms) for each in log.entries)
    ups = zip((0, *(back for _, back in rolls)), (*(down for down, _ in rolls), 20), strict=True)
    plant.rows["transaction_log"] = [
        {
            "run": run,
            "log": replace(log, entries=entries),
            "failing_ms": None,
            "undisturbed_ms": tuple((zero_ms + up * 1_000, zero_ms + down * 1_000) for up, down in ups),
            "looks_ms": {"a-0": [(zero_ms + at_s * 1_000, stable, high) for at_s, stable, high in looks]},
            "answers": _answers(failed_at_s, zero_ms),
        }
    ]
    return plant


def completed_late(run: str) -> tuple[Plant, set[Found]]:
    """The second transaction is decided and never completed, 9 s long while every node is up; the first one was."""
    return _upgraded(run, [(3, 4), (13, 14)], *TRANSACTION, *TRANSACTION[:2]), {_at(5, "stuck-lso")}


def completed_in_time(run: str) -> tuple[Plant, set[Found]]:
    """The same, but never longer than 4 s in a row: nodes go down again and again."""
    return _upgraded(run, [(3, 4), (8, 9), (13, 14), (18, 19)], *TRANSACTION, *TRANSACTION[:2]), set()


def released_in_time(run: str) -> tuple[Plant, set[Found]]:
    """The same as at first, but the last stable offset goes on: only the coordinator's own record is late."""
    return _upgraded(run, [(3, 4), (13, 14)], *TRANSACTION, *TRANSACTION[:2], moving=True), set()


def refused(run: str) -> tuple[Plant, set[Found]]:
    """All operations fail for 4.9 s, in which every node is up."""
    plant = _upgraded(run, [(3, 4), (13, 14)], *TRANSACTION, failed_at_s=range(6, 11))
    return plant, {("stranded-producer", 0, FIRST_ENDED + 10, None, None, None, None, None)}


def refused_at_times(run: str) -> tuple[Plant, set[Found]]:
    """One operation in a row of failed ones ended well, and failed ones go on while a node is down."""
    failed = (*range(5, 9), *range(10, 13), *range(15, 20))
    return _upgraded(run, [(3, 4), (13, 14), (17, 18)], *TRANSACTION, failed_at_s=failed), set()


def _at(number: int, anomaly: str = "illegal-transition") -> Found:
    return found(anomaly, None, topic_index=TOPIC_INDEX, partition=PARTITION, offset=FIRST + number)
