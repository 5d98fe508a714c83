"""The evidence of a plan: its experiment, the history of its clients, its log, and what its coordinators wrote."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from tests.support.plans import ANCHOR, END_S, FAULT_BEGAN_S, FAULT_HEALED_S, FAULT_HELD_S, SECOND, STARTED, Plan
from verification.evidence.transaction_log_file import LogHeader, LogLeader, LogRange, TransactionLog
from verification.vocabulary.experiment import Experiment, ExperimentTopic, Floor, IsolationLevel, Observer
from verification.vocabulary.history import (
    NO_LEADER,
    UNSEEN,
    Action,
    Entry,
    FaultRecord,
    Intent,
    Operation,
    Outcome,
    Phase,
    ProcessRecord,
    Sample,
)
from verification.vocabulary.transaction_log import Entry as LogEntry
from verification.vocabulary.transaction_log import State

_COMMIT = (State.PREPARE_COMMIT, State.COMPLETE_COMMIT)


def experiment(plan: Plan) -> Experiment:
    """scenario.json of a plan."""
    return Experiment(
        run=plan.run,
        scenario=plan.key,
        claim=plan.claim,
        requirements=plan.requirements,
        seed=plan.seed,
        started=plan.started,
        release=plan.release,
        runtime="local",
        client="confluent",
        topics=(ExperimentTopic(name=plan.topic, partitions=6, replication=3, min_in_sync=2),),
        observers=(Observer(name="witness-committed", isolation=IsolationLevel.COMMITTED),),
        floors=(Floor(name="ok-before", need=50),),
        control_expects=plan.expects,
        workload=plan.noise or "order fan-out: 4 producers, 50 records per transaction, 20 % abort",
        schedule=(f"after 3 s: {plan.fault}",),
        cluster=plan.noise or "3 brokers, combined KRaft",
        transaction_timeout_s=30.0,
        replay=plan.replay or f"tox -e conformance -- --kafka 4.3.1 --seed 7 -k {plan.key}",
        versions={
            "confluent": "confluent-kafka 2.16.1 (librdkafka 2.16.0)",
            "confluent protocol": "TV1",
            "java": "21.0.9",
            "digest kafka_2.13-4.3.1.jar": "sha256:0a1b2c3d",
            **({plan.noise: plan.noise, f"digest {plan.noise}": plan.noise} if plan.noise else {}),
        },
        configuration={"acks": "all", "enable.idempotence": "true", **({plan.noise: plan.noise} if plan.noise else {})},
    )


def entries(plan: Plan) -> Iterator[Entry]:
    """A plausible history: four producers, ten operations a second, one fault, a lag while it lasts."""
    for process in range(4):
        yield ProcessRecord(
            process=process,
            role=plan.noise or "producer",
            client="confluent",
            site="app",
            transactional_id=_owner(plan, process),
            group=None,
            started_ns=ANCHOR,
            ended_ns=ANCHOR + END_S * SECOND,
            end="closed",
        )
    for number in range(END_S * 10):
        yield _operation(plan, number)
    yield FaultRecord(
        step=1,
        fault="crash-broker",
        description=plan.fault,
        target="broker 2, leader of billing-events-0",
        began_ns=ANCHOR + FAULT_BEGAN_S * SECOND,
        applied_ns=ANCHOR + FAULT_BEGAN_S * SECOND + 1,
        confirmed_ns=ANCHOR + FAULT_HELD_S * SECOND if plan.coverage_have >= 50 else None,
        proof=plan.noise or "leader of billing-events-0 moved from broker 2 to broker 3",
        error=plan.noise or None,
        healed_ns=ANCHOR + FAULT_HEALED_S * SECOND,
    )
    phases = (("start", 0, 2), ("steady", 2, 6), ("nemesis", 6, 14), ("recover", 14, 20), ("drain", 20, 24))
    for name, began, ended in phases:
        yield Phase(name=plan.noise or name, began_ns=ANCHOR + began * SECOND, ended_ns=ANCHOR + ended * SECOND)
    for half in range(END_S * 2):
        lag = 40 + (half - 12) * 30 if 12 <= half < 32 else half % 3 * 20
        yield Sample(
            at_ns=ANCHOR + half * SECOND // 2,
            topic=plan.topic,
            partition=0,
            leader={14: NO_LEADER, 15: UNSEEN}.get(half, 2 if half < 14 else 3),
            high_watermark=half * 50,
            last_stable_offset=max(half * 50 - lag, 0),
        )


def _owner(plan: Plan, number: int) -> str:
    return f"{plan.run}-{number % 4}{plan.noise}"


def _operation(plan: Plan, number: int) -> Operation:
    invoked = ANCHOR + number * SECOND // 10
    in_fault = FAULT_BEGAN_S * 10 <= number < (FAULT_BEGAN_S + 3) * 10
    outcome = Outcome.OK if not in_fault else (Outcome.INFO, Outcome.FAIL, Outcome.FAIL, Outcome.OK)[number % 4]
    return Operation(
        process=number % 4,
        operation=number,
        action=Action.TRANSACTION,
        outcome=outcome,
        stage="done" if outcome is Outcome.OK else "commit",
        invoked_ns=invoked,
        decided_ns=invoked + SECOND // 20,
        completed_ns=None if outcome is Outcome.INFO else invoked + SECOND // 10,
        intent=Intent.ABORT if number % 5 == 0 else Intent.COMMIT,
        transactional_id=_owner(plan, number),
        records=50,
        error_name="NOT_COORDINATOR" if outcome is Outcome.FAIL else None,
        producer_id=1000 + number % 4,
        producer_epoch=3,
    )


def log_rows(plan: Plan) -> Iterator[dict[str, object]]:
    """The log around the first example: its transaction's records, one of them hidden, and a marker."""
    for index in range(20):
        yield {
            "topic": f"{plan.run}-{plan.topic}",
            "partition": 0,
            "offset": 1040 + index,
            "in_log": True,
            "outcome": plan.noise or ("abort" if index == 2 else "commit"),
            "producer_id": 1000,
            "producer_epoch": 3,
            "process": 0,
            "operation": 60,
            "index": index,
            "told": plan.noise or "committed",
            "committed": 0 if index == 2 else 1,
            "uncommitted": 1,
            "received": 2,
        }
    marker = {"in_log": True, "control": plan.noise or "abort", "producer_id": 1000, "producer_epoch": 3}
    yield {"topic": plan.topic, "partition": 0, "offset": 1044, **marker}


