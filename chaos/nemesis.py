"""Runs a schedule of faults: injects each one, waits for the proof that it took hold, and always heals.

It heals on every path: at the end of a step, when a fault cannot be applied, when the harness fails and on Ctrl-C. A
fault that fails to apply or to heal is recorded with its error. The judge may then call the run inconclusive at best.
A fault counts as healed only after the cluster showed it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from threading import Timer
from typing import TYPE_CHECKING, Any

from chaos.errors import ChaosError, NodeLostError, SyncPointError, UnknownClientError, UnresolvedTargetError
from chaos.link_targets import BetweenBrokers
from chaos.targets import AllBrokers
from verification.vocabulary.history import FaultRecord

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chaos.arena import Arena
    from chaos.clients import ClientProcess, SyncPoint
    from chaos.schedule import Schedule, Step

#: The pause between two looks while waiting for a proof. A look costs one Metadata request per broker, about 10 ms;
#: five a second see a move soon enough to date it.
LOOK_EVERY_S = 0.2
#: How much longer a fault may stand until clients have tried enough. Requests to a broker that is gone end with its
#: session (3 s) or with their own timeout (5 s); twice that is more than any client needs to try again.
STANDS_LONGER_S = 10.0
#: All producers reach a sync point within one operation each. One that an earlier fault left without an answer waits for
#: its transaction timeout (30 s by default) and 10 s more.
HOLD_WITHIN_S = 45.0
#: A producer that is not waiting for a broker reaches a sync point within one operation. Coverage shows whether one did.
HOLD_ONE_WITHIN_S = 5.0
#: So long does it wait at most. A node stops in 2 s, on a busy machine in 10 s, and transactions time out after 20 s.
HOLD_SOME_S = 12.0
#: A driver that is let go sends its commit within milliseconds, on a busy machine within a second.
DECIDE_WITHIN_S = 5.0
#: A commit takes 3 to 30 ms, and killing three containers took 0.36 s: all commits were answered by then. A commit now
#: waits for at least one round trip between brokers, which takes twice as long as this.
SLOWED_MS = 250
#: A dozen producers that are let go one after the other are in each phase of a commit when the last one requests it.
LET_GO_EVERY_S = 0.05


@dataclass(slots=True)
class _StepLog:
    """The record of a step so far."""

    applied: FaultRecord

    def note(self, **facts: Any) -> None:
        """Add to it."""
        self.applied = replace(self.applied, **facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Nemesis:
    """Runs schedules in one arena.

    `record` is called once per step, `tell` with each sentence worth showing. `wait` sleeps up to so many seconds and
    raises when the run is interrupted. `attempted` and `ended` count the operations that clients have begun and ended.
    A confirmed fault stands until it has met `meets` operations, including those under way when it showed, at most
    `STANDS_LONGER_S` longer. `await_whole` returns when every replica is in sync, and raises when that takes too long.
    """

    arena: Arena
    record: Callable[[FaultRecord], None]
    tell: Callable[[str], None]
    wait: Callable[[float], None]
    attempted: Callable[[], int] = int
    ended: Callable[[], int] = int
    meets: int = 0
    await_whole: Callable[[], None] = lambda: None

    def run(self, schedule: Schedule, *, first: int = 0) -> tuple[FaultRecord, ...]:
        """Apply every step in order and return the records; they are numbered from `first`.

        Errors of faults are recorded, not raised, except for a NodeLostError, which is both.
        """
        return tuple(self._step(number, step) for number, step in enumerate(schedule, start=first))

    def _step(self, number: int, step: Step) -> FaultRecord:
        if step.once_whole:
            self.tell(f"waiting for every replica to be in sync before: {step.fault.describe()}")
            self.await_whole()
        if step.after_s:
            self.tell(f"waiting {step.after_s:g} s before: {step.fault.describe()}")
            self.wait(step.after_s)
        log = _StepLog(
            FaultRecord(
                step=number,
                fault=type(step.fault).__name__,
                description=step.describe(),
                target="",
                began_ns=time.monotonic_ns(),
                stage=step.stage,
            )
        )
        try:
            with self._held(number, step, log) as release:
                self._strike(step, log, release)
        except NodeLostError as error:
            log.note(error=f"{type(error).__name__}: {error}", lost=error.lost)
            raise
        except ChaosError as error:
            log.note(error=f"{type(error).__name__}: {error}")
            self.tell(f"{step.fault.describe()} failed: {error}")
            whole = self._undo()
            # A fault that was never applied is healed when nothing of it is left; one that failed to heal is not.
            if log.applied.applied_ns is None and whole:
                log.note(healed_ns=time.monotonic_ns())
        except BaseException as error:
            # The history needs the fault also when it was cut short: the subject met it.
            log.note(error=f"cut short: {type(error).__name__}")
            raise
        finally:
            self.record(log.applied)
        return log.applied

    def _undo(self) -> bool:
        """Open every link and start every broker that is down, after a fault that failed half-way; whether it worked."""
        cluster = self.arena.cluster
        with suppress(ChaosError):
            cluster.links.heal()
        for broker in cluster.brokers:
            with suppress(ChaosError):
                if not cluster.is_running(broker):
                    cluster.start(broker)
        with suppress(ChaosError):
            return cluster.links.is_healed() and all(cluster.is_running(broker) for broker in cluster.brokers)
        return False

    def _strike(self, step: Step, log: _StepLog, release: Callable[[], None]) -> None:
        if step.let_go_first:
            self._let_go()
        log.note(struck_ns=time.monotonic_ns())
        injection = step.fault.inject(self.arena)
        log.note(
            target=injection.target,
            applied_ns=time.monotonic_ns(),
            processes=injection.processes,
            partitions=tuple(map(str, injection.partitions)),
            releases={str(node): release for node, release in injection.releases.items()},
            levels=dict(injection.levels),
            met=injection.met,
        )
        self.tell(f"{step.fault.describe()}: {injection.target}")
        try:
            proof = self._await_proof(injection.confirm, step.confirm_within_s)
            confirmed_ns = time.monotonic_ns()
            # Counted now and not when it struck: operations that ended just before are reported a moment later.
            needed = self.ended() + self.meets
            release()
            if proof is not None:
                log.note(confirmed_ns=confirmed_ns, proof=proof, healed_ns=None if injection.lasts else confirmed_ns)
                self.tell(f"confirmed: {proof}")
                self.wait(step.hold_s)
                self._await_attempts(needed)
            else:
                self.tell(f"not confirmed within {step.confirm_within_s:g} s")
                injection.late()
        finally:
            injection.heal()
            if step.let_go_first:
                # Now that brokers are back: Toxiproxy did not answer for 5 s when asked before.
                self.arena.cluster.links.heal()
            if log.applied.healed_ns is None:
                log.note(healed_ns=time.monotonic_ns())

    def _let_go(self) -> None:
        """Let the producers go, one after the other; return when the last one has requested its commit.

        Brokers reach each other slowly from now on, so the last commits are without an answer when the fault strikes. The
        evidence says whether they were: `undecided_at_strike`.
        """
        clients, links = self.arena.clients, self.arena.cluster.links
        for link in BetweenBrokers(AllBrokers(), AllBrokers()).resolve(self.arena):
            links.degrade(link, latency_ms=SLOWED_MS)
        # Their records are acknowledged already, so that a commit is the next request of each. Plain ones have none.
        held = tuple(each for each in clients.alive("producer") if each.transactional_id is not None)
        if not held:
            raise UnresolvedTargetError("no transactional producer is running that could commit")
        for each in held:
            clients.release((each,))
            self.wait(LET_GO_EVERY_S)
        if not clients.await_deciding(held[-1:], timeout_s=DECIDE_WITHIN_S):
            self.tell(f"process {held[-1].process} has not requested its commit within {DECIDE_WITHIN_S:g} s")

    def _await_attempts(self, needed: int) -> None:
        deadline = time.monotonic() + STANDS_LONGER_S
        while self.attempted() < needed and time.monotonic() < deadline:
            self.wait(LOOK_EVERY_S)

    def _await_proof(self, confirm: Callable[[], str | None], within_s: float) -> str | None:
        deadline = time.monotonic() + within_s
        while True:
            proof = confirm()
            if proof is not None or time.monotonic() > deadline:
                return proof
            self.wait(LOOK_EVERY_S)

    @contextmanager
    def _held(self, number: int, step: Step, log: _StepLog) -> Iterator[Callable[[], None]]:
        """Hold every transactional producer at the step's point. The yielded call releases them, and so does the end."""
        if step.while_held is None:
            yield lambda: None
            return
        clients = self.arena.clients

        def release() -> None:
            clients.release(clients.alive("producer"))

        let_go = Timer(HOLD_SOME_S, release)
        try:
            if step.holding:
                held = self._hold_some(step.while_held, step.holding, first=number)
                clients.dismiss(held[: step.leaving])
                log.note(held=tuple(each.process for each in held))
                let_go.start()
            else:
                clients.dismiss(self._hold(step.while_held)[: step.leaving])
            yield release
        finally:
            let_go.cancel()
            release()

    def _hold_some(self, point: SyncPoint, count: int, *, first: int) -> tuple[ClientProcess, ...]:
        """Hold so many producers and return them, another one first at every step; fewer where they do not get there."""
        clients = self.arena.clients
        producers = [each for each in clients.alive("producer") if each.transactional_id is not None]
        turn = first % max(1, len(producers))
        held: list[ClientProcess] = []
        for each in (*producers[turn:], *producers[:turn]):
            if len(held) < count:
                with suppress(SyncPointError, UnknownClientError):
                    clients.hold(point, processes=(each,), timeout_s=HOLD_ONE_WITHIN_S)
                    held.append(each)
        return tuple(held)

    def _hold(self, point: SyncPoint) -> tuple[ClientProcess, ...]:
        """Hold every transactional producer and return them.

        A producer that has waited for an answer since an earlier fault may retire now. Its successor is held instead.
        Raises SyncPointError and UnknownClientError where all are alive, or too much time has passed.
        """
        clients, end_s = self.arena.clients, time.monotonic() + HOLD_WITHIN_S
        while True:
            processes = tuple(each for each in clients.alive("producer") if each.transactional_id is not None)
            try:
                clients.hold(point, processes=processes, timeout_s=end_s - time.monotonic())
            except (SyncPointError, UnknownClientError):
                gone = set(processes) - set(clients.alive("producer"))
                if not gone or time.monotonic() > end_s:
                    raise
                self.wait(LOOK_EVERY_S)
            else:
                return processes
