"""A rolling restart, as operators do it every week: each broker is stopped cleanly and started, while clients work."""

from __future__ import annotations

from chaos.faults.brokers import StopBroker
from chaos.schedule import Step
from chaos.targets import Controller, LeaderOf, TransactionCoordinatorOf
from fixtures.workloads import OrderFanOut
from runner.scenarios.scenario import FLOORS, THREE_BROKERS, TRANSACTIONS, RunScenario, nightly, requirement


@nightly
@requirement("COORD-04", "TXN-25")
def test_rolling_restart(run: RunScenario) -> None:
    """Clean stops of a leader, a coordinator and the controller, one after the other, cost time and no transaction."""
    run(
        cluster=THREE_BROKERS,
        workload=OrderFanOut(partitions=4),
        schedule=(
            Step(fault=StopBroker(LeaderOf("billing-events", 0)), hold_s=2),
            Step(fault=StopBroker(TransactionCoordinatorOf(0)), once_whole=True, after_s=1, hold_s=2),
            Step(fault=StopBroker(Controller()), once_whole=True, after_s=1, hold_s=2),
        ),
        floors=(*FLOORS, *TRANSACTIONS),
    )
