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

#: Some transactions by members of both releases, once the group is stable: the first copy of a member takes a second.
DWELL_S = 3.0


def replaced(workload: UpgradeWorkload, path: UpgradePath) -> Iterator[Step]:
    """A step for each slot of kafka-clients."""
    fault = ReplaceNext(path.source.version, path.target.version)
    for slot in workload.writers(""):
        if slot.client == JAVA:
            yield Step(fault=fault, stage="clients", hold_s=DWELL_S)


def floors(workload: UpgradeWorkload, path: UpgradePath) -> tuple[Floor, ...]:
    """The group must have had members of both releases at once, and transaction.version 2 must have been spoken.

    That is by every transactional producer of kafka-clients, where the new release has it. Its finalized level alone would
    prove nothing: a producer learns of it with a new connection.
    """
    both = () if path.source == path.target else (Floor(name="copied_together", need=1),)
    if not path.target.has_tv2:
        return both
    slots = [slot for slot in workload.writers("") if slot.client == JAVA and slot.transactional_id is not None]
    return (*both, Floor(name="tv2_producers", need=len(slots)))
