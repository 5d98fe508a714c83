"""Run directories made of planted data, so that reports can be tested without a cluster and without Spark.

`plan` describes one scenario; `make_run` writes a whole run's directory with the real writers of run.json,
scenario.json, history.jsonl and verdicts.json. Everything is computed from fixed numbers: two calls with the same
arguments write the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from reports.run_record import Download, Ended, Planned, RunRecord, RunState
from verification import history, transaction_log_file, verdict_file
from verification.experiment import Experiment, Floor, Isolation, Observer, Topic
from verification.history import (
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
from verification.layout import RunDirectory
from verification.transaction_log import Entry as LogEntry
from verification.transaction_log import State
from verification.transaction_log_file import LogHeader, LogLeader, LogRange, TransactionLog
from verification.verdict import (
    CoverageItem,
    Finding,
    RequirementVerdict,
    ScenarioVerdict,
    Verdict,
    Violation,
    Witness,
    WitnessOperation,
    WitnessPlace,
)

STARTED = "2026-11-21T09:00:00Z"
SECOND = 1_000_000_000
ANCHOR = 5_000 * SECOND
FAULT_BEGAN_S, FAULT_HELD_S, FAULT_HEALED_S, END_S = 6, 7, 14, 24
_COMMIT = (State.PREPARE_COMMIT, State.COMPLETE_COMMIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One scenario to plant; `verdict` None leaves verdicts.json out, `present` False the whole directory."""

    key: str
    verdict: Verdict | None = Verdict.PASS
    reason: str = "every floor was reached and no violation was found"
    claim: str = "Once the cluster has recovered, no transaction is visible in part."
    requirements: tuple[str, ...] = ("TXN-25", "ISO-01")
    findings: tuple[Finding, ...] = ()
    expects: tuple[str, ...] = ()
    convicted: bool | None = None
    topic: str = "billing-events"
    fault: str = "Crash the leader of billing-events-0 (SIGKILL), restart it after 8 s"
    coverage_have: int = 180
    present: bool = True
    ended: bool = True
    error: str = ""
    crashed: tuple[str, ...] = ()
    seed: int = 7
    release: str = "4.3.1"
    started: str = STARTED
    #: Whether the evidence has the coordinators' own log.
    coordinated: bool = False
    #: Stands for every name that a broker, a client or the environment chose.
    noise: str = ""

    @property
    def run(self) -> str:
        """The run id inside the evidence."""
        return f"r-{self.key}"[:12]


def found(
    anomaly: str = "torn-transaction", *, count: int = 3, known_bug: str | None = None, **over: object
) -> Finding:
    """A finding with min(count, 32) examples that point at operations of the planted history."""
    topic = str(over.get("topic", "billing-events"))
    detail = str(over.get("detail", "41 of 50 records visible; the 9 in billing-events-0 are not"))
    examples = tuple(
        Violation(
            anomaly=anomaly,
            process=(60 + number) % 4,
            operation=60 + number,
            index=number,
            topic=topic,
            partition=0,
            offset=1042 + number,
            observer="witness-committed",
            detail=detail,
        )
        for number in range(min(count, 32))
    )
    shown = _shown(examples[0]) if examples else None
    return Finding(anomaly=anomaly, count=count, examples=examples, consequences=12, known_bug=known_bug, witness=shown)


def _shown(of: Violation) -> Witness:
    """The minimal witness of a planted violation: its record, the marker after it, its transaction."""
    at = WitnessPlace(topic=of.topic or "", partition=0, offset=of.offset or 0, holds="record", outcome="commit")
    who = replace(at, process=of.process, operation=of.operation, index=of.index, producer_id=1000, producer_epoch=3)
    invoked = ANCHOR + FAULT_BEGAN_S * SECOND
    told = WitnessOperation(
        process=of.process or 0,
        operation=of.operation or 0,
        action="transaction",
        outcome="info",
        told="unknown",
        transactional_id=of.topic,
        records=50,
        invoked_ns=invoked,
        decided_ns=invoked + SECOND // 10,
        error_name=of.observer,
    )
    places = (
        replace(who, given_to=("uncommitted capture", str(of.topic))),
        replace(at, offset=1043, holds="commit marker"),
    )
    return Witness(why=of.detail, places=places, operations=(told,))


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
        topics=(Topic(name=plan.topic, partitions=6, replication=3, min_in_sync=2),),
        observers=(Observer(name="witness-committed", isolation=Isolation.COMMITTED),),
        floors=(Floor(name="ok-before", need=50),),
        control_expects=plan.expects,
        workload=plan.noise or "order fan-out: 4 producers, 50 records per transaction, 20 % abort",
        schedule=(f"after 3 s: {plan.fault}",),
        cluster=plan.noise or "3 brokers, combined KRaft",
        transaction_timeout_s=30.0,
        replay=f"tox -e conformance -- --kafka 4.3.1 --seed 7 -k {plan.key}",
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


