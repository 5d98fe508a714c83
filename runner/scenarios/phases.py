"""Runs the phases of a scenario, top-down.

    set up → start the workload → await steady → nemesis runs the schedule and heals → await recovery → after-window
    → drain the pipeline → stop → await LSO = high watermark within its bound → fence → drain → capture

Log lines, the timeline and error messages use the name of each phase, and each phase leaves an entry in the history.
Nothing is judged here: a run ends with evidence on disk, and the judge reads nothing else. After any error faults are
healed, clients end, and the evidence so far is sealed. A node that is lost ends the schedule, and the other nodes take the
run to its end: whether its release is to blame is for the judge, and so is every record.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from chaos.errors import NodeLostError
from chaos.nemesis import Nemesis
from chaos.schedule import stages
from fixtures.errors import EnvironmentProblemError
from fixtures.waiting import WaitTimeoutError, await_until
from verification.spark.capture import capture

if TYPE_CHECKING:
    from fixtures.workloads.counters import Progress
    from runner.scenarios.scenario_run import ScenarioRun
    from verification.evidence.run_directory import RunDirectory

#: The phase of a schedule without named stages.
NEMESIS = "nemesis"
#: Clients connect, initialise and answer 50 operations within seconds; a minute is for a machine under heavy load.
STEADY_WITHIN_S = 60.0
#: After a heal a broker restarts in 5 s and rejoins the in-sync set in 5 s more. A loaded machine takes several times that.
RECOVERY_WITHIN_S = 90.0
#: Floors of operations and records are usually met within 10 s of recovery. The judge reports a floor that is not met.
AFTER_WINDOW_WITHIN_S = 60.0
#: With inputs to copy: a pipeline is watched for longer than it may stand still (`evidence/stalls/standstills.py`).
COPIED_WITHIN_S = 120.0
#: So long the window goes on while operations still come in that a floor lacks. Next to two other clusters on two slow
#: processors 177 of 200 transactions came in 60 s; four times that is a rate at which a run says nothing about Kafka.
SLOW_AFTER_WINDOW_WITHIN_S = 240.0
#: Some ten clients work: on a busy machine, too, one of them ends an operation within this time.
STANDSTILL_S = 10.0
#: The floor counts records of ok operations; the live count also has acknowledged records of failed operations.
ACKNOWLEDGED_PER_COUNTED = 1.1
#: A client ends its operation in flight within its own deadline (15 s), then closes.
STOP_WITHIN_S = 30.0
#: Observers read the remaining records, a few thousand.
DRAIN_WITHIN_S = 30.0


def run_scenario(scenario_run: ScenarioRun) -> RunDirectory:
    """Run one scenario and return its evidence. Errors are about the environment or us, never about the subject."""
    try:
        with scenario_run.phase("set up"):
            scenario_run.set_up()
        with scenario_run.phase("start the workload"):
            scenario_run.start_workload()
        with scenario_run.phase("await steady"):
            steady = await_steady(scenario_run)
            if steady:
                scenario_run.await_turn()
        if steady:
            run_schedule(scenario_run)
        else:
            take_evidence(scenario_run)
    except BaseException as error:
        with _as_note_on(error):
            scenario_run.close()
        raise
    scenario_run.close()
    return scenario_run.directory


def run_schedule(scenario_run: ScenarioRun) -> None:
    """Let the schedule strike the clients, watch them recover, and take the evidence; a lost node ends the schedule."""
    try:
        inject_faults(scenario_run)
        with scenario_run.phase("await recovery"):
            scenario_run.recover(timeout_s=RECOVERY_WITHIN_S)
        with scenario_run.phase("after-window"):
            await_after_window(scenario_run)
    except NodeLostError as lost:
        scenario_run.tell(f"ends early: {str(lost).splitlines()[0]}")
        try:
            take_evidence(scenario_run)
        except Exception as error:
            # Too few nodes are left, so there is nothing to judge.
            lost.add_note(f"the other nodes could not end the run: {error}")
            raise lost from error
    else:
        take_evidence(scenario_run)


@contextmanager
def _as_note_on(first: BaseException) -> Iterator[None]:
    """Turn a further error into a note on the first one, which is the one to report."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - nothing is swallowed: it is reported with the first one
        first.add_note(f"closing: {error}")


def take_evidence(scenario_run: ScenarioRun) -> None:
    """Bring the clients to an end, and read everything that they wrote."""
    quiesce(scenario_run)
    # Not while the next scenario begins: under its load the first capture took 70 s instead of 15 s.
    with scenario_run.phase("capture"):
        scenario_run.pin()
        spark = scenario_run.lane.spark()
        with scenario_run.lane.capturing:
            capture(spark, scenario_run.directory, **scenario_run.capture_arguments())
        scenario_run.clear()


