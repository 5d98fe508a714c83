"""Consume, transform, produce: inputs and outputs move together or not at all."""

from __future__ import annotations

from collections.abc import Callable

from chaos.clients import SyncPoint
from chaos.cluster import Site
from chaos.faults import CutSite, KillClient
from chaos.schedule import Step
from chaos.targets import GroupCoordinator
from fixtures.workloads import Copy
from suites.scenario import FLOORS, THREE_BROKERS, TRANSACTIONS, requirement

Run = Callable[..., None]

#: Copies never abort of their own will, so no floor for aborted transactions.
COPYING = (*FLOORS, TRANSACTIONS[0])


@requirement("GRP-03", "GRP-04", "GRP-19")
def test_copier_killed_in_mid_transaction(run: Run) -> None:
    """A copier killed before its commit leaves no output, and its successor copies each input exactly once."""
    run(
        cluster=THREE_BROKERS,
        workload=Copy(partitions=2, transaction_timeout_s=6.0),
        schedule=(Step(fault=KillClient("copier", SyncPoint.BEFORE_COMMIT), hold_s=3),),
        floors=COPYING,
    )


@requirement("GRP-04", "GRP-05", "GRP-19")
def test_copier_cut_from_its_group_coordinator(run: Run) -> None:
    """A copier that lost its group in mid-transaction cannot commit what another member has taken over."""
    run(
        cluster=THREE_BROKERS,
        workload=Copy(partitions=2, apart=True),
        schedule=(Step(fault=CutSite(Site("zombie"), GroupCoordinator()), hold_s=9),),
        floors=COPYING,
    )
