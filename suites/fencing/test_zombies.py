"""A producer with a successor can write nothing more, however late it notices."""

from __future__ import annotations

from chaos.cluster import Site
from chaos.faults.zombies import PartitionedZombie, PausedZombie
from chaos.schedule import Step
from fixtures.workloads import OrderFanOut
from runner.scenarios.scenario import FLOORS, THREE_BROKERS, TRANSACTIONS, RunScenario, both_clients, requirement
from verification.vocabulary.experiment import Floor

#: A pass means nothing unless a broker refused the zombie after its successor had been initialised, and the successor
#: could work.
FENCED = (*FLOORS, *TRANSACTIONS, Floor(name="fenced_answers", need=1), Floor(name="struck_after", need=1))
#: Long enough for a transaction under load (0.1 s), short enough for the coordinator to time it out within the fault.
TIMEOUT_S = 6.0


@both_clients
@requirement("FENCE-01", "FENCE-02", "FENCE-08", "FENCE-09")
def test_paused_zombie(run: RunScenario) -> None:
    """A producer paused past its transaction timeout and succeeded is fenced: nothing of its transaction shows."""
    run(
        cluster=THREE_BROKERS,
        workload=OrderFanOut(partitions=4, zombie=True, transaction_timeout_s=TIMEOUT_S),
        schedule=(Step(fault=PausedZombie(Site("zombie"), Site("app"), past_s=TIMEOUT_S), hold_s=1),),
        floors=FENCED,
    )


@requirement("FENCE-01", "FENCE-02", "FENCE-09")
def test_partitioned_zombie(run: RunScenario) -> None:
    """A producer partitioned past its transaction timeout and succeeded meanwhile is fenced when it comes back."""
    run(
        cluster=THREE_BROKERS,
        workload=OrderFanOut(partitions=4, zombie=True, transaction_timeout_s=TIMEOUT_S),
        schedule=(Step(fault=PartitionedZombie(Site("zombie"), Site("app"), past_s=TIMEOUT_S), hold_s=1),),
        floors=FENCED,
    )
