"""The load goes on while others act: a rolling upgrade, the reconcile of an operator, a drained node.

Each window has topics of its own and its own verdict. The next one begins before the one before is judged, so that some
load is always there.
"""

from __future__ import annotations

from chaos.faults.watching import WatchOthers
from chaos.schedule import Step
from fixtures.workloads import OrderFanOut
from runner.scenarios.scenario import FLOORS, THREE_BROKERS, TRANSACTIONS, RunScenario, requirement


@requirement("TXN-16", "TXN-25", "ISO-02", "ISO-05", "IDEMP-28")
def test_window(run: RunScenario, window_s: float) -> None:
    """Whatever others do to the cluster, every committed transaction is visible as a whole and no aborted one is."""
    run(
        cluster=THREE_BROKERS,
        workload=OrderFanOut(partitions=4),
        schedule=(Step(fault=WatchOthers(), hold_s=window_s),),
        floors=(*(floor for floor in FLOORS if floor.name != "records"), *TRANSACTIONS),
    )
