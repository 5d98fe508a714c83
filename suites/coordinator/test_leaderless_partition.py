"""A decided transaction reaches every partition, also one that has no leader at the moment of the decision."""

from __future__ import annotations

from chaos.clients import SyncPoint
from chaos.faults.brokers import CrashBroker
from chaos.schedule import Step
from chaos.targets import LeaderAwayFromCoordinators
from fixtures.workloads import OrderFanOut
from runner.scenarios.scenario import FLOORS, THREE_BROKERS, TRANSACTIONS, RunScenario, both_clients, requirement
from verification.vocabulary.experiment import Floor


@both_clients
@requirement("COORD-11", "TXN-16", "TXN-25", "ISO-01")
def test_commit_while_a_partition_has_no_leader(run: RunScenario) -> None:
    """A commit that was acknowledged while a partition had no leader is visible there once the leader is back."""
    run(
        cluster=THREE_BROKERS,
        workload=OrderFanOut(partitions=2, spread=2, producers=10, unreplicated=("billing-events",)),
        schedule=(
            Step(
                fault=CrashBroker(LeaderAwayFromCoordinators("billing-events")),
                hold_s=3,
                while_held=SyncPoint.BEFORE_COMMIT,
                leaving=4,
            ),
        ),
        floors=(*FLOORS, *TRANSACTIONS, Floor(name="committed_while_leaderless", need=1)),
    )
