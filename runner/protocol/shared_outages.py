"""A company: cases of one cluster that go through the outages of its brokers together.

To start a broker again takes more processor time than all the requests of a case. Cases whose brokers are to go in the
same way share that. Each is performed up to the moment at which its broker is to go, one after the other; the broker
goes, once; each does what it does meanwhile, one after the other; the broker comes back, once; and each goes on to its
end. Never are two of them performed at a time, and what one finds of the others is what every case finds on a cluster
that others have used: topics, ids and groups of other names.

A case is written as if it were alone, and alone it is performed in the very same way. `@shares("stopped")` above it says
that others may go through its outage with it, `time_critical=True` that its time runs from its first request on: it begins
last and goes on first. Where what the outage is about changes while others are waited for nothing is shared; what the
cleaner must keep it must keep that long as well. Should an outage not come off, or brokers not come back, nobody knows
whose fault that is, and whoever it broke is performed alone.

A mark that no other case of the cluster has shares nothing: it says that the broker comes back, and such a case is
performed early, before there are many logs to load (`lanes.py`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

from runner.protocol.toolkit.outage import OutageEvent

#: The outages that cases share, in the order in which a company goes through them. Who shares a later one begins when
#: those before it are over: a broker that is to be killed has not been stopped cleanly on the way.
OUTAGES = ("stopped", "crashed", "controller crashed", "all crashed", "isolated")

Result = TypeVar("Result")


class OutageError(Exception):
    """What was to happen to all members of a company together did not."""


class Participant(Generic[Result]):
    """A case in a company: a thread of its own performs it, and stands still while it is not the member's turn."""

    def __init__(
        self, shares: Sequence[str], play: Callable[[Participant[Result]], Result], *, time_critical: bool
    ) -> None:
        self.shares, self.time_critical = tuple(shares), time_critical
        self.ended: Future[Result] = Future()
        self.wanted: OutageEvent | None = None
        """What it waits for; None before it begins, while it is performed, and when it has ended."""
        self.waited_s = 0.0
        self.outage_failed = False
        """Whether something that was to happen to all did not, so that it was not begun or could not go on."""
        self._failure: Exception | None = None
        self._away = False
        self._gone = 0
        self._turn, self._rest = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, args=(play,), name="member", daemon=True)

    @property
    def outage(self) -> str:
        """The outage that it is in or waits for; empty when it has had all that it shares."""
        return self.shares[self._gone] if self._gone < len(self.shares) else ""

    def begin(self) -> None:
        """Perform it until it waits for the others or has ended."""
        self._thread.start()
        self._rest.acquire()

    def refuse(self, failure: Exception) -> None:
        """Let it end before it begins, because something that was to happen to the others failed for this reason."""
        self.outage_failed = True
        self.ended.set_exception(OutageError(f"not begun: {failure}"))

    def go_on(self, failure: Exception | None) -> None:
        """Let it go on until it waits again or has ended: what it waited for has happened, or failed for this reason."""
        if failure is None:
            self._gone += self._away
            self._away = not self._away
        else:
            self.outage_failed = True
        self.wanted, self._failure = None, failure
        self._turn.release()
        self._rest.acquire()

    def meet(self, moment: OutageEvent) -> None:
        """Wait until a moment has come for everybody; asked by the member itself. Raises OutageError."""
        began = time.monotonic()
        self.wanted = moment
        self._rest.release()
        self._turn.acquire()
        self.waited_s += time.monotonic() - began
        if self._failure is not None:
            raise OutageError(f"{moment.what}: {self._failure}") from self._failure

    def _run(self, play: Callable[[Participant[Result]], Result]) -> None:
        try:
            self.ended.set_result(play(self))
        except BaseException as error:  # noqa: BLE001 - whoever asks for the result must learn of it
            self.ended.set_exception(error)
        finally:
            self._rest.release()


def perform(members: Sequence[Participant[Result]]) -> None:
    """Perform the members to their ends; those whose ends are not their own are `outage_failed`."""
    failure: Exception | None = None
    members = sorted(members, key=lambda each: each.time_critical)
    for outage in OUTAGES:
        for each in [each for each in members if each.shares[:1] == (outage,)]:
            if failure is None:
                each.begin()
            else:
                each.refuse(failure)
        while here := [each for each in members if each.wanted is not None and each.outage == outage]:
            failure = _met(here, failure)
    # Whoever goes through more outages than it shares goes through them alone.
    while left := [each for each in members if each.wanted is not None]:
        failure = _met(left[:1], failure)


def _met(members: Sequence[Participant[Result]], failure: Exception | None) -> Exception | None:
    """Let happen what the members wait for, once, and let all of them go on, the last one first; why it did not.

    Nothing happens any more after a `failure`.
    """
    moment, *others = [each.wanted for each in members if each.wanted is not None]
    if failure is not None:
        pass
    elif different := sorted({each.what for each in others} - {moment.what}):
        failure = OutageError(f"others that share it wait for {', '.join(different)}")
    else:
        try:
            moment.act()
        except Exception as error:  # noqa: BLE001 - every member is told, and says so in its script
            failure = error
    for each in reversed(members):
        each.go_on(failure)
    return failure
