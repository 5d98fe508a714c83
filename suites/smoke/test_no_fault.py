"""No faults: without this scenario the others would mean nothing."""

from __future__ import annotations

from fixtures.workloads import OrderFanOut
from runner.scenarios.scenario import FLOORS, THREE_BROKERS, TRANSACTIONS, RunScenario, requirement, smoke


@smoke
@requirement("TXN-16", "TXN-25", "ISO-02", "ISO-05", "EXP-12")
def test_transactions_without_faults(run: RunScenario) -> None:
    """Without faults every committed transaction is visible as a whole and no aborted one is."""
    run(
        cluster=THREE_BROKERS,
        workload=OrderFanOut(partitions=4),
        floors=(*(floor for floor in FLOORS if floor.name in ("ok_before", "records")), *TRANSACTIONS),
    )
