"""Protocol of the clients under test: faults stop, continue, kill and replace them at known points.

A process is one client instance. Zombies come from here: processes that still use a transactional id after a successor
has initialised it. The Protocol says nothing about client libraries or workloads.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from chaos.cluster import Site


class SyncPoint(StrEnum):
    """Where in an operation a process can be made to wait (docs/writing/client.md)."""

    BEFORE_PRODUCE = "before-produce"
    AFTER_PRODUCE = "after-produce"
    BEFORE_OFFSETS = "before-offsets"
    BEFORE_COMMIT = "before-commit"
    BETWEEN = "between"


#: Roles that faults hold.
PRODUCER = "producer"
COPIER = "copier"
#: Only copiers send offsets.
POINTS_OF_COPIERS = frozenset({SyncPoint.BEFORE_OFFSETS, SyncPoint.BETWEEN})


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ClientProcess:
    """A running client instance. `role` is producer, copier or observer.

    `client` names its library; `library` is the library's own name with its version. `done` counts its
    operations so far that were answered ok, without `init` and copies of nothing.
    """

    process: int
    role: str
    site: Site
    transactional_id: str | None
    client: str = ""
    library: str = ""
    done: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedResponse:
    """The error of a failed operation as the library gave it; it arrived at `at_ns`."""

    at_ns: int
    operation: int
    code: int
    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Succession:
    """A successor instance; its initialisation was answered at `initialised_ns`."""

    successor: ClientProcess
    initialised_ns: int
    producer_id: int | None
    producer_epoch: int | None


class Clients(Protocol):
    """The running clients of a workload, as faults see them. Unknown and ended processes raise chaos.errors."""

    @property
    def transactional_ids(self) -> tuple[str, ...]:
        """Every transactional id of the workload, sorted, including those of processes that have ended."""

    def alive(self, role: str | None = None) -> tuple[ClientProcess, ...]:
        """The processes that run, oldest first."""

    def hold(self, point: SyncPoint, *, processes: tuple[ClientProcess, ...], timeout_s: float) -> None:
        """Return when each of the processes waits at `point` inside an operation; raises on timeout."""

    def release(self, processes: tuple[ClientProcess, ...]) -> None:
        """Let held processes go on; the others are left alone."""

    def await_deciding(self, processes: tuple[ClientProcess, ...], *, timeout_s: float) -> bool:
        """Wait until one of them has requested the end of its transaction and has no answer; False on timeout."""

    def dismiss(self, processes: tuple[ClientProcess, ...]) -> None:
        """Let processes finish the operation in flight and leave cleanly, without a successor."""

    def pause(self, process: ClientProcess) -> None:
        """SIGSTOP to the process group."""

    def resume(self, process: ClientProcess) -> None:
        """SIGCONT to the process group."""

    def kill(self, process: ClientProcess) -> None:
        """SIGKILL to the process group; it has no successor until `succeed` is called."""

    def kill_part(self, process: ClientProcess, program: str) -> int | None:
        """SIGKILL to a process of its group that has this word in its command; its id once it is gone, None without one."""

    def succeed(self, process: ClientProcess, *, site: Site, timeout_s: float, release: str = "") -> Succession:
        """Start another instance with the same transactional id (or group membership) at `site`.

        Returns when its initialisation was answered ok; the old instance may still run. `release` is the Kafka release of
        its library, that of the old instance where it is empty.
        """

    def answers(self, process: ClientProcess) -> tuple[FailedResponse, ...]:
        """Every failed operation of the process so far, also of one that has ended."""
