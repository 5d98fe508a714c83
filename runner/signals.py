"""Handles Ctrl-C and SIGTERM: they stop a run at once, and are only counted while the run is ending.

A KeyboardInterrupt while clusters are closed or the report is written would leave a stack trace, running processes and
no report. Ending is bounded, so it is finished. Only a judgement may take long: a second request skips it. If something
hangs nevertheless, the fourth request is raised.

SIGTERM may come several times for one request: `timeout` sends it to its child and then to its process group, and tox
passes it on. None of these may skip a judgement.
"""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

#: SIGTERM that follows SIGTERM within this time belongs to the same request. They come within a millisecond; the rest is
#: for a busy machine.
SAME_WITHIN_S = 5.0


class StopRequests:
    """The signal handler of a run: counts the requests, and raises KeyboardInterrupt at each.

    The exception alone can get lost: a handler runs wherever the main thread is, and Python drops an exception inside
    of a finalizer. Without the count, such a run would go on and end as if it were complete.

    `end_early` may bring what runs to its normal end, and says whether it does. Then the request interrupts nothing and is
    not counted. It is asked once.
    """

    def __init__(self, count: int = 0) -> None:
        self.count = count
        self.end_early: Callable[[], bool] | None = None
        self.ended_early = False
        self._terminated_at = -math.inf

    def note(self, number: int) -> bool:
        """Count a signal; whether it is a further request."""
        if number == signal.SIGTERM:
            before, self._terminated_at = self._terminated_at, time.monotonic()
            if self._terminated_at - before < SAME_WITHIN_S:
                return False
        end_early, self.end_early = self.end_early, None
        if end_early is not None and end_early():
            self.ended_early = True
            return False
        self.count += 1
        return True

    def __call__(self, number: int, _: object) -> None:
        """Note it, and raise KeyboardInterrupt for a further request."""
        if self.note(number):
            raise KeyboardInterrupt


#: The request that ends the run at once, with a KeyboardInterrupt.
OBEYED_AT = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class DeferredSignals:
    """The requests so far; `again` is called at each of them but the first."""

    requests: StopRequests
    again: Callable[[], None]

    @property
    def asked(self) -> int:
        """The number of requests so far."""
        return self.requests.count

    def note(self, number: int, _: object) -> None:
        """The signal handler. It may not print: the interrupted code may be printing."""
        if not self.requests.note(number):
            return
        if self.asked >= OBEYED_AT:
            raise KeyboardInterrupt
        if self.asked > 1:
            self.again()


@contextmanager
def deferred(
    *, asked: int = 0, again: Callable[[], None] = lambda: None, requests: StopRequests | None = None
) -> Iterator[DeferredSignals]:
    """Count SIGINT and SIGTERM instead of raising KeyboardInterrupt.

    The requests before are `requests`; if there were none, `asked` is their number.
    """
    interrupts = DeferredSignals(requests=requests if requests and requests.count else StopRequests(asked), again=again)
    handlers = {number: signal.signal(number, interrupts.note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupts
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
