"""Errors of faults and links.

ChaosError                 a fault or a link failed
├── UnresolvedTargetError  no broker, client or link has the role that a fault aims at
├── FutileFaultError       a fault that cannot have an observable effect, refused when the schedule is built
├── InjectionError         a fault could not be applied or healed
├── NodeLostError          a node did not come back, so nothing more can be done to its cluster
├── UnknownClientError     a process that is not part of the workload, or has ended
├── SyncPointError         clients did not reach a sync point in time
└── LinkError              Toxiproxy refused, timed out, or does not show the requested state
"""

from __future__ import annotations

from verification.vocabulary.history import LostNode


class ChaosError(Exception):
    """A fault or a link failed; the message is one sentence, with a hint where there is one."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(f"{message} ({hint})" if hint else message)
        self.hint = hint


class UnresolvedTargetError(ChaosError):
    """No broker, client or link has the role that a fault aims at."""


class FutileFaultError(ChaosError):
    """The fault cannot have an observable effect; surviving it would prove nothing."""


class InjectionError(ChaosError):
    """A fault could not be applied or healed."""


class NodeLostError(ChaosError):
    """A node did not come back; it ends the schedule. The message ends with the last lines of the node's log."""

    def __init__(self, message: str, lost: LostNode) -> None:
        super().__init__(message)
        self.lost = lost


class UnknownClientError(ChaosError):
    """The process is not part of the workload, or it has ended."""


class SyncPointError(ChaosError):
    """Clients did not reach a sync point in time."""


class LinkError(ChaosError):
    """Toxiproxy refused, timed out, or does not show the requested state."""
