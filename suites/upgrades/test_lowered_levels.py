"""A feature level that may be lowered is lowered under live producers: they must go on, and the way back stays locked."""

from __future__ import annotations

from fixtures.workloads import CopyWorkload
from runner.scenarios.scenario import FLOORS, RunScenario, first_tv2, nightly, requirement, tv2
from runner.upgrades.plan import UpgradePlan


@nightly
@tv2
@requirement("TV2-12", "TV2-15")
def test_lowered_transaction_version(run: RunScenario, upgrade: UpgradePlan) -> None:
    """transaction.version is lowered and raised again, which ends no live producer and tears no transaction."""
    run(
        cluster=upgrade.upgraded,
        workload=CopyWorkload(partitions=4, feeder_abort_ratio=0.2),
        schedule=upgrade.lowered,
        floors=FLOORS,
        survives=True,
    )


@nightly
@first_tv2
@requirement("TV2-12", "REC-15")
def test_lowered_transaction_version_in_the_log(run: RunScenario, upgrade: UpgradePlan) -> None:
    """transaction.version is raised and lowered to 0; its record in the log still keeps the old release from starting."""
    run(
        cluster=upgrade.cluster,
        workload=CopyWorkload(partitions=4, feeder_abort_ratio=0.2),
        schedule=upgrade.remembered,
        floors=FLOORS,
    )
