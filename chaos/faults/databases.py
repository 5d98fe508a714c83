"""Faults of the database of a pipeline: a crash, from which it recovers on its data."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.arena import Arena
from chaos.errors import UnresolvedTargetError
from chaos.faults.fault import Injection


@dataclass(frozen=True, slots=True)
class CrashDatabase:
    """SIGKILL the database server; heal by starting it on its data, and wait until it answers."""

    def describe(self) -> str:
        """The fault and its target in words."""
        return "crash (SIGKILL) of the database server; started again on its data"

    def futility(self) -> str | None:
        """A crash always shows."""
        return None

    def inject(self, arena: Arena) -> Injection:
        """Kill it. Raises UnresolvedTargetError without a database, and InjectionError if it is not ours."""
        database = arena.database
        if database is None:
            raise UnresolvedTargetError("the pipeline of this run has no database")
        database.crash()

        def confirm() -> str | None:
            return None if database.is_running else "the process of the database server is gone"

        return Injection(target="database server", confirm=confirm, heal=database.start_again)
