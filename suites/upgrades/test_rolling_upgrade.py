"""A rolling upgrade under load costs no record, and no producer for good."""

from __future__ import annotations

from runner.scenarios.scenario import FLOORS, STAGES, TRANSACTIONS, RunScenario, requirement
from runner.upgrades.plan import UpgradePlan


@requirement("TV2-13", "TXN-25", "COORD-04", "IDEMP-28", "GRP-04", "ISO-09", "REC-15")
def test_rolling_upgrade(run: RunScenario, upgrade: UpgradePlan) -> None:
    """While a cluster is upgraded node by node, rolled back, and finalized, every transaction is all or nothing."""
    run(
        cluster=upgrade.cluster,
        workload=upgrade.workload,
        schedule=upgrade.schedule,
        floors=(*FLOORS, *TRANSACTIONS, *STAGES, *upgrade.floors),
    )