def transaction_log(plan: Plan) -> TransactionLog:
    """What two coordinators wrote of the planted history; one of them moves with the fault, and completes late."""
    written: dict[int, list[LogEntry]] = {0: [], 1: []}
    anchor_ms = int(datetime.fromisoformat(STARTED).timestamp() * 1_000)

    def write(number: int, state: State, at_ms: int) -> None:
        log = written[number % 2]
        moved = number % 2 == 0 and at_ms >= FAULT_HELD_S * 1_000
        entry = LogEntry(
            partition=number % 2,
            offset=0,
            transactional_id=_owner(plan, number),
            state=state,
            producer_id=1_000 + number % 4,
            epoch=3,
            leader_epoch=6 if moved else 5,
            appended_ms=anchor_ms + at_ms,
        )
        log.append(entry)

    for number in range(END_S * 2):
        began_ms = number * 500
        late_ms = FAULT_HEALED_S * 1_000 - began_ms if number in (12, 14) else 300
        ends = (State.PREPARE_ABORT, State.COMPLETE_ABORT) if number % 5 == 0 else _COMMIT
        for state, after_ms in zip((State.ONGOING, *ends), (10, 50, late_ms), strict=True):
            write(number, state, began_ms + after_ms)
    # What was still open when its coordinator fell was completed by the next one: in order of time.
    entries = tuple(
        replace(entry, offset=offset)
        for log in written.values()
        for offset, entry in enumerate(sorted(log, key=lambda each: each.appended_ms))
    )
    header = LogHeader(
        run=plan.run,
        ranges=tuple(LogRange(partition=at, start=0, end=len(log)) for at, log in written.items()),
        leaders=(
            LogLeader(partition=0, leader_epoch=5, broker=2),
            LogLeader(partition=0, leader_epoch=6, broker=3),
        ),
    )
    return TransactionLog(header=header, entries=entries)
