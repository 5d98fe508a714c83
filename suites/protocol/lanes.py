"""Several clusters at a time: most of what protocol cases do is wait, for a timeout, an expiry or a broker that returns.

Cases that need the same cluster form queues; a lane takes a queue, starts its cluster, performs the cases in order, and
takes the next one. The largest clusters come first, because what is begun last is waited for alone. Cases know nothing
of each other: their topics, groups and ids have names of their own, and a lane has its clusters for itself.

Who asks for an outcome waits for it. `close` lets no case begin, takes the clusters away from those that run, so that
they end, and removes what they left, which nobody asked about: a case that was interrupted says nothing.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

from fixtures.waiting import WaitedInVainError
from suites.protocol.sweep import ENVIRONMENT_ERRORS, Case
from verification.script import ScriptVerdict

#: Two cores are busy with three clusters of which most wait; a fourth only makes short timeouts unreliable.
LANES = 3
#: A longer queue is cut, at the price of one more start of its cluster (5 to 12 s).
QUEUE_MOST = 40
#: No case waits longer for anything than a minute, and one without its cluster fails at its next request.
ENDED_WITHIN_S = 90.0


class Asked(Protocol):
    """What is asked for a case to be performed; `Sweep` in a run."""

    def perform(self, case: Case) -> ScriptVerdict:
        """Perform a case."""

    def discard(self, case: Case) -> None:
        """Remove what a case has left."""

    def close(self) -> None:
        """End what it started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a case ended: the verdict, or what kept it from leaving a script."""

    seconds: float
    verdict: ScriptVerdict | None = None
    broke: str = ""


def queues(cases: Sequence[Case]) -> list[list[Case]]:
    """The cases by cluster, those that come first in the order in which lanes take them. The order of `cases` is kept."""
    found: list[list[Case]] = []
    by_cluster = sorted(cases, key=lambda case: (-case.needs.brokers, case.needs.describe()))
    for _, group in groupby(by_cluster, key=lambda case: case.needs.describe()):
        alike = list(group)
        found += [alike[first : first + QUEUE_MOST] for first in range(0, len(alike), QUEUE_MOST)]
    return found


class Lanes:
    """Performs cases ahead of whoever asks for their outcomes; `sweep` makes what a lane performs with, by its number."""

    def __init__(self, cases: Sequence[Case], sweep: Callable[[int], Asked], *, lanes: int = LANES) -> None:
        self._outcomes: dict[str, Future[Outcome]] = {case.key: Future() for case in cases}
        self._queues = deque(queues(cases))
        self._stopping = threading.Event()
        self._sweeps = [sweep(number) for number in range(min(lanes, len(self._queues)))]
        self._threads = [
            threading.Thread(target=self._run, args=(each,), name=f"lane-{number}", daemon=True)
            for number, each in enumerate(self._sweeps)
        ]
        for thread in self._threads:
            thread.start()

    def outcome(self, case: Case) -> Outcome:
        """Wait until a case has ended. Raises whatever no case may raise."""
        return self._outcomes[case.key].result()

    def _run(self, sweep: Asked) -> None:
        while not self._stopping.is_set():
            try:
                queue = self._queues.popleft()
            except IndexError:
                return
            for case in queue:
                if self._stopping.is_set():
                    return
                self._perform(sweep, case)

    def _perform(self, sweep: Asked, case: Case) -> None:
        began = time.monotonic()
        try:
            verdict = sweep.perform(case)
            outcome = Outcome(seconds=time.monotonic() - began, verdict=verdict)
        except ENVIRONMENT_ERRORS as error:
            outcome = Outcome(seconds=time.monotonic() - began, broke=str(error))
        except BaseException as error:  # noqa: BLE001 - whoever waits for the outcome must learn of it
            self._outcomes[case.key].set_exception(error)
            return
        if self._stopping.is_set():
            sweep.discard(case)
        self._outcomes[case.key].set_result(outcome)

    def close(self) -> None:
        """End every lane and its cluster. Raises what ending a cluster raises, and WaitedInVainError."""
        self._stopping.set()
        errors = self._end_clusters()
        end_s = time.monotonic() + ENDED_WITHIN_S
        for thread in self._threads:
            thread.join(max(0.0, end_s - time.monotonic()))
        # A lane that was between two cases may have begun one more cluster.
        errors += self._end_clusters()
        if late := [thread.name for thread in self._threads if thread.is_alive()]:
            errors.append(
                WaitedInVainError(f"Waited {ENDED_WITHIN_S:.0f} s for the cases of {', '.join(late)} to end.")
            )
        if errors:
            raise errors[0]

    def _end_clusters(self) -> list[Exception]:
        """End the cluster of every lane, whatever comes of the others; what went wrong."""
        errors: list[Exception] = []
        for sweep in self._sweeps:
            try:
                sweep.close()
            except ENVIRONMENT_ERRORS as error:
                errors.append(error)
        return errors
