"""A rolling upgrade under load costs no record, and no producer for good."""

from __future__ import annotations

from fixtures.workloads import OrderFanOut
from runner.scenarios.scenario import FLOORS, STAGES, TRANSACTIONS, RunScenario, requirement
from runner.upgrades.mixed import TIMEOUT_S
from runner.upgrades.plan import UpgradePlan


@requirement("TV2-13")
def test_rolling_upgrade(run: RunScenario, upgrade: UpgradePlan) -> None:
    """While a cluster is upgraded node by node, rolled back, and finalized, every transaction is all or nothing."""
    run(
        cluster=upgrade.cluster,
        workload=OrderFanOut(partitions=4, transaction_timeout_s=TIMEOUT_S),
        schedule=upgrade.schedule,
        floors=(*FLOORS, *TRANSACTIONS, *STAGES),
    )
