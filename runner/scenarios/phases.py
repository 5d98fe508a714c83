"""The method of the experiment, top-down.

    set up → start the workload → await steady → nemesis runs the schedule and heals → await recovery → after-window
    → stop → await LSO = high watermark within its bound → fence → drain → capture

Every phase has a name that log lines, the timeline and error messages share, and leaves an entry in the history.
Nothing is judged here: the runner ends with evidence on disk, and the judge reads nothing else. Whatever goes wrong,
faults are healed, clients end, and the evidence so far is sealed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from chaos.nemesis import Nemesis
from fixtures.waiting import await_until
from verification.spark.capture import capture

if TYPE_CHECKING:
    from runner.scenarios.scenario_run import Trial
    from verification.evidence.run_directory import RunDirectory

#: Clients connect, initialise and answer 50 operations within seconds; a minute is for a machine under heavy load.
STEADY_WITHIN_S = 60.0
#: After a heal: a broker restarts in 5 s, rejoins the in-sync set in 5 s more, loaded machines take several times that.
RECOVERY_WITHIN_S = 90.0
#: Floors of operations and records are usually met within 10 s of recovery; an unmet floor is for the judge to say.
AFTER_WINDOW_WITHIN_S = 60.0
#: The floor counts records of operations that ended ok; the live count has acknowledged ones of failed operations too.
ACKNOWLEDGED_PER_COUNTED = 1.1
#: A client ends its operation in flight within its own deadline (15 s), then closes.
STOP_WITHIN_S = 30.0
#: Observers read what is left, a few thousand records.
DRAIN_WITHIN_S = 30.0


def conduct(trial: Trial) -> RunDirectory:
    """Run one scenario and return its evidence. Errors are about the environment or us, never about the subject."""
    try:
        with trial.phase("set up"):
            trial.set_up()
        with trial.phase("start the workload"):
            trial.start_workload()
        with trial.phase("await steady"):
            await_steady(trial)
        with trial.phase("nemesis"):
            strike(trial)
        with trial.phase("await recovery"):
            trial.recover(timeout_s=RECOVERY_WITHIN_S)
        with trial.phase("after-window"):
            await_after_window(trial)
        come_to_rest(trial)
        # Not while the next scenario begins: beside its load the first capture took 70 s instead of 15 s.
        with trial.phase("capture"):
            trial.pin()
            capture(trial.laboratory.spark(), trial.directory, **trial.capture_arguments())
            trial.clear()
    except BaseException as error:
        with _beside(error):
            trial.close()
        raise
    trial.close()
    return trial.directory


@contextmanager
def _beside(first: BaseException) -> Iterator[None]:
    """Whatever goes wrong now, what went wrong first is what is told; this becomes a note on it."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - nothing is swallowed: it is told with the first one
        first.add_note(f"closing: {error}")


def await_steady(trial: Trial) -> None:
    """Wait until clients work and the before-window is full, so that the fault strikes something that runs."""
    need = trial.floor("ok_before")
    began = time.monotonic()
    await_until(
        lambda: trial.workload.progress().ok >= need and time.monotonic() - began >= trial.scenario.observe_s,
        f"{need} operations answered ok before the first fault",
        timeout_s=STEADY_WITHIN_S,
        last=lambda: str(trial.workload.progress()),
    )


def strike(trial: Trial) -> None:
    """Let the nemesis run the schedule; links are healed whatever happens."""
    nemesis = Nemesis(
        arena=trial.arena,
        record=trial.record_fault,
        tell=trial.tell,
        wait=time.sleep,
        attempted=lambda: trial.workload.progress().attempted,
        ended=lambda: trial.workload.progress().ended,
        meets=trial.floor("attempted_during"),
        await_whole=lambda: trial.recover(timeout_s=RECOVERY_WITHIN_S),
    )
    try:
        nemesis.run(trial.scenario.schedule)
    finally:
        trial.arena.cluster.links.heal()


def come_to_rest(trial: Trial, *, drain_within_s: float = DRAIN_WITHIN_S) -> None:
    """End the writers, see whether readers are held back, fence, and let the observers read what is left."""
    with trial.phase("stop"):
        trial.workload.stop(timeout_s=STOP_WITHIN_S)
    with trial.phase("await LSO = high watermark"):
        trial.settle(before_fencing=True)
    with trial.phase("fence"):
        trial.fence()
    with trial.phase("drain"):
        trial.drain(timeout_s=drain_within_s)


def await_after_window(trial: Trial) -> None:
    """Run on until every floor is met, or the bound has passed: too little coverage is for the judge to say.

    Copiers must also have come past the inputs that stood there when the fault was healed: only then have successors
    taken over every partition.
    """
    healed = trial.workload.progress()
    began = time.monotonic()
    marks = trial.input_ends()
    while time.monotonic() - began < AFTER_WINDOW_WITHIN_S:
        now = trial.workload.progress()
        if (
            time.monotonic() - began >= trial.scenario.observe_s
            and now.ok - healed.ok >= trial.floor("ok_after")
            and now.records >= trial.floor("records") * ACKNOWLEDGED_PER_COUNTED
            and now.transactions >= trial.floor("transactions")
            and now.transactions - healed.transactions >= trial.floor("transactions_after")
            and not trial.input_lag(marks)
        ):
            return
        # The condition is looked at ten times a second; the loop is bounded above.
        time.sleep(0.1)
