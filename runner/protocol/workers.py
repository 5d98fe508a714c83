"""Performs cases on several clusters at a time, because cases mostly wait: for a timeout, an expiry or a returning broker.

Cases that need the same cluster form a queue. A worker empties one queue, so that its cluster serves all of it. Then it
takes a queue that no worker has begun. At last it helps with a long queue, on a cluster of its own. The largest clusters
come first, because the last queue runs alone. Cases do not affect each other: their topics, groups and ids have names of
their own, and a worker shares its clusters with no other. Cases that share the outages of their brokers are taken
together (`shared_outages.py`).

`outcome` waits until its case has ended. `close` lets no further case begin and takes the clusters away, so that running
cases end. It removes the files that these leave, because an interrupted case decides nothing.
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
from runner.protocol.case_runner import CaseResult, ProtocolCase

#: Three clusters, most of which wait, keep two cores busy. A fourth only makes short timeouts unreliable.
WORKERS = 3
#: A second cluster of a kind is worth its start if so many cases are left. The start costs as much processor time as ten
#: cases.
HELPED_FROM = 20
#: A case waits at most a minute for anything, and without its cluster it fails at its next request.
ENDED_WITHIN_S = 90.0


class CasePerformer(Protocol):
    """Performs cases on a cluster of its own; a `CaseRunner` in a run."""

    def perform_together(self, cases: Sequence[ProtocolCase]) -> list[CaseResult]:
        """Perform cases that share their outages, or a single one; returns how each ended."""

    def discard(self, case: ProtocolCase) -> None:
        """Remove the files of a case."""

    def close(self) -> None:
        """End the cluster."""


@dataclass(slots=True)
class Queue:
    """The cases of one kind of cluster, in groups that are performed together; `begun` once a worker has taken one."""

    left: deque[list[ProtocolCase]]
    begun: bool = field(default=False, init=False)

    @property
    def cases(self) -> list[ProtocolCase]:
        """The cases that are left, in the order in which they are taken."""
        return [case for group in self.left for case in group]


def queues(cases: Sequence[ProtocolCase]) -> list[Queue]:
    """The cases by cluster, in the order in which workers begin them.

    Within a queue, groups that share outages come first, because they take longest. Cases that go through an outage
    alone follow: a broker that comes back loads the logs of all cases before. Else the order of `cases` is kept.
    """
    by_cluster = sorted(cases, key=lambda case: (-case.needs.brokers, case.needs.describe()))
    alike = [list(group) for _, group in groupby(by_cluster, key=lambda case: case.needs.describe())]
    # A long queue is begun early: other workers can help with it.
    alike.sort(key=lambda group: (-group[0].needs.brokers, -len(group)))
    return [Queue(deque(sorted(sharing_groups(group), key=_when))) for group in alike]


def sharing_groups(cases: Sequence[ProtocolCase]) -> list[list[ProtocolCase]]:
    """The cases of one cluster in groups that share an outage, directly or through a third case; the order is kept."""
    found: list[list[ProtocolCase]] = []
    for case in cases:
        joined = [each for each in found if any(set(other.shares) & set(case.shares) for other in each)]
        found = [each for each in found if each not in joined]
        found.append([*(other for each in joined for other in each), case])
    places = {case.key: number for number, case in enumerate(cases)}
    return sorted(found, key=lambda group: places[group[0].key])


def _when(group: Sequence[ProtocolCase]) -> tuple[int, bool]:
    return -len(group), not group[0].shares


class WorkerPool:
    """Performs cases in threads, before their outcomes are asked for; `performer` makes that of a worker, by its number."""

    def __init__(
        self, cases: Sequence[ProtocolCase], performer: Callable[[int], CasePerformer], *, workers: int = WORKERS
    ) -> None:
        self._outcomes: dict[str, Future[CaseResult]] = {case.key: Future() for case in cases}
        self._queues = queues(cases)
        self._taking = threading.Lock()
        self._stopping = threading.Event()
        self._errors: list[Exception] = []
        self._performers = [performer(number) for number in range(min(workers, len(cases)))]
        self._threads = [
            threading.Thread(target=self._run, args=(each,), name=f"worker-{number}", daemon=True)
            for number, each in enumerate(self._performers)
        ]
        for thread in self._threads:
            thread.start()

    def outcome(self, case: ProtocolCase) -> CaseResult:
        """Wait until a case has ended. Raises the error of a performer that failed."""
        return self._outcomes[case.key].result()

    def _run(self, performer: CasePerformer) -> None:
        queue = None
        while not self._stopping.is_set():
            queue, group = self._next(queue)
            if not group:
                # Here and not in `close`, because other workers go on: ending a cluster and removing its data takes seconds.
                self._errors += _ended(performer)
                return
            self._perform(performer, group)

    def _next(self, own: Queue | None) -> tuple[Queue | None, list[ProtocolCase]]:
        """The next group for a worker with the cluster of queue `own`; empty if too few cases are left to help with."""
        with self._taking:
            fresh = [each for each in self._queues if not each.begun]
            many = [each for each in self._queues if len(each.cases) >= HELPED_FROM]
            many.sort(key=lambda each: len(each.cases), reverse=True)
            for queue in [*filter(None, [own]), *fresh, *many]:
                if queue.left:
                    queue.begun = True
                    return queue, queue.left.popleft()
            return None, []

    def _perform(self, performer: CasePerformer, group: list[ProtocolCase]) -> None:
        try:
            ended = performer.perform_together(group)
        except BaseException as error:  # noqa: BLE001 - `outcome` raises it to its caller
            for case in group:
                self._outcomes[case.key].set_exception(error)
            return
        for case, outcome in zip(group, ended, strict=True):
            if self._stopping.is_set():
                performer.discard(case)
            self._outcomes[case.key].set_result(outcome)

    def close(self) -> None:
        """End every worker and its cluster. Raises the first error of ending a cluster, or WaitTimeoutError."""
        self._stopping.set()
        for each in self._performers:
            self._errors += _ended(each)
        end_s = time.monotonic() + ENDED_WITHIN_S
        for thread in self._threads:
            thread.join(max(0.0, end_s - time.monotonic()))
        # A worker that was between two cases may have begun one more cluster.
        for each in self._performers:
            self._errors += _ended(each)
        if late := [thread.name for thread in self._threads if thread.is_alive()]:
            self._errors.append(
                WaitTimeoutError(
                    f"Timed out after {ENDED_WITHIN_S:.0f} s waiting for the cases of {', '.join(late)} to end."
                )
            )
        if self._errors:
            raise self._errors[0]


def _ended(performer: CasePerformer) -> list[Exception]:
    """End the cluster of a worker; returns an error, so that the other clusters are ended as well."""
    try:
        performer.close()
    except ENVIRONMENT_ERRORS as error:
        return [error]
    return []
