"""Faults of pipelines: an instance is killed (SIGKILL) in the middle of its work, or paused or cut off until it is replaced.

`open_work.py` finds the moment. Whether a fault met work in progress is decided by the evidence: the records that waited
(`met`) and transactions that were aborted, or findings.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from chaos.arena import Arena
from chaos.cluster import Site
from chaos.errors import InjectionError, UnresolvedTargetError
from chaos.faults.brokers import CrashBroker
from chaos.faults.clients import killed, oldest
from chaos.faults.fault import Injection
from chaos.faults.open_work import (
    LOOK_EVERY_S,
    OWN_AFTER_S,
    ROLE,
    WORK_WITHIN_S,
    await_next_transaction,
    await_open,
    others_wrote,
    places_of,
    stopped,
)
from chaos.faults.sites import CutSite
from chaos.targets import AllBrokers


@dataclass(frozen=True, slots=True)
class KillInstance:
    """Kill the oldest instance of a pipeline that is in a transaction, or the oldest one if none ever is; start a successor.

    With `worked_s` the kill waits first until an output's transaction has ended and the next one has been open for so long.
    So an instance that was just started is killed in its first transaction if that lasts longer. The proof is that it is
    gone, and the records that were open all the time while it was stopped. With `until_others` others must also have done
    its work, as with `PauseInstance`, before its successor starts.
    """

    output: str
    partitions: int
    worked_s: float = 0.0
    until_others: bool = False

    def describe(self) -> str:
        """The fault and its target in words."""
        when = f"{self.worked_s:g} s into a transaction" if self.worked_s else "in a transaction if it has some"
        after = ", once others do its work" if self.until_others else ""
        return f"an instance of the pipeline killed (SIGKILL), {when}; succeeded by a new one{after}"

    def futility(self) -> str | None:
        """A killed instance always shows."""
        return None

    def inject(self, arena: Arena) -> Injection:
        """Stop it in a transaction, and kill it. Raises InjectionError if a transaction is wanted that does not come."""
        places = places_of(arena, self.output, self.partitions)
        if self.worked_s:
            await_next_transaction(arena.cluster, places)
            time.sleep(self.worked_s)
        victim, waiting, ends = stopped(arena, places)
        had = f"; {waiting} records of {self.output} had waited {OWN_AFTER_S:g} s for a decision" if places else ""
        injection = killed(arena, victim, replaced=True, proof=f"process {victim.process} died{had}")

        def confirm() -> str | None:
            others = not self.until_others or others_wrote(arena, places, ends)
            return injection.confirm() if others else None

        # While records of one that was killed before still wait, those of others behind them look as if they waited, too.
        known = bool(places) and all(ends[at].last_stable_offset >= arena.left_open.get(at, 0) for at in places)
        arena.left_open.update({at: ends[at].high_watermark for at in places})
        return replace(injection, confirm=confirm, met=waiting if known else None)


@dataclass(frozen=True, slots=True)
class CutInstance:
    """Cut the one instance at a site off from all brokers, in a transaction if it is ever in one, until others do its work.

    Unlike a paused one it goes on meanwhile, and finds out by itself that it is no member any more. The proof is that of
    `CutSite`, and that of `PauseInstance` for the others.
    """

    site: Site
    output: str
    partitions: int

    def describe(self) -> str:
        """The fault and its target in words."""
        return f"the instance at site {self.site} cut from all brokers until others do its work"

    def futility(self) -> str | None:
        """A cut that others must fill always shows."""
        return None

    def inject(self, arena: Arena) -> Injection:
        """Stop it in a transaction, cut its site off, and let it go on."""
        places = places_of(arena, self.output, self.partitions)
        instance, waiting, ends = stopped(arena, places, self.site)
        try:
            cut = CutSite(self.site).inject(arena)
        finally:
            arena.clients.resume(instance)

        def confirm() -> str | None:
            refused = cut.confirm()
            if refused is None or not others_wrote(arena, places, ends):
                return None
            return f"{refused}; others have written to all of {self.output} since"

        return replace(cut, confirm=confirm, processes=(instance.process,), met=waiting)


@dataclass(frozen=True, slots=True)
class KillPart:
    """SIGKILL one process of the oldest instance, by a word of its command; the instance itself has to start another one."""

    program: str

    def describe(self) -> str:
        """The fault and its target in words."""
        return f"a process {self.program} of the pipeline killed (SIGKILL)"

    def futility(self) -> str | None:
        """A killed process always shows."""
        return None

    def inject(self, arena: Arena) -> Injection:
        """Kill it, once there is one. Raises UnresolvedTargetError if the instance never has one."""
        deadline = time.monotonic() + WORK_WITHIN_S
        while (killed_id := arena.clients.kill_part(instance := oldest(arena, ROLE), self.program)) is None:
            if time.monotonic() > deadline:
                raise UnresolvedTargetError(f"process {instance.process} has no process {self.program}")
            time.sleep(LOOK_EVERY_S)
        return Injection(
            target=f"process {killed_id} of process {instance.process}",
            confirm=lambda: f"process {killed_id}, {self.program}, is gone",
            heal=lambda: None,
            processes=(instance.process,),
        )


@dataclass(frozen=True, slots=True)
class PauseInstance:
    """Stop the oldest instance that is in a transaction, or the oldest one if none ever is, until others do its work.

    The proof is that in every partition of the output more was decided than the abort of its transaction: another member
    has the partitions of the one that is stopped. The feeder must write to all of them.
    """

    output: str
    partitions: int

    def describe(self) -> str:
        """The fault and its target in words."""
        return "an instance of the pipeline paused (SIGSTOP) until others do its work; then resumed"

    def futility(self) -> str | None:
        """A pause that others must fill always shows."""
        return None

    def inject(self, arena: Arena) -> Injection:
        """Stop it in a transaction."""
        places = places_of(arena, self.output, self.partitions)
        paused, waiting, ends = stopped(arena, places)
        stopped_s = time.monotonic()

        def confirm() -> str | None:
            if not others_wrote(arena, places, ends):
                return None
            return (
                f"process {paused.process} was stopped, and {waiting} records had waited {OWN_AFTER_S:g} s for a decision; "
                f"{time.monotonic() - stopped_s:.1f} s later others had written to all of {self.output}"
            )

        return Injection(
            target=f"process {paused.process}",
            confirm=confirm,
            heal=lambda: arena.clients.resume(paused),
            processes=(paused.process,),
            met=waiting,
        )


@dataclass(frozen=True, slots=True)
class CrashPeer:
    """SIGKILL every broker of the second cluster of a pipeline in an open transaction; heal by starting them again.

    The records of open transactions are those of the last look before the crash.
    """

    def describe(self) -> str:
        """The fault and its target in words."""
        return "crash (SIGKILL) of the second cluster of the pipeline, in a transaction there if it has some"

    def futility(self) -> str | None:
        """A crash always shows."""
        return None

    def inject(self, arena: Arena) -> Injection:
        """Kill all of them at once. Raises UnresolvedTargetError without a second cluster, and InjectionError."""
        peer, deadline = arena.peer, time.monotonic() + WORK_WITHIN_S
        if peer is None:
            raise UnresolvedTargetError("the pipeline of this run has no second cluster")
        # It may come back from the crash before.
        while not all(map(peer.answers, peer.brokers)):
            if time.monotonic() > deadline:
                raise InjectionError(f"the second cluster did not answer within {WORK_WITHIN_S:.0f} s")
            time.sleep(LOOK_EVERY_S)
        # The pipeline goes on there when its clients have connected again: at a load of 30 it needed more than 7 s.
        topics = tuple(at for at in peer.view().partitions if not at.topic.startswith("__"))
        waiting = await_open(peer, topics, WORK_WITHIN_S)
        return replace(CrashBroker(AllBrokers()).inject(replace(arena, cluster=peer)), met=waiting)
