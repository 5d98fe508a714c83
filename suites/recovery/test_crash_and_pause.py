"""Acknowledged transactions survive a crash of every broker, and the pause of a leader."""

from __future__ import annotations

from chaos.clients import SyncPoint
from chaos.faults.brokers import CrashBroker, PauseBroker
from chaos.schedule import Step
from chaos.targets import AllBrokers, LeaderOf
from fixtures.workloads import OrderFanOut
from runner.scenarios.scenario import FLOORS, THREE_BROKERS, TRANSACTIONS, RunScenario, requirement
from verification.vocabulary.experiment import Floor

#: Every broker dies while commits are in flight.
MID_COMMIT = Step(fault=CrashBroker(AllBrokers()), hold_s=1, while_held=SyncPoint.BEFORE_COMMIT, let_go_first=True)


@requirement("REC-03", "REC-04", "COORD-13", "TXN-25")
def test_all_brokers_killed_and_restarted(run: RunScenario) -> None:
    """After every broker was killed in mid-commit, each transaction is committed or aborted as its client was answered."""
    run(
        cluster=THREE_BROKERS,
        workload=OrderFanOut(partitions=4, producers=12),
        schedule=(MID_COMMIT,),
        # Ten of twelve were seen; fewer than four would mean that the blow met producers at random moments.
        floors=(*FLOORS, *TRANSACTIONS, Floor(name="undecided_at_strike", need=4)),
    )


@requirement("REC-07", "ISO-09", "TXN-25")
def test_leader_paused_past_its_session(run: RunScenario) -> None:
    """A leader that was paused past its session resumes as a follower, and its late answers change nothing."""
    run(
        cluster=THREE_BROKERS,
        workload=OrderFanOut(partitions=4),
        schedule=(Step(fault=PauseBroker(LeaderOf("billing-events", 0)), hold_s=3),),
        floors=(*FLOORS, *TRANSACTIONS),
    )
