"""The stage in which applications follow their brokers: each client of kafka-clients is replaced by one of the new release.

Writers of kafka-clients have the old release until then, as platform teams upgrade brokers first.
"""

from __future__ import annotations

from collections.abc import Iterator

from chaos.operations.clients import ReplaceNext
from chaos.schedule import Step
from fixtures.workloads.upgrade import JAVA, UpgradeWorkload
from runner.upgrades.path import UpgradePath
from verification.vocabulary.experiment import Floor

#: A rebalance of the group and some transactions by members of both releases.
DWELL_S = 2.0


def replaced(workload: UpgradeWorkload, path: UpgradePath) -> Iterator[Step]:
    """A step for each slot of kafka-clients."""
    fault = ReplaceNext(path.source.version, path.target.version)
    for slot in workload.writers(""):
        if slot.client == JAVA:
            yield Step(fault=fault, stage="clients", hold_s=DWELL_S)


def floors(workload: UpgradeWorkload, path: UpgradePath) -> tuple[Floor, ...]:
    """Every transactional producer of kafka-clients must have spoken transaction.version 2 where the new release has it.

    Its finalized level alone would prove nothing: a producer learns of it with a new connection.
    """
    if not path.target.has_tv2:
        return ()
    slots = [slot for slot in workload.writers("") if slot.client == JAVA and slot.transactional_id is not None]
    return (Floor(name="tv2_producers", need=len(slots)),)
