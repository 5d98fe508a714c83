"""No fault of ours: the load goes on for a time, while others act on the cluster."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.arena import Arena
from chaos.faults.fault import Injection


@dataclass(frozen=True, slots=True)
class WatchOthers:
    """Let clients work while an operator, or a program of the user, does something to the cluster."""

    def describe(self) -> str:
        """The window in words."""
        return "others may act on the cluster"

    def futility(self) -> str | None:
        """A cluster that stays as it is is a result, too."""
        return None

    def inject(self, arena: Arena) -> Injection:
        """Nothing; the window is confirmed when it begins, and lasts as long as its step."""
        del arena
        return Injection(target="the cluster", confirm=lambda: "the load goes on", heal=lambda: None)
