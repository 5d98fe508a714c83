"""Link targets: roles, resolved to links at the moment of injection.

A link is named by the side that opens it. A client's requests to a leader travel on *site → leader*. Two requests of
transactions travel between brokers: markers from the coordinator to the leader (WriteTxnMarkers), and the check that a
partition was added from the leader to the coordinator (AddPartitionsToTxn v4+). A broker with both roles uses no link.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from chaos.arena import Arena
from chaos.cluster import Link, Plane, Site
from chaos.errors import UnresolvedTargetError
from chaos.targets import AllBrokers, Target


class LinkTarget(Protocol):
    """The links between the nodes or sites that have two roles."""

    def describe(self) -> str:
        """The links in words."""

    def resolve(self, arena: Arena) -> tuple[Link, ...]:
        """The links now; raises UnresolvedTargetError when there is none."""


@dataclass(frozen=True, slots=True)
class FromSite:
    """The links from the clients of a site to the brokers that have a role."""

    site: Site
    to: Target = field(default_factory=AllBrokers)

    def describe(self) -> str:
        """The links in words."""
        return f"site {self.site} → {self.to.describe()}"

    def resolve(self, arena: Arena) -> tuple[Link, ...]:
        """One link per broker."""
        wanted = {Link(source=str(self.site), target=broker) for broker in self.to.resolve(arena)}
        return _existing(arena, wanted, self.describe())


@dataclass(frozen=True, slots=True)
class BetweenBrokers:
    """The links from the brokers that have one role to those that have another; a broker has no link to itself."""

    source: Target
    to: Target
    plane: Plane = Plane.DATA

    def describe(self) -> str:
        """The links in words."""
        return f"{self.source.describe()} → {self.to.describe()}" + (" (raft)" if self.plane is Plane.RAFT else "")

    def resolve(self, arena: Arena) -> tuple[Link, ...]:
        """One link per ordered pair."""
        targets = self.to.resolve(arena)
        wanted = {
            Link(source=str(source), target=target, plane=self.plane)
            for source in self.source.resolve(arena)
            for target in targets
            if source != target
        }
        return _existing(arena, wanted, self.describe())


def _existing(arena: Arena, wanted: set[Link], what: str) -> tuple[Link, ...]:
    found = tuple(link for link in arena.cluster.links.links() if link in wanted)
    if not found:
        raise UnresolvedTargetError(f"there is no link {what}", hint="one broker may have both roles now")
    return found
