"""The load goes on while others act: a rolling upgrade, the reconcile of an operator, a drained node.

Each window has topics of its own and its own verdict. The next one begins before the one before is judged, so that some
load is always there.
"""

from __future__ import annotations

from chaos.faults.watching import WatchOthers
from chaos.schedule import Step
from fixtures.workloads import OrderFanOut
from runner.scenarios.scenario import THREE_BROKERS, RunScenario, requirement
from verification.vocabulary.experiment import Floor

#: Others act when they like, so nothing is asked of the time after it. A cluster in trouble answers little in a minute.
WATCHED = (
    Floor(name="ok_before", need=50),
    Floor(name="attempted_during", need=10),
    Floor(name="transactions", need=50),
    Floor(name="aborted", need=1),
    Floor(name="observers_at_end", need=2),
)


@requirement("TXN-16", "TXN-25", "ISO-02", "ISO-05", "ISO-09", "IDEMP-28")
def test_window(run: RunScenario, window_s: float) -> None:
    """Whatever others do to the cluster, every committed transaction is visible as a whole and no aborted one is."""
    run(
        cluster=THREE_BROKERS,
        workload=OrderFanOut(partitions=4),
        schedule=(Step(fault=WatchOthers(), hold_s=window_s),),
        floors=WATCHED,
    )
