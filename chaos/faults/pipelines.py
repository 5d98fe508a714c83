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
from chaos.errors import InjectionError
from chaos.faults.clients import killed, oldest
from chaos.faults.fault import Injection
from wire.values import TopicPartition

ROLE = "pipeline"
#: An instance that copies in transactions has one open most of the time: a few of its commits.
OPEN_WITHIN_S = 3.0
#: A pipeline that keeps a state starts again in 5 to 15 s, and at a load of 20 in twice that; its transactions last seconds.
WORK_WITHIN_S = 60.0
#: A look costs a request to each leader, 2 ms, and a transaction of a pipeline lasts 100 ms and more.
LOOK_EVERY_S = 0.02


@dataclass(frozen=True, slots=True)
class KillInstance:
    """Kill the oldest instance of a pipeline while an output has an open transaction, if it ever does; start a successor.

    With `worked_s` the kill waits first until an output's transaction has ended and the next one has been open for so long.
    So an instance that was just started is killed in its first transaction if that lasts longer. The proof is that it is
    gone, and the records that were open when it was killed.
    """

    output: str
    partitions: int
    worked_s: float = 0.0

    def describe(self) -> str:
        """The fault and its target in words."""
        when = f"{self.worked_s:g} s into a transaction" if self.worked_s else "in a transaction if it has some"
        return f"an instance of the pipeline killed (SIGKILL), {when}; succeeded by a new one"

    def futility(self) -> str | None:
        """A killed instance always shows."""
        return None

    def inject(self, arena: Arena) -> Injection:
        """Wait for an open transaction, and kill. Raises InjectionError if a transaction is wanted that does not come."""
        victim = oldest(arena, ROLE)
        places = tuple(arena.partition(self.output, partition) for partition in range(self.partitions))
        if self.worked_s:
            _await_next_transaction(arena.cluster, places)
            time.sleep(self.worked_s)
        waiting = _open_records(arena.cluster, places)
        proof = f"process {victim.process} died; {waiting} records of {self.output} waited for the end of a transaction"
        return killed(arena, victim, replaced=True, proof=proof)


def _await_next_transaction(cluster: Cluster, places: tuple[TopicPartition, ...]) -> None:
    """Wait until all that was open is decided in every partition, and other records are open."""
    first = {at: ends.high_watermark for at, ends in cluster.positions(places).items()}
    deadline = time.monotonic() + WORK_WITHIN_S
    while True:
        time.sleep(LOOK_EVERY_S)
        found = cluster.positions(places)
        decided = all(ends.last_stable_offset >= first[at] for at, ends in found.items())
        if decided and any(ends.high_watermark > ends.last_stable_offset for ends in found.values()):
            return
        if time.monotonic() > deadline:
            raise InjectionError(f"no transaction of the pipeline ended and another began within {WORK_WITHIN_S:.0f} s")


def _open_records(cluster: Cluster, places: tuple[TopicPartition, ...]) -> int:
    """How many records wait for the end of a transaction; 0 when none did in all the time."""
    deadline = time.monotonic() + OPEN_WITHIN_S
    while True:
        ends = cluster.positions(places).values()
        waiting = sum(max(0, each.high_watermark - each.last_stable_offset) for each in ends)
        if waiting or time.monotonic() > deadline:
            return waiting
        time.sleep(LOOK_EVERY_S)
