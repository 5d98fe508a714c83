"""Lanes perform scenarios and protocol cases side by side, because they mostly wait: for a fault, a timeout or a broker.

A lane is a thread with a cluster of its own. Tasks that can follow each other on one cluster form a queue. A lane empties
one queue, so that its cluster serves all of it. Then it takes a queue that no lane has begun. At last it helps with a
long queue, on a cluster of its own.

Each task has a future from the beginning. `close` lets no further task begin, interrupts the running ones, and ends the
clusters. It removes the files of interrupted tasks where these decide nothing.
"""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from fixtures.waiting import WaitTimeoutError
from runner.errors import ENVIRONMENT_ERRORS

LOG = logging.getLogger(__name__)
#: A case waits at most a minute for anything, and without its cluster it fails at its next request. A scenario that is
#: interrupted ends its clients within 30 s and finishes a capture that has begun.
ENDED_WITHIN_S = 90.0


class Keyed(Protocol):
    """A task with a name that is unique within the run."""

    @property
    def key(self) -> str:
        """The name."""


Task = TypeVar("Task", bound=Keyed)
Outcome = TypeVar("Outcome")


class Performer(ABC, Generic[Task, Outcome]):
    """Performs the tasks of a lane on a cluster of its own."""

    @abstractmethod
    def perform_together(self, tasks: Sequence[Task]) -> list[Outcome]:
        """Perform a group of tasks, most often a single one; returns how each ended."""

    @abstractmethod
    def interrupt(self) -> None:
        """Make a running task end early; called from another thread."""

    @abstractmethod
    def discard(self, task: Task) -> None:
        """Remove the files of an interrupted task, if they decide nothing."""

    @abstractmethod
    def close(self) -> None:
        """End the cluster, once no task uses it."""


@dataclass(slots=True)
class Queue(Generic[Task]):
    """Tasks of one kind of cluster, in groups that are performed together; `begun` once a lane has taken one."""

    left: deque[list[Task]]
    begun: bool = field(default=False, init=False)

    @property
    def tasks(self) -> list[Task]:
        """The tasks that are left, in the order in which they are taken."""
        return [task for group in self.left for task in group]


class Lanes(Generic[Task, Outcome]):
    """Performs the tasks of `queues` in threads; `performer` makes that of a lane, by its number.

    A second lane begins a queue if at least `helped_from` of its tasks are left. `outcomes` are the futures by key, and
    `running` the keys of the tasks that each lane performs now.
    """

    def __init__(
        self,
        queues: Sequence[Queue[Task]],
        performer: Callable[[int], Performer[Task, Outcome]],
        *,
        lanes: int,
        helped_from: int,
    ) -> None:
        self.outcomes: dict[str, Future[Outcome]] = {task.key: Future() for queue in queues for task in queue.tasks}
        self.running: dict[str, tuple[str, ...]] = {}
        self._queues = list(queues)
        self._helped_from = helped_from
        self._taking = threading.Lock()
        self._stopping = threading.Event()
        self._errors: list[Exception] = []
        self._performer = performer
        self._performers: list[Performer[Task, Outcome]] = []
        self._threads: list[threading.Thread] = []
        self._add(lanes)

    def _add(self, lanes: int) -> None:
        for number in range(len(self._performers), min(lanes, len(self.outcomes))):
            self._performers.append(self._performer(number))
            self._threads.append(
                threading.Thread(target=self._run, args=(self._performers[-1],), name=f"lane-{number + 1}", daemon=True)
            )

    def start(self) -> None:
        """Begin the first tasks."""
        for thread in self._threads:
            if thread.ident is None:
                thread.start()

    def widen(self, lanes: int) -> None:
        """Begin more lanes, until there are `lanes`; none once `close` was called."""
        if not self._stopping.is_set():
            self._add(lanes)
            self.start()

    def _run(self, performer: Performer[Task, Outcome]) -> None:
        queue = None
        while not self._stopping.is_set():
            queue, group = self._next(queue)
            if not group:
                # Here and not in `close`, because other lanes go on: ending a cluster and removing its data takes seconds.
                self._errors += _ended(performer)
                return
            self._perform(performer, group)

    def _next(self, own: Queue[Task] | None) -> tuple[Queue[Task] | None, list[Task]]:
        """The next group for a lane with the cluster of queue `own`; empty if too few tasks are left to help with."""
        with self._taking:
            fresh = [each for each in self._queues if not each.begun]
            many = [each for each in self._queues if len(each.tasks) >= self._helped_from]
            many.sort(key=lambda each: len(each.tasks), reverse=True)
            for queue in [*filter(None, [own]), *fresh, *many]:
                if queue.left:
                    queue.begun = True
                    return queue, queue.left.popleft()
            return None, []

    def _perform(self, performer: Performer[Task, Outcome], group: list[Task]) -> None:
        self.running[threading.current_thread().name] = tuple(task.key for task in group)
        try:
            ended = performer.perform_together(group)
        except BaseException as error:
            # The future raises it to its reader; the log has where it came from.
            LOG.exception("%s broke", ", ".join(task.key for task in group))
            for task in group:
                self.outcomes[task.key].set_exception(error)
            return
        for task, outcome in zip(group, ended, strict=True):
            if self._stopping.is_set():
                performer.discard(task)
            self.outcomes[task.key].set_result(outcome)

    def cancel_rest(self) -> None:
        """Cancel the futures of tasks that no lane has begun; the others go on."""
        with self._taking:
            tasks = [task for queue in self._queues for task in queue.tasks]
            for queue in self._queues:
                queue.left.clear()
        for task in tasks:
            self.outcomes[task.key].cancel()

    def close(self) -> None:
        """End every lane and its cluster. Raises the first error of ending a cluster, or WaitTimeoutError."""
        self._stopping.set()
        for each in self._performers:
            each.interrupt()
        for each in self._performers:
            self._errors += _ended(each)
        end_s = time.monotonic() + ENDED_WITHIN_S
        started = [thread for thread in self._threads if thread.ident is not None]
        for thread in started:
            thread.join(max(0.0, end_s - time.monotonic()))
        # A lane that was between two tasks may have begun one more cluster.
        for each in self._performers:
            self._errors += _ended(each)
        if late := [thread.name for thread in started if thread.is_alive()]:
            self._errors.append(
                WaitTimeoutError(f"Timed out after {ENDED_WITHIN_S:.0f} s waiting for {', '.join(late)} to end.")
            )
        if self._errors:
            raise self._errors[0]


def _ended(performer: Performer[Task, Outcome]) -> list[Exception]:
    """End the cluster of a lane; returns an error, so that the other clusters are ended as well."""
    try:
        performer.close()
    except ENVIRONMENT_ERRORS as error:
        return [error]
    return []
