"""Replaces running clients by those of another release, one by one, as an operator upgrades an application.

A client finishes its operation in flight and leaves; a copier leaves its group. Its successor has the same transactional
id and is a member of the same group, so for a while the group has members of both releases. The proof is that the
successor ended an operation, and the version that its library gave at the start. The first copy of a copier comes when its
group has ended the rebalance: on a busy machine seconds later, and only then do both releases copy together.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from chaos.arena import Arena
from chaos.clients import COPIER, ClientProcess
from chaos.errors import InjectionError, UnresolvedTargetError
from chaos.faults.clients import SUCCESSION_S
from chaos.faults.fault import Injection
from verification.vocabulary.releases import stated_version

#: The observers read from the first record to the last, so they stay.
STAYS = "observer"
#: A client that lost its connections may be waiting for its transaction timeout (30 s by default) and 10 s more.
LEAVES_WITHIN_S = 45.0
LOOK_EVERY_S = 0.1


@dataclass(frozen=True, slots=True)
class ReplaceNext:
    """Replace the oldest client of kafka-clients `old` by one of release `new`."""

    old: str
    new: str

    def describe(self) -> str:
        """The operation in words."""
        return f"a client of kafka-clients {self.old} replaced by one of {self.new}"

    def futility(self) -> str | None:
        """Another client always shows."""
        return None

    def inject(self, arena: Arena) -> Injection:
        """Let the client leave, and start its successor."""
        before = self._oldest(arena)
        arena.clients.dismiss((before,))
        _await_end(arena, before)
        after = arena.clients.succeed(before, site=before.site, timeout_s=SUCCESSION_S, release=self.new).successor

        def confirm() -> str | None:
            now = [each for each in arena.clients.alive() if each.process == after.process]
            if not _is_of(after, self.new) or not any(each.done for each in now):
                return None
            works = "has copied" if after.role == COPIER else "has written"
            return f"process {after.process} ({after.library}) {works} after process {before.process} left"

        return Injection(
            target=f"process {before.process} ({before.library})",
            confirm=confirm,
            heal=lambda: None,
            processes=(before.process,),
        )

    def _oldest(self, arena: Arena) -> ClientProcess:
        """A client that was just replaced for another reason takes a moment to start."""
        end_s = time.monotonic() + SUCCESSION_S
        while True:
            for each in arena.clients.alive():
                if each.role != STAYS and _is_of(each, self.old):
                    return each
            if time.monotonic() > end_s:
                raise UnresolvedTargetError(f"no client of kafka-clients {self.old} is running")
            time.sleep(LOOK_EVERY_S)


def _is_of(process: ClientProcess, release: str) -> bool:
    return process.library.split()[:2] == ["kafka-clients", stated_version(release)]


def _await_end(arena: Arena, process: ClientProcess) -> None:
    end_s = time.monotonic() + LEAVES_WITHIN_S
    while any(each.process == process.process for each in arena.clients.alive()):
        if time.monotonic() > end_s:
            raise InjectionError(f"process {process.process} did not leave within {LEAVES_WITHIN_S:g} s")
        time.sleep(LOOK_EVERY_S)
