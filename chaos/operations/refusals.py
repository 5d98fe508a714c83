"""Operations that a cluster must refuse: a node of a release that cannot read the metadata, a level that cannot be had.

Once a feature level is final that an old release does not know, a node of that release must not run: it could not apply
the metadata. Its process reads the record of the level from the log at its start and ends by itself. The other nodes go
on. The proof has three parts: the process has ended, the end of its log says why, and the others serve. Then the node
starts with its own release again, and the operation is proven once it has joined. A broker of 3.3 skips the record and goes
on running, but the controller does not let it register: then the proof is its log, and that it is not among the brokers.

A request for a feature level that is refused must change nothing. Its proof is that every broker answers the levels that
it answered before.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from chaos.arena import Arena, admin_of
from chaos.cluster import BrokerId
from chaos.errors import InjectionError
from chaos.faults.fault import Injection
from chaos.operations.feature_levels import LevelChange, finalized, update
from chaos.operations.rolling import LAST_LINES, NodeReturn, first_of

#: A broker asks every three seconds to be registered. One answer may be about a moment; three are about the release.
ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class RefusedRoll:
    """Start a node with a release that must refuse: its log then has one of `texts`; then start its own release again.

    A node that goes on running must be kept out by the controller: its log has one of `kept_out`, `ATTEMPTS` times.
    """

    release: str
    texts: tuple[str, ...]
    kept_out: tuple[str, ...] = ()

    def describe(self) -> str:
        """The operation in words."""
        return f"start of a node with {self.release}, which must refuse, and with its own release again"

    def futility(self) -> str | None:
        """The end of a process always shows."""
        return None

    def inject(self, arena: Arena) -> Injection:
        """Stop a node and start it with the release that must refuse; `confirm` starts its own release again."""
        cluster = arena.cluster
        node = first_of(arena, list(cluster.installed()))
        own = cluster.installed()[node]
        refused: list[str] = []
        returns: list[NodeReturn] = []
        cluster.stop(node)
        cluster.install(node, self.release)
        cluster.start(node)
        began = time.monotonic()

        def back() -> None:
            if cluster.installed()[node] != own:
                if cluster.is_running(node):
                    cluster.crash(node)
                cluster.install(node, own)
                returns.append(NodeReturn.of(arena, node, before=self.release))
            returns[0].start()

        def confirm() -> str | None:
            if not refused:
                said = self._refused(arena, node)
                if said is None:
                    return None
                how = "was kept out" if cluster.is_running(node) else "ended"
                refused.append(f"node {node} {how} {time.monotonic() - began:.1f} s after its start with {said}")
                back()
            again = returns[0].joined()
            return None if again is None else f"{refused[0]}; {again}"

        def late() -> None:
            if refused:
                returns[0].late()
            said = cluster.log_tail(node)
            back()
            raise InjectionError(f"node {node} did not refuse {self.release} in time. Its log:\n{said}")

        return Injection(
            target=f"node {node}, {own} → {self.release} → {own}",
            confirm=confirm,
            heal=back,
            releases={node: own},
            lasts=False,
            late=late,
        )

    def _refused(self, arena: Arena, node: BrokerId) -> str | None:
        """What the node said when it ended or was kept out, once the other nodes serve; None before.

        A dedicated controller takes requests for a moment before it ends. So only the bound of the step says that a node
        does not refuse. Raises InjectionError when it has ended for another reason.
        """
        cluster = arena.cluster
        runs = cluster.is_running(node)
        lines = cluster.log_tail(node, LAST_LINES).splitlines()
        reasons = [line for line in lines if any(text in line for text in (self.kept_out if runs else self.texts))]
        if runs and len(reasons) < ATTEMPTS:
            return None
        if not reasons:
            raise InjectionError(f"node {node} ended with {self.release} for another reason:\n{cluster.log_tail(node)}")
        view = cluster.view()
        others = set(cluster.brokers) - {node}
        if view.controller is None or not others <= view.alive or (runs and node in view.alive):
            return None
        return f"{self.release}: {reasons[0].strip()!r}"


@dataclass(frozen=True, slots=True)
class RefusedFeatureLevel:
    """Ask for a level that must be refused with INVALID_UPDATE_VERSION (95) and `text`, and change nothing."""

    feature: str
    level: int
    change: LevelChange
    text: str

    def describe(self) -> str:
        """The operation in words."""
        return f"request for {self.feature} {self.level} as {self.change.words}, which must be refused"

    def futility(self) -> str | None:
        """An answer always shows."""
        return None

    def inject(self, arena: Arena) -> Injection:
        """Ask. Raises InjectionError when the level was given, or was refused in other words."""
        admin = admin_of(arena)
        # A connection that a restarted broker has closed has no answer; the second question opens another one.
        before = {broker: finalized(admin, broker) or finalized(admin, broker) for broker in arena.cluster.brokers}
        refusal = update(admin, self.feature, self.level, self.change)
        if refusal is None:
            raise InjectionError(f"{self.feature} {self.level} was given, although it must be refused")
        if not refusal.startswith("INVALID_UPDATE_VERSION (95)") or self.text not in refusal:
            raise InjectionError(f"{self.feature} {self.level} was refused in other words: {refusal}")

        def confirm() -> str | None:
            now = {broker: finalized(admin, broker) for broker in arena.cluster.brokers}
            return f"{refusal}; every broker answers the same levels as before" if now == before else None

        return Injection(target=f"{self.feature} {self.level}", confirm=confirm, heal=lambda: None, lasts=False)
