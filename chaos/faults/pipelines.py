"""Faults of pipelines: SIGKILL of an instance in the middle of its work.

An instance of a foreign program has no sync points. What it does is seen in the topics: while it has a transaction
open, the last stable offset of an output is below the high watermark. A pipeline without transactions never shows that, so
the kill waits for it with a bound. The open records may be those of another instance. So whether kills met work in progress
is decided by the evidence: transactions of the pipeline that were aborted, or findings.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from chaos.arena import Arena
from chaos.cluster import Cluster
from chaos.faults.clients import killed, oldest
from chaos.faults.fault import Injection
from wire.values import TopicPartition

ROLE = "pipeline"
#: An instance that copies in transactions has one open most of the time: a few of its commits.
OPEN_WITHIN_S = 3.0
#: A look costs a request to each leader, 2 ms, and a transaction of a pipeline lasts 100 ms and more.
LOOK_EVERY_S = 0.02


@dataclass(frozen=True, slots=True)
class KillInstance:
    """Kill the oldest instance of a pipeline while an output has an open transaction, if it ever does; start a successor.

    The proof is that it is gone, and the records that were open when it was killed.
    """

    output: str
    partitions: int

    def describe(self) -> str:
        """The fault and its target in words."""
        return "an instance of the pipeline killed (SIGKILL), in a transaction if it has some; succeeded by a new one"

    def futility(self) -> str | None:
        """A killed instance always shows."""
        return None

    def inject(self, arena: Arena) -> Injection:
        """Wait for an open transaction, and kill."""
        victim = oldest(arena, ROLE)
        places = tuple(arena.partition(self.output, partition) for partition in range(self.partitions))
        waiting = _open_records(arena.cluster, places)
        proof = f"process {victim.process} died; {waiting} records of {self.output} waited for the end of a transaction"
        return killed(arena, victim, replaced=True, proof=proof)


def _open_records(cluster: Cluster, places: tuple[TopicPartition, ...]) -> int:
    """How many records wait for the end of a transaction; 0 when none did in all the time."""
    deadline = time.monotonic() + OPEN_WITHIN_S
    while True:
        ends = cluster.positions(places).values()
        waiting = sum(max(0, each.high_watermark - each.last_stable_offset) for each in ends)
        if waiting or time.monotonic() > deadline:
            return waiting
        time.sleep(LOOK_EVERY_S)
