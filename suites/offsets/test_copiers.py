"""Consume, transform, produce: inputs and outputs move together or not at all."""

from __future__ import annotations

from chaos.clients import SyncPoint
from chaos.cluster import Site
from chaos.faults.clients import KillClient
from chaos.faults.sites import CutSite
from chaos.schedule import Step
from chaos.targets import GroupCoordinator
from fixtures.workloads import CopyWorkload
from runner.scenarios.scenario import FLOORS, THREE_BROKERS, TRANSACTIONS, RunScenario, requirement
from verification.vocabulary.experiment import Floor

PARTITIONS = 2
#: Copiers abort only after an error, so there is no floor for aborted transactions. The feeder and the other copier go on
#: in any case: the copier that was struck must copy again, and every input must be copied further.
COPYING = (
    *FLOORS,
    *(each for each in TRANSACTIONS if each.name != "aborted"),
    Floor(name="struck_after", need=1),
    Floor(name="copied_past", need=PARTITIONS),
)


@requirement("GRP-03", "GRP-04", "GRP-19")
def test_copier_killed_in_mid_transaction(run: RunScenario) -> None:
    """A copier killed before its commit leaves no output, and its successor copies each input exactly once."""
    run(
        cluster=THREE_BROKERS,
        workload=CopyWorkload(partitions=PARTITIONS, transaction_timeout_s=6.0),
        schedule=(Step(fault=KillClient("copier", SyncPoint.BEFORE_COMMIT), hold_s=3),),
        floors=COPYING,
    )


@requirement("GRP-04", "GRP-19")
def test_copier_cut_from_its_group_coordinator(run: RunScenario) -> None:
    """A copier that lost its group in mid-transaction cannot commit inputs that another member has taken over."""
    run(
        cluster=THREE_BROKERS,
        workload=CopyWorkload(partitions=PARTITIONS, apart=True),
        # Its outputs are written and its offsets are not; it tries to commit the offsets when its session (6 s) is over.
        schedule=(Step(fault=CutSite(Site("zombie"), GroupCoordinator(), held=SyncPoint.BEFORE_OFFSETS), hold_s=9),),
        floors=(*COPYING, Floor(name="refused_members", need=1)),
    )