def await_steady(scenario_run: ScenarioRun) -> bool:
    """Wait until clients work and the before-window is full, so that the fault strikes running clients.

    A pipeline must have copied enough as well. False if that does not come although another client can work on the cluster:
    the run is judged as far as it went. Raises EnvironmentProblemError if that one cannot work either.
    """
    need, copies = scenario_run.floor("ok_before"), scenario_run.floor("copied_before")
    pipeline = scenario_run.surroundings.pipeline
    began = time.monotonic()

    def steady() -> bool:
        if copies:
            # Without its pipeline no fault strikes anything. Other clients that fail have successors, and are named later.
            scenario_run.require_working()
            if scenario_run.workload.given_up:
                return True
        worked = scenario_run.workload.progress().ok >= need
        long_enough = time.monotonic() - began >= scenario_run.scenario.observe_s
        return worked and long_enough and (not copies or scenario_run.copied() >= copies)

    def seen() -> str:
        progress = str(scenario_run.workload.progress())
        if not copies:
            return progress
        log, problem = scenario_run.workload.pipeline_log(), scenario_run.surroundings.problem()
        said = f"its log ends: {log}" if log else "its log is empty"
        return f"{scenario_run.copied()} offsets; {f'{problem} ' if problem else ''}{said}; {progress}"

    try:
        await_until(
            steady,
            f"{f'{copies} offsets of outputs from the pipeline, and ' if copies else ''}{need} operations answered ok",
            timeout_s=pipeline.ready_within_s if copies and pipeline else STEADY_WITHIN_S,
            last=seen,
        )
    except WaitTimeoutError as late:
        scenario_run.try_another_client(late)
        return False
    return not (copies and scenario_run.workload.given_up)


def inject_faults(scenario_run: ScenarioRun) -> None:
    """Let the nemesis run the schedule, a phase for each stage of it; heal the links, even after an error."""
    nemesis = Nemesis(
        arena=scenario_run.arena,
        record=scenario_run.record_fault,
        tell=scenario_run.tell,
        wait=scenario_run.hold,
        attempted=lambda: scenario_run.workload.progress().attempted,
        ended=lambda: scenario_run.workload.progress().ended,
        meets=scenario_run.floor("attempted_during"),
        await_whole=lambda: scenario_run.recover(timeout_s=RECOVERY_WITHIN_S),
    )
    first = 0
    try:
        for stage, steps in stages(scenario_run.scenario.schedule) or (("", ()),):
            with scenario_run.phase(stage or NEMESIS):
                nemesis.run(steps, first=first)
            first += len(steps)
    finally:
        scenario_run.arena.cluster.links.heal()


def quiesce(scenario_run: ScenarioRun, *, drain_within_s: float = DRAIN_WITHIN_S) -> None:
    """Let a pipeline empty its own topics, end the writers, wait until readers are not held back, fence, drain."""
    if given_up := scenario_run.workload.given_up:
        scenario_run.try_another_client(EnvironmentProblemError(" ".join(given_up)))
    if scenario_run.experiment().pipeline is not None:
        with scenario_run.phase("drain the pipeline"):
            scenario_run.drain_pipeline(feeder_within_s=STOP_WITHIN_S)
    with scenario_run.phase("stop"):
        scenario_run.workload.stop(timeout_s=STOP_WITHIN_S)
    for sentence in scenario_run.workload.ended_instances():
        scenario_run.tell(sentence)
    with scenario_run.phase("await LSO = high watermark"):
        scenario_run.settle(before_fencing=True)
    with scenario_run.phase("fence"):
        scenario_run.fence()
    with scenario_run.phase("drain"):
        scenario_run.drain(timeout_s=drain_within_s)


def await_after_window(scenario_run: ScenarioRun) -> None:
    """Run on until every floor is met, or the bound has passed: the judge reports too little coverage.

    Copiers must also have copied all inputs from before the heal: only then have successors taken over every partition.
    On a slow machine the bound is longer, as long as what the floors lack becomes less.
    """
    healed = scenario_run.workload.progress()
    began = less_at = time.monotonic()
    marks = scenario_run.input_ends()
    least = _missing(scenario_run, healed, healed)
    usual_s = COPIED_WITHIN_S if marks else AFTER_WINDOW_WITHIN_S
    while True:
        missing = _missing(scenario_run, healed, scenario_run.workload.progress())
        now = time.monotonic()
        if missing < least:
            least, less_at = missing, now
        waited_s = now - began
        if not missing and waited_s >= scenario_run.scenario.observe_s and not scenario_run.input_lag(marks):
            return
        comes_in = missing > 0 and now - less_at < STANDSTILL_S
        if waited_s >= (SLOW_AFTER_WINDOW_WITHIN_S if comes_in else usual_s):
            return
        # The condition is checked ten times a second; the loop has a bound.
        time.sleep(0.1)


def _missing(scenario_run: ScenarioRun, healed: Progress, now: Progress) -> float:
    """The operations and records that the floors lack which can be counted while clients work, all together."""
    reached = {
        "ok_after": now.ok - healed.ok,
        "records": now.records / ACKNOWLEDGED_PER_COUNTED,
        "transactions": now.transactions,
        "transactions_after": now.transactions - healed.transactions,
    }
    return sum(max(0.0, scenario_run.floor(name) - count) for name, count in reached.items())
