"""The outcome of a transaction is in its coordinator's log, so it survives the coordinator's process."""

from __future__ import annotations

from chaos.faults.brokers import CrashBroker
from chaos.schedule import Step
from chaos.targets import Controller, TransactionCoordinatorOf
from fixtures.workloads import OrderFanOut
from runner.scenarios.scenario import FLOORS, THREE_BROKERS, TRANSACTIONS, RunScenario, both_clients, requirement


@both_clients
@requirement("COORD-04", "COORD-05", "COORD-06", "TXN-25")
def test_coordinator_crash_while_committing(run: RunScenario) -> None:
    """A coordinator's successor finishes every commit and abort that had begun, and loses none."""
    run(
        cluster=THREE_BROKERS,
        workload=OrderFanOut(partitions=4),
        schedule=(Step(fault=CrashBroker(TransactionCoordinatorOf(0)), hold_s=3),),
        floors=(*FLOORS, *TRANSACTIONS),
    )


@requirement("COORD-04", "TXN-25")
def test_controller_crash_while_committing(run: RunScenario) -> None:
    """Losing the active controller delays transactions; it changes the outcome of none."""
    run(
        cluster=THREE_BROKERS,
        workload=OrderFanOut(partitions=4),
        # The next controller gives every broker a new session, the dead one too. Until the dead one is fenced, up to 7 s
        # after the crash, all clients wait.
        schedule=(Step(fault=CrashBroker(Controller()), hold_s=6),),
        floors=(*FLOORS, *TRANSACTIONS),
    )
