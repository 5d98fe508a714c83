"""Controls of an upgrade: operators who do it wrong. What they lose or double must be found.

They run with the nightly profile, and when they are asked for: `tox -e upgrade -- … -k careless`.
"""

from __future__ import annotations

from chaos.cluster import Site
from chaos.operations.restarting import HastyRestart, RestartAllAtOnce
from chaos.schedule import Step
from fixtures.workloads import IdempotentAppend
from runner.scenarios.scenario import RunScenario, convict, nightly
from runner.upgrades.plan import UpgradePlan
from runner.upgrades.rolls import JOIN_WITHIN_S
from verification.vocabulary.experiment import Floor

#: A control is decided by its findings; it needs no more coverage than a confirmed fault.
STRUCK = (Floor(name="ok_before", need=20), Floor(name="faults_confirmed", need=1))


@nightly
@convict("lost-write")
def test_operator_who_waits_for_no_replica(run: RunScenario, upgrade: UpgradePlan) -> None:
    """With acks=1 and one in-sync replica, leaders that are killed while followers are behind take records with them."""
    run(
        cluster=upgrade.cluster,
        workload=IdempotentAppend(partitions=2, idempotence=False, acks="1"),
        schedule=tuple(
            Step(fault=HastyRestart("billing-events", partition), hold_s=0, confirm_within_s=JOIN_WITHIN_S)
            for partition in (0, 1)
        ),
        floors=STRUCK,
        min_in_sync=1,
    )


@nightly
@convict("duplicate")
def test_operator_who_restarts_all_nodes_at_once(run: RunScenario, upgrade: UpgradePlan) -> None:
    """Writers without idempotence send again what a lone replica has: its answer went down with all nodes."""
    run(
        cluster=upgrade.cluster,
        workload=IdempotentAppend(partitions=4, idempotence=False, acks="1", unreplicated=("billing-events",)),
        schedule=(Step(fault=RestartAllAtOnce(Site("app")), hold_s=3, confirm_within_s=JOIN_WITHIN_S),),
        floors=STRUCK,
        min_in_sync=1,
    )
