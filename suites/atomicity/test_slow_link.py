"""A slow and narrow link loses no data, and neither must a client behind it."""

from __future__ import annotations

from chaos.cluster import Site
from chaos.faults.sites import DegradeSite
from chaos.schedule import Step
from fixtures.workloads import OrderFanOut
from runner.scenarios.scenario import FLOORS, THREE_BROKERS, TRANSACTIONS, RunScenario, nightly, requirement


@nightly
@requirement("TXN-25")
def test_slow_and_narrow_link(run: RunScenario) -> None:
    """Behind a slow and narrow link transactions take long, and end as their clients were answered."""
    run(
        cluster=THREE_BROKERS,
        workload=OrderFanOut(partitions=4),
        schedule=(Step(fault=DegradeSite(Site("app"), latency_ms=150, jitter_ms=100, rate_kb_s=128), hold_s=6),),
        floors=(*FLOORS, *TRANSACTIONS),
    )
