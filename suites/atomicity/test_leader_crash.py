"""A transaction is visible as a whole or not at all."""

from __future__ import annotations

from chaos.faults.brokers import CrashBroker
from chaos.schedule import Step
from chaos.targets import LeaderOf
from fixtures.workloads import OrderFanOut
from runner.scenarios.scenario import FLOORS, THREE_BROKERS, TRANSACTIONS, RunScenario, both_clients, requirement


@both_clients
@requirement("TXN-25", "TXN-16", "ISO-02", "ISO-09", "COORD-11")
def test_leader_crash_while_committing(run: RunScenario) -> None:
    """Once the cluster has recovered from a leader's crash, no transaction is visible in part."""
    run(
        cluster=THREE_BROKERS,
        workload=OrderFanOut(partitions=4),
        schedule=(Step(fault=CrashBroker(LeaderOf("billing-events", 0)), hold_s=3),),
        floors=(*FLOORS, *TRANSACTIONS),
    )
