"""The size of the cluster of an upgrade, and the step that rolls a node of it."""

from __future__ import annotations

from chaos.clients import SyncPoint
from chaos.faults.fault import Fault
from chaos.schedule import Step

BROKERS = 3
#: Dedicated controllers, where there are any.
CONTROLLERS = 3
#: In this time the clients of a workload end some 50 transactions.
DWELL_S = 5.0
#: A node starts in 6 to 10 s on two quiet cores, in 40 s on a machine that is busy with other work.
JOIN_WITHIN_S = 90.0


def roll(fault: Fault, *, stage: str, dwell_s: float) -> Step:
    """A roll across which one transaction stays open, once every replica is in sync."""
    return Step(
        fault=fault,
        stage=stage,
        hold_s=dwell_s,
        confirm_within_s=JOIN_WITHIN_S,
        while_held=SyncPoint.BEFORE_COMMIT,
        holding=1,
        once_whole=True,
    )
