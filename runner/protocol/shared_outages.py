"""Performs cases of one cluster that go through the same outages of its brokers together.

Starting a broker again takes more processor time than all the requests of a case, so cases with equal outages share them.
Each case runs in a greenlet, all of them in one thread. A case runs until its broker is to go, then the next case runs.
When all of them wait, the broker goes, once. Each case does its part of the outage, one after the other. Then the broker
comes back, once, and each case goes on to its end. Two cases never run at the same time. A case sees of the others what
every case sees on a cluster that was used before: topics, ids and groups of other names.

A case is written as if it ran alone. Running alone needs no other code. `@shares("stopped")` above it lets other cases go
through its outage with it. `time_critical=True` means that its time runs from its first request on: it begins last and
goes on first. A case shares nothing if waiting for others would change the subject of its outage. Records that the
cleaner must keep have to outlast that wait as well.

If an outage fails or brokers do not come back, any of the cases may be the cause. Each case that this breaks is then
performed again, alone.

A case may be the only one of its cluster with an outage. It shares nothing then, but it is performed early, before there
are many logs to load (`queues.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

from greenlet import greenlet

from runner.protocol.toolkit.outage import OutageEvent

#: The outages that cases share, in the order in which they happen. A case that shares only a later one begins after those
#: before it: a broker that is to be killed was not stopped cleanly since the case began.
OUTAGES = ("stopped", "crashed", "controller crashed", "all crashed", "isolated", "leader crashed")

Result = TypeVar("Result")


class OutageError(Exception):
    """An outage event that cases share failed."""


class Participant(Generic[Result]):
    """A case that shares outages. It waits at each outage event until it is resumed."""

    def __init__(
        self, shares: Sequence[str], play: Callable[[Participant[Result]], Result], *, time_critical: bool
    ) -> None:
        self.shares, self.time_critical = tuple(shares), time_critical
        self.ended: Future[Result] = Future()
        self.awaited: OutageEvent | None = None
        """The event that it waits for; None before it begins, while it runs, and after its end."""
        self.waited_s = 0.0
        self.outage_failed = False
        """Whether a shared event failed, so that the case did not begin or could not go on."""
        self._play = play
        self._events = 0
        self._greenlet = greenlet(self._run)

    @property
    def outage(self) -> str:
        """The shared outage that it is in or waits for; empty after the last one."""
        number = self._events // 2  # an outage has two events: brokers go, and brokers come back
        return self.shares[number] if number < len(self.shares) else ""

    def resume(self, failure: Exception | None) -> None:
        """Perform it up to its next event or its end; `failure` says why the event before did not happen."""
        if failure is not None:
            self.outage_failed = True
        elif self.awaited is not None:
            self._events += 1
        self.awaited = None
        self._greenlet.switch(failure)

    def await_event(self, event: OutageEvent) -> None:
        """Wait until an event has happened for all cases; called by the case itself. Raises OutageError."""
        began = time.monotonic()
        self.awaited = event
        failure: Exception | None = self._greenlet.parent.switch()
        self.waited_s += time.monotonic() - began
        if failure is not None:
            raise OutageError(f"{event.name}: {failure}") from failure

    def _run(self, failure: Exception | None) -> None:
        if failure is not None:
            self.ended.set_exception(OutageError(f"not begun: {failure}"))
            return
        try:
            self.ended.set_result(self._play(self))
        except BaseException as error:  # noqa: BLE001 - `ended` raises it to its reader
            self.ended.set_exception(error)


def perform(participants: Sequence[Participant[Result]]) -> None:
    """Perform all participants to their ends; those that a failed outage ended have `outage_failed`."""
    failure: Exception | None = None
    participants = sorted(participants, key=lambda each: each.time_critical)
    for outage in OUTAGES:
        for each in participants:
            if each.shares[:1] == (outage,):
                each.resume(failure)
        while waiting := [each for each in participants if each.awaited is not None and each.outage == outage]:
            failure = _act(waiting, failure)
    # A case goes alone through outages that it has and does not share.
    while waiting := [each for each in participants if each.awaited is not None]:
        failure = _act(waiting[:1], failure)


def _act(waiting: Sequence[Participant[Result]], failure: Exception | None) -> Exception | None:
    """Act once for all that wait, then resume them, the last one first; returns why it failed.

    Nothing is done any more after a `failure`.
    """
    event, *others = [each.awaited for each in waiting if each.awaited is not None]
    different = sorted({each.name for each in others} - {event.name})
    if failure is None and different:
        failure = OutageError(f"others that share it wait for {', '.join(different)}")
    elif failure is None:
        try:
            event.act()
        except Exception as error:  # noqa: BLE001 - every participant gets it, and its script says so
            failure = error
    for each in reversed(waiting):
        each.resume(failure)
    return failure
