"""A planted upgrade of two nodes: two rolls, of which one leaves no proof, and a feature level, under two clients.

The workload runs from 2 to 20 s, and every producer commits each half second. Process 0 of java commits nothing from 5 to
8 s and gets a fatal error at 9 s, after which process 4 goes on with its id. The producer of confluent stands still from
15 s on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.support.plans import ANCHOR, SECOND, Plan
from tests.support.planted.evidence import experiment
from verification.vocabulary.experiment import Experiment
from verification.vocabulary.history import (
    Action,
    Entry,
    FaultRecord,
    History,
    Intent,
    Operation,
    Outcome,
    Phase,
    ProcessRecord,
)

OLD, NEW = "4.1.2", "4.2.0"
STAGES = (("roll 1 of 2", 4.0, 10.0), ("roll 2 of 2", 10.0, 14.0), ("finalize metadata.version", 14.0, 16.0))
FEATURE_LEVELS = {"feature metadata.version": "27"}


def upgraded(plan: Plan) -> Experiment:
    """scenario.json of the plan as an upgrade."""
    planned = experiment(plan)
    return replace(planned, release=NEW, nodes={"1": OLD, "2": OLD}, versions={**planned.versions, **FEATURE_LEVELS})


def at_ns(at_s: float) -> int:
    """A time of the history."""
    return ANCHOR + round(at_s * SECOND)


def upgrade_entries(plan: Plan) -> Iterator[Entry]:
    """The history; names from outside are the plan's noise, where it has one."""
    spans = (("set up", 0.0, 1.0), ("start the workload", 1.0, 2.0), ("await steady", 2.0, 4.0), *STAGES)
    for name, began_s, ended_s in (*spans, ("await recovery", 16.0, 17.0), ("after-window", 17.0, 20.0)):
        yield Phase(name=name, began_ns=at_ns(began_s), ended_ns=at_ns(ended_s))
    yield _process(0, "java", "one", 1.0, 9.0, "retired")
    yield _process(4, "java", "one", 9.2, 20.0, "stopped")
    yield _process(1, "java", "two", 1.0, 20.0, "stopped")
    yield _process(2, "confluent", "three", 1.0, 20.0, "killed")
    yield from _commits(0, "one", 2.5, 5.0)
    yield from _commits(0, "one", 8.0, 8.5)
    yield operation(0, "one", 8.6, 9.0, outcome=Outcome.FAIL, error=(plan.noise or "REQUEST_TIMED_OUT", 7), fatal=True)
    yield from _commits(4, "one", 9.5, 20.0)
    yield from _commits(1, "two", 2.5, 20.0)
    yield operation(1, "two", 11.1, 11.2, intent=Intent.ABORT)
    yield from _commits(2, "three", 2.5, 15.0)
    yield _step(0, "RollNext", "roll 1 of 2", 4.1, 7.0, releases={"1": NEW}, error=plan.noise)
    yield _step(1, "RollNext", "roll 2 of 2", 10.5, None, releases={"2": NEW})
    yield _step(2, "SetFeatureLevel", "finalize metadata.version", 14.5, 14.8, levels={"metadata.version": 29})


def upgrade_history(plan: Plan) -> History:
    """The history as a value."""
    return History(run=plan.run, wall_clock_anchor="", anchor_ns=ANCHOR, entries=tuple(upgrade_entries(plan)))


def _process(process: int, client: str, name: str, started_s: float, ended_s: float, end: str) -> ProcessRecord:
    return ProcessRecord(
        process=process,
        role="producer",
        client=client,
        site="app",
        transactional_id=name,
        started_ns=at_ns(started_s),
        ended_ns=at_ns(ended_s),
        end=end,
    )


def _commits(process: int, name: str, first_s: float, last_s: float) -> Iterator[Operation]:
    """A commit each half second, up to and with the last; each takes 0.1 s from the request to the answer."""
    for half in range(round((last_s - first_s) * 2) + 1):
        ended_s = first_s + half / 2
        yield operation(process, name, ended_s - 0.2, ended_s)


def operation(
    process: int,
    name: str,
    invoked_s: float,
    ended_s: float,
    *,
    intent: Intent = Intent.COMMIT,
    outcome: Outcome = Outcome.OK,
    error: tuple[str, int] | None = None,
    fatal: bool = False,
) -> Operation:
    """A transaction; one without an error was decided 0.1 s before its end."""
    return Operation(
        process=process,
        operation=round(ended_s * 10),
        action=Action.TRANSACTION,
        outcome=outcome,
        stage="done" if error is None else "produce",
        invoked_ns=at_ns(invoked_s),
        decided_ns=at_ns(ended_s - 0.1) if error is None else None,
        completed_ns=at_ns(ended_s),
        intent=intent,
        transactional_id=name,
        records=10,
        error_name=error[0] if error else None,
        error_code=error[1] if error else None,
        fatal=fatal,
    )


def _step(
    step: int,
    fault: str,
    stage: str,
    began_s: float,
    confirmed_s: float | None,
    *,
    releases: dict[str, str] | None = None,
    levels: dict[str, int] | None = None,
    error: str = "",
) -> FaultRecord:
    return FaultRecord(
        step=step,
        fault=fault,
        description=f"once every replica is in sync: {fault} of step {step}, for 5 s once it is confirmed",
        target=f"node {step + 1}",
        began_ns=at_ns(began_s),
        struck_ns=at_ns(began_s),
        applied_ns=at_ns(began_s) + 1,
        confirmed_ns=None if confirmed_s is None else at_ns(confirmed_s),
        proof=None if confirmed_s is None else f"step {step} shows",
        healed_ns=at_ns((confirmed_s or began_s) + 1),
        error=error or None,
        stage=stage,
        releases=releases or {},
        levels=levels or {},
    )
