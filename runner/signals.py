"""Ctrl-C while a run is ending: noted instead of raised.

A KeyboardInterrupt in the middle of closing clusters or writing the report would leave a stack trace, half of what was
started, and no report. Ending is bounded, so it is finished; the exception is what may last, and whoever asks a second
time does not want to wait for that. Should something hang all the same, insisting helps.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


class StopRequests:
    """The signal handler of a run: counts how often it was asked to end, and raises KeyboardInterrupt.

    The exception alone can get lost: Python drops what a finalizer raises, and handlers run wherever the main thread is.
    A run that was asked to end and does not know it would go on, and end as if it were complete.
    """

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, *_: object) -> None:
        """Note it and raise KeyboardInterrupt."""
        self.count += 1
        raise KeyboardInterrupt


#: Nobody presses Ctrl-C so often who can still wait.
OBEYED_AT = 4


@dataclass
class DeferredSignals:
    """How often somebody asked the run to end; `again` is called each time but the first."""

    again: Callable[[], None]
    asked: int = 0

    def note(self, *_: object) -> None:
        """A signal handler. It may not print: the interrupted code may be in the middle of doing so."""
        self.asked += 1
        if self.asked >= OBEYED_AT:
            raise KeyboardInterrupt
        if self.asked > 1:
            self.again()


@contextmanager
def deferred(*, asked: int = 0, again: Callable[[], None] = lambda: None) -> Iterator[DeferredSignals]:
    """Note SIGINT and SIGTERM instead of raising KeyboardInterrupt; `asked` is how often that was done before."""
    interrupts = DeferredSignals(again=again, asked=asked)
    handlers = {number: signal.signal(number, interrupts.note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupts
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
