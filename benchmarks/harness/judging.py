"""Measures how long verification takes, compared with the run whose evidence it judges.

The run is one of the suite's own scenarios, called as pytest calls it, by the suite's own runner. Its own time is that
of all phases up to the capture. The cluster has started before, as for all scenarios of a conformance run but the
first. Each run is judged twice, because only the first judgement of a session pays for compiling and loading in Spark.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.measuring.errors import WorthlessJudgementError
from benchmarks.measuring.ratio import Ratio, Unit
from chaos.faults.brokers import CrashBroker
from chaos.schedule import Step
from chaos.targets import LeaderOf
from fixtures.workloads import OrderFanOut
from runner.resources import ScenarioLane
from runner.scenarios.phases import run_scenario
from runner.scenarios.scenario import FLOORS, THREE_BROKERS, TRANSACTIONS, Scenario
from runner.scenarios.scenario_run import ScenarioRun
from verification.evidence.history_file import read as read_history
from verification.evidence.run_directory import RunDirectory
from verification.vocabulary.history import Phase
from verification.vocabulary.verdict import ScenarioVerdict, Verdict

#: Two, so that more than one judgement is not the session's first. Each run takes half a minute.
RUNS = 2
CAPTURE = "capture"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """One run: seconds of its own phases, of its captures, of its first and its second judgement."""

    run_s: float
    capture_s: float
    first_s: float
    second_s: float


def measure(lane: ScenarioLane, say: Callable[[str], None]) -> tuple[Ratio, ...]:
    """Run and judge. Raises WorthlessJudgementError, and the errors of a run."""
    # The starts of the cluster and of Spark are not measured.
    lane.clusters.lease(THREE_BROKERS(release=lane.config.release.version))
    lane.spark()
    runs = [_timed(lane, seed, say) for seed in range(1, RUNS + 1)]
    against = "the run itself, without capture"

    def ratio(subject: str, pairs: list[tuple[float, float]]) -> Ratio:
        return Ratio(subject=subject, against=against, unit=Unit.SECONDS, pairs=tuple(pairs))

    return (
        ratio("first judgement of a session", [(runs[0].first_s, runs[0].run_s)]),
        ratio("warm judgement", [(each.second_s, each.run_s) for each in runs]),
        ratio("capture and warm judgement", [(each.capture_s + each.second_s, each.run_s) for each in runs]),
    )


def _timed(lane: ScenarioLane, seed: int, say: Callable[[str], None]) -> Timed:
    scenario_run = ScenarioRun(leader_crash(seed), lane)
    directory = conducted(scenario_run, lane)
    phases = {each.name: (each.ended_ns - each.began_ns) / 1e9 for each in read_history(directory.history).of(Phase)}
    capture_s = phases.pop(CAPTURE)
    timed = Timed(
        run_s=sum(phases.values()),
        capture_s=capture_s,
        first_s=judged(lane, directory)[1],
        second_s=judged(lane, directory)[1],
    )
    say(
        f"run {seed} of {RUNS} ({scenario_run.scenario.name}): itself {timed.run_s:.1f} s, capture {timed.capture_s:.1f} s, "
        f"judged in {timed.first_s:.1f} s, again in {timed.second_s:.1f} s"
    )
    return timed


def conducted(scenario_run: ScenarioRun, lane: ScenarioLane) -> RunDirectory:
    """Run a scenario while the console shows its status. Raises the errors of a run."""
    lane.console.follow("bench", scenario_run.status)
    try:
        return run_scenario(scenario_run)
    finally:
        lane.console.unfollow("bench")


def judged(lane: ScenarioLane, directory: RunDirectory) -> tuple[ScenarioVerdict, float]:
    """Judge evidence that must pass; the verdict and the seconds. Raises WorthlessJudgementError."""
    from verification.judge.judge import judge

    began = time.monotonic()
    (verdict,) = judge(lane.spark(), [directory])
    seconds = time.monotonic() - began
    if verdict.verdict is not Verdict.PASS:
        raise WorthlessJudgementError(f"{verdict.scenario} was judged {verdict.verdict.name}: {verdict.reason}.")
    return verdict, seconds


def leader_crash(seed: int) -> Scenario:
    """The timed scenario: `suites/atomicity/test_leader_crash.py`, without pytest."""
    return Scenario(
        name="atomicity/leader-crash-while-committing",
        test_name="test_leader_crash_while_committing",
        claim="Once the cluster has recovered from a leader's crash, no transaction is visible in part.",
        requirements=("TXN-25", "TXN-16", "ISO-02", "ISO-09", "COORD-11"),
        cluster=THREE_BROKERS,
        workload=OrderFanOut(partitions=4),
        schedule=(Step(fault=CrashBroker(LeaderOf("billing-events", 0)), hold_s=3),),
        floors=(*FLOORS, *TRANSACTIONS),
        seed=seed,
    )
