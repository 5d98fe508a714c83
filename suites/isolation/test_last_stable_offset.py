"""Readers under read_committed wait for an open transaction until it times out."""

from __future__ import annotations

from chaos.clients import SyncPoint
from chaos.faults.clients import KillClient
from chaos.schedule import Step
from fixtures.workloads import OrderFanOut
from runner.scenarios.scenario import FLOORS, THREE_BROKERS, TRANSACTIONS, RunScenario, requirement
from verification.vocabulary.experiment import Floor


@requirement("EXP-01", "ISO-01", "ISO-02")
def test_producer_killed_with_an_open_transaction(run: RunScenario) -> None:
    """The last stable offset stands at an abandoned transaction and moves on once it has timed out."""
    run(
        cluster=THREE_BROKERS,
        workload=OrderFanOut(partitions=4, transaction_timeout_s=5.0),
        schedule=(Step(fault=KillClient("producer", SyncPoint.BEFORE_COMMIT, replaced=False), hold_s=2),),
        floors=(*FLOORS, *TRANSACTIONS, Floor(name="lso_stood", need=1)),
    )
