"""Handles Ctrl-C: it stops a run at once, and is only counted while the run is ending.

A KeyboardInterrupt while clusters are closed or the report is written would leave a stack trace, running processes and
no report. Ending is bounded, so it is finished. Only a judgement may take long: a second Ctrl-C skips it. If something
hangs nevertheless, the fourth Ctrl-C is raised.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


class StopRequests:
    """The signal handler of a run: counts the signals, and raises KeyboardInterrupt.

    The exception alone can get lost: a handler runs wherever the main thread is, and Python drops an exception inside
    of a finalizer. Without the count, such a run would go on and end as if it were complete.
    """

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, *_: object) -> None:
        """Note it and raise KeyboardInterrupt."""
        self.count += 1
        raise KeyboardInterrupt


#: The Ctrl-C that ends the run at once, with a KeyboardInterrupt.
OBEYED_AT = 4


@dataclass
class DeferredSignals:
    """The number of signals so far; `again` is called at each of them but the first."""

    again: Callable[[], None]
    asked: int = 0

    def note(self, *_: object) -> None:
        """The signal handler. It may not print: the interrupted code may be printing."""
        self.asked += 1
        if self.asked >= OBEYED_AT:
            raise KeyboardInterrupt
        if self.asked > 1:
            self.again()


@contextmanager
def deferred(*, asked: int = 0, again: Callable[[], None] = lambda: None) -> Iterator[DeferredSignals]:
    """Count SIGINT and SIGTERM instead of raising KeyboardInterrupt; `asked` is the number of signals before."""
    interrupts = DeferredSignals(again=again, asked=asked)
    handlers = {number: signal.signal(number, interrupts.note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupts
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
