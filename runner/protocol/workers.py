"""Several clusters at a time: most of what protocol cases do is wait, for a timeout, an expiry or a broker that returns.

Cases that need the same cluster form a queue. A lane takes from one queue for as long as there is something in it, so
that its cluster serves all of that, then from one that nobody has begun, and at last it helps where much is left, on a
cluster of its own. The largest clusters come first, because what is begun last is waited for alone. Cases know nothing
of each other: their topics, groups and ids have names of their own, and a lane has its clusters for itself. Those that
share the outages of their brokers are taken together (`company.py`).

Who asks for an outcome waits for it. `close` lets no case begin, takes the clusters away from those that run, so that
they end, and removes what they left, which nobody asked about: a case that was interrupted says nothing.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import groupby
from typing import Protocol

from fixtures.waiting import WaitTimeoutError
from runner.errors import ENVIRONMENT_ERRORS
from runner.protocol.case_runner import Case, Outcome

#: Two cores are busy with three clusters of which most wait; a fourth only makes short timeouts unreliable.
WORKERS = 3
#: So many cases must be left for a second cluster of their kind to be worth its start, which costs as much processor
#: time as ten of them.
HELPED_FROM = 20
#: No case waits longer for anything than a minute, and one without its cluster fails at its next request.
ENDED_WITHIN_S = 90.0


class Asked(Protocol):
    """What is asked for cases to be performed; `CaseRunner` in a run."""

    def perform_together(self, cases: Sequence[Case]) -> list[Outcome]:
        """Perform cases that share their outages, or a single one; how each of them ended."""

    def discard(self, case: Case) -> None:
        """Remove what a case has left."""

    def close(self) -> None:
        """End what it started."""


@dataclass(slots=True)
class Queue:
    """The cases of one kind of cluster, those that are performed together side by side; `begun` by some lane or not."""

    left: deque[list[Case]]
    begun: bool = field(default=False, init=False)

    @property
    def cases(self) -> list[Case]:
        """Those that are left, in the order in which they are taken."""
        return [case for together in self.left for case in together]


def queues(cases: Sequence[Case]) -> list[Queue]:
    """The cases by cluster, in the order in which lanes begin them.

    Within a queue those that share outages come first, as they take longest, then those that go through one alone: a
    broker that comes back loads the logs of all cases before. Else the order of `cases` is kept.
    """
    by_cluster = sorted(cases, key=lambda case: (-case.needs.brokers, case.needs.describe()))
    alike = [list(group) for _, group in groupby(by_cluster, key=lambda case: case.needs.describe())]
    # One that is long is begun early: others can help with it.
    alike.sort(key=lambda group: (-group[0].needs.brokers, -len(group)))
    return [Queue(deque(sorted(companies(group), key=_when))) for group in alike]


def companies(cases: Sequence[Case]) -> list[list[Case]]:
    """Cases of one cluster, those together that share an outage, directly or with others between; the order is kept."""
    found: list[list[Case]] = []
    for case in cases:
        joined = [each for each in found if any(set(other.shares) & set(case.shares) for other in each)]
        found = [each for each in found if each not in joined]
        found.append([*(other for each in joined for other in each), case])
    places = {case.key: number for number, case in enumerate(cases)}
    return sorted(found, key=lambda together: places[together[0].key])


def _when(together: Sequence[Case]) -> tuple[int, bool]:
    return -len(together), not together[0].shares


class WorkerPool:
    """Performs cases ahead of whoever asks for their outcomes; `sweep` makes what a lane performs with, by its number."""

    def __init__(self, cases: Sequence[Case], sweep: Callable[[int], Asked], *, workers: int = WORKERS) -> None:
        self._outcomes: dict[str, Future[Outcome]] = {case.key: Future() for case in cases}
        self._queues = queues(cases)
        self._taking = threading.Lock()
        self._stopping = threading.Event()
        self._errors: list[Exception] = []
        self._sweeps = [sweep(number) for number in range(min(workers, len(cases)))]
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
        queue = None
        while not self._stopping.is_set():
            queue, together = self._next(queue)
            if not together:
                # While others go on: to end a cluster and remove its data takes seconds.
                self._errors += _ended(sweep)
                return
            self._perform(sweep, together)

    def _next(self, own: Queue | None) -> tuple[Queue | None, list[Case]]:
        """What a lane takes that has the cluster of a queue; nothing where what is left is not worth its help."""
        with self._taking:
            fresh = [each for each in self._queues if not each.begun]
            many = [each for each in self._queues if len(each.cases) >= HELPED_FROM]
            many.sort(key=lambda each: len(each.cases), reverse=True)
            for queue in [*filter(None, [own]), *fresh, *many]:
                if queue.left:
                    queue.begun = True
                    return queue, queue.left.popleft()
            return None, []

    def _perform(self, sweep: Asked, together: list[Case]) -> None:
        try:
            ended = sweep.perform_together(together)
        except BaseException as error:  # noqa: BLE001 - whoever waits for the outcome must learn of it
            for case in together:
                self._outcomes[case.key].set_exception(error)
            return
        for case, outcome in zip(together, ended, strict=True):
            if self._stopping.is_set():
                sweep.discard(case)
            self._outcomes[case.key].set_result(outcome)

    def close(self) -> None:
        """End every lane and its cluster. Raises what ending a cluster raises, and WaitTimeoutError."""
        self._stopping.set()
        for each in self._sweeps:
            self._errors += _ended(each)
        end_s = time.monotonic() + ENDED_WITHIN_S
        for thread in self._threads:
            thread.join(max(0.0, end_s - time.monotonic()))
        # A lane that was between two cases may have begun one more cluster.
        for each in self._sweeps:
            self._errors += _ended(each)
        if late := [thread.name for thread in self._threads if thread.is_alive()]:
            self._errors.append(
                WaitTimeoutError(f"Waited {ENDED_WITHIN_S:.0f} s for the cases of {', '.join(late)} to end.")
            )
        if self._errors:
            raise self._errors[0]


def _ended(sweep: Asked) -> list[Exception]:
    """End the cluster of a lane; what went wrong, which keeps nobody from ending the others."""
    try:
        sweep.close()
    except ENVIRONMENT_ERRORS as error:
        return [error]
    return []
