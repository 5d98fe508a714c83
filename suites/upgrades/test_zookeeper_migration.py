"""A cluster moves its metadata from ZooKeeper to KRaft within one release: `tox -e upgrade -- --from 3.9.2 --migrate`."""

from __future__ import annotations

from runner.scenarios.scenario import FLOORS, STAGES, TRANSACTIONS, RunScenario, requirement, zookeeper
from runner.upgrades import migration
from runner.upgrades.plan import UpgradePlan


@zookeeper
@requirement("REC-14", "TXN-25", "COORD-04", "IDEMP-28", "GRP-04", "ISO-09")
def test_zookeeper_migration(run: RunScenario, upgrade: UpgradePlan) -> None:
    """While brokers move from ZooKeeper to KRaft, every transaction is all or nothing, and no producer id is given twice."""
    run(
        cluster=upgrade.migration.cluster,
        workload=upgrade.workload,
        schedule=upgrade.migration.schedule,
        floors=(*FLOORS, *TRANSACTIONS, *STAGES, *migration.FLOORS),
    )