def judged(plan: Plan) -> ScenarioVerdict:
    """verdicts.json of a plan that has a verdict."""
    verdict = Verdict.PASS if plan.verdict is None else plan.verdict
    have = plan.coverage_have
    return ScenarioVerdict(
        scenario=plan.key,
        run=plan.run,
        verdict=verdict,
        reason=plan.reason,
        findings=plan.findings,
        coverage=(
            CoverageItem(name="ok-before", have=180, need=50, text="operations ok before the fault"),
            CoverageItem(name="during", have=have, need=50, text="operations attempted during the fault"),
            CoverageItem(name="ok-after", have=120, need=50, text="operations ok after the fault was healed"),
            CoverageItem(name="records", have=12000, need=10000, text="records in all"),
        ),
        requirements=tuple(
            RequirementVerdict(id=id_, verdict=verdict, reason=plan.reason) for id_ in plan.requirements
        ),
        control=bool(plan.expects),
        convicted=plan.convicted,
        counts=(("records", 12000), ("transactions", 240)),
        judged_s=3.4,
        crashed=plan.crashed,
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


def make_scenario(directory: Path, plan: Plan) -> RunDirectory:
    """Write one scenario's directory."""
    run = RunDirectory(directory)
    directory.mkdir(parents=True)
    experiment(plan).write(run.experiment)
    lines = history.lines(run=plan.run, wall_clock_anchor=STARTED, anchor_ns=ANCHOR, entries=entries(plan))
    run.history.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="replace")
    if plan.coordinated:
        transaction_log_file.write(run.transaction_log, transaction_log(plan))
    if plan.verdict is not None:
        verdict_file.write(run.verdicts, judged(plan))
    for finding in plan.findings:
        folder = run.findings / finding.anomaly
        folder.mkdir(parents=True, exist_ok=True)
        rows = (json.dumps(each) + "\n" for each in log_rows(plan))
        (folder / "records.jsonl").write_text("".join(rows), encoding="utf-8")
    (directory / "README.txt").write_text("How to run it again.\n", encoding="utf-8")
    return run


def record(plans: Sequence[Plan], **changes: object) -> RunRecord:
    """run.json of these plans; `changes` are fields of RunRecord."""
    full = RunRecord(
        started=STARTED,
        seed=7,
        profile="quick",
        command="tox -e conformance -- --kafka 4.3.1 --seed 7",
        release="4.3.1",
        runtime="local",
        clients=("confluent",),
        state=RunState.FINISHED,
        suite="onceproof 0.1.0",
        planned=tuple(
            Planned(
                key=plan.key,
                scenario=plan.key,
                claim=plan.claim,
                requirements=plan.requirements,
                expected_s=25.0,
                control=bool(plan.expects),
                client="confluent",
                replay=f"tox -e conformance -- --seed 7 -k {plan.key}",
            )
            for plan in plans
        ),
        ended=tuple(Ended(key=plan.key, seconds=24.5, error=plan.error) for plan in plans if plan.ended),
        options={"kafka": "4.3.1", "profile": "quick", "seed": "7"},
        machine={"processors": "2", "memory": "7.8 GB", "system": "Linux x86_64"},
        versions={"python": "3.11.2"},
        downloads=(Download(name="kafka_2.13-4.3.1.jar", size_bytes=44_000_000, seconds=6.1, digest="sha256:0a1b"),),
        expected_s=25.0 * len(plans),
        duration_s=24.5 * len(plans),
    )
    return replace(full, **changes)  # type: ignore[arg-type]


def make_run(directory: Path, plans: Sequence[Plan], **changes: object) -> Path:
    """Write a whole run's directory and return it."""
    directory.mkdir(parents=True, exist_ok=True)
    record(plans, **changes).write(directory / "run.json")
    for plan in plans:
        if plan.present:
            make_scenario(directory / "runs" / plan.key, plan)
    return directory


CONTROL = Plan(
    key="control-retries-without-idempotence",
    verdict=Verdict.FAIL,
    reason="exactly the expected anomaly was found",
    claim="A producer that retries without idempotence writes duplicates when responses are lost.",
    requirements=(),
    findings=(found("duplicate", count=17, detail="one identity at two offsets"),),
    expects=("duplicate",),
    convicted=True,
)
FAILED = Plan(
    key="commit-without-leader",
    verdict=Verdict.FAIL,
    reason="1 acknowledged transaction is not visible",
    claim="A commit while a partition of the transaction has no leader is complete once the leader is back.",
    findings=(found("hidden-committed", count=40, known_bug="KB-16"),),
    coordinated=True,
)
UNDECIDED = Plan(
    key="paused-zombie",
    verdict=Verdict.INCONCLUSIVE,
    reason="12 of 50 operations were attempted during the fault",
    claim="A producer that was paused past its transaction timeout cannot write after its successor has started.",
    requirements=("FENCE-01",),
    coverage_have=12,
)
BROKEN = Plan(
    key="controller-crash",
    verdict=Verdict.ERROR,
    reason="broker 2 did not start within 30 s",
    claim="A crash of the active controller in mid-commit loses nothing.",
)
SMOKE = Plan(key="no-fault", claim="Without any fault every answer is true.", requirements=("TXN-25",))
INAPPLICABLE = Plan(
    key="transaction-version-2",
    verdict=Verdict.NOT_APPLICABLE,
    reason="the release does not know transaction.version 2",
    requirements=("TV2-01",),
)
EVERY_VERDICT = (SMOKE, FAILED, UNDECIDED, BROKEN, INAPPLICABLE, CONTROL)
