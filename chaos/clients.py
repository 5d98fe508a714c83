"""What chaos needs from the clients under test: to stop, continue, kill and succeed them at known points.

A process is one client instance. Zombies are made here: a process that still believes it owns a transactional id
after a successor has initialised the same id. The Protocol says nothing about client libraries or workloads.
"""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ClientProcess:
    """A running client instance. `role` is producer, copier or observer."""

    process: int
    role: str
    site: Site
    transactional_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedResponse:
    """A failed operation's answer as the library gave it; `at_ns` is when it arrived."""

    at_ns: int
    operation: int
    code: int
    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Succession:
    """A successor instance whose initialisation was answered at `initialised_ns`."""

    successor: ClientProcess
    initialised_ns: int
    producer_id: int | None
    producer_epoch: int | None


class Clients(Protocol):
    """The running clients of a workload, as faults see them. Unknown or ended processes raise chaos.errors."""

    @property
    def transactional_ids(self) -> tuple[str, ...]:
        """Every transactional id of the workload, sorted: also of processes that have ended."""

    def alive(self, role: str | None = None) -> tuple[ClientProcess, ...]:
        """The processes that run, oldest first."""

    def hold(self, point: SyncPoint, *, processes: tuple[ClientProcess, ...], timeout_s: float) -> None:
        """Return when each of the processes waits at `point` inside an operation; raises on timeout."""

    def release(self, processes: tuple[ClientProcess, ...]) -> None:
        """Let held processes go on; those not held are left alone."""

    def await_deciding(self, processes: tuple[ClientProcess, ...], *, timeout_s: float) -> bool:
        """Return as soon as one of them has asked for the end of its transaction and has no answer; whether it came."""

    def dismiss(self, processes: tuple[ClientProcess, ...]) -> None:
        """Let processes finish the operation in flight and leave cleanly; nobody takes their place."""

    def pause(self, process: ClientProcess) -> None:
        """SIGSTOP to the process group."""

    def resume(self, process: ClientProcess) -> None:
        """SIGCONT to the process group."""

    def kill(self, process: ClientProcess) -> None:
        """SIGKILL to the process group; nobody takes its place until `succeed` is called."""

    def succeed(self, process: ClientProcess, *, site: Site, timeout_s: float) -> Succession:
        """Start another instance with the same transactional id (or group membership) at `site`.

        Returns when its initialisation was answered ok; the old instance may still live.
        """

    def answers(self, process: ClientProcess) -> tuple[FailedResponse, ...]:
        """Every failed operation of the process so far, also of one that has ended."""
