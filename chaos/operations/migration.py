"""The steps of a migration from ZooKeeper to KRaft that are no rolls, and new producer ids in its phases (KIP-866).

Controllers are added to a running cluster. When every broker has registered with them, the active one copies the metadata
and says so in its log. At the end ZooKeeper is stopped. Brokers and controllers are rolled between their modes like between
releases (`rolling.RollNext`).

Producer ids are counted by the controller: by ZooKeeper before, by the metadata quorum after. `TakeProducerIds` lets
coordinators hand out new ones. They give them to transactional ids, whose records in the transaction log keep them: the
judge reads there whether an id was given twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from chaos.arena import Arena, admin_of
from chaos.cluster import ZOOKEEPER, BrokerId
from chaos.errors import InjectionError
from chaos.faults.fault import Injection
from chaos.operations.rolling import NodeReturn
from wire.client import Client
from wire.errors import WireError
from wire.values import Producer

#: The ids of a block; a broker asks the controller for one at a time (KIP-730).
BLOCK = 1_000


@dataclass(frozen=True, slots=True)
class AddControllers:
    """Start controllers that the cluster did not have before, all at once: a lone voter never becomes ready."""

    nodes: tuple[int, ...]
    release: str

    def describe(self) -> str:
        """The operation in words."""
        return f"{len(self.nodes)} controllers added"

    def futility(self) -> str | None:
        """New nodes always show."""
        return None

    def inject(self, arena: Arena) -> Injection:
        """Make the nodes part of the cluster and start them."""
        cluster, nodes = arena.cluster, tuple(map(BrokerId, self.nodes))
        for node in nodes:
            cluster.install(node, self.release)
        # They have no data of another release: one that is lost says nothing about an upgrade.
        added = [NodeReturn.of(arena, node, self.release) for node in nodes]

        def start() -> None:
            for each in added:
                each.start()

        def confirm() -> str | None:
            proofs = [each.joined() for each in added]
            return "; ".join(filter(None, proofs)) if all(proofs) and cluster.view().controller in nodes else None

        def late() -> None:
            next((each for each in added if not cluster.answers(each.node)), added[0]).late()

        start()
        return Injection(
            target=", ".join(f"node {node}" for node in nodes),
            confirm=confirm,
            heal=start,
            releases=dict.fromkeys(nodes, self.release),
            lasts=False,
            late=late,
        )


@dataclass(frozen=True, slots=True)
class MetadataCopied:
    """Wait until a controller says that the metadata is copied: then it names `release` as its own."""

    release: str

    def describe(self) -> str:
        """The observation in words."""
        return "look for the controller that has copied the metadata from ZooKeeper"

    def futility(self) -> str | None:
        """A line of a log always shows."""
        return None

    def inject(self, arena: Arena) -> Injection:
        """Change nothing; `confirm` looks."""
        cluster = arena.cluster

        def confirm() -> str | None:
            nodes = [each for each in cluster.installed() if cluster.reported_release(each) == self.release]
            return f"node {nodes[0]} says that it has copied the metadata" if nodes else None

        return Injection(target="the active controller", confirm=confirm, heal=lambda: None, lasts=False)


@dataclass(frozen=True, slots=True)
class TakeProducerIds:
    """Initialise `count` new transactional ids, which are called after `phase`, so that each gets a new producer id."""

    phase: str
    count: int

    def describe(self) -> str:
        """The operation in words."""
        return f"{self.count} new producer ids"

    def futility(self) -> str | None:
        """An id always shows."""
        return None

    def inject(self, arena: Arena) -> Injection:
        """Ask each coordinator. Raises InjectionError without an answer."""
        admin, run = admin_of(arena), arena.transactional_id(0)
        try:
            taken = [_initialised(admin, f"{run}-{self.phase}-{number}") for number in range(self.count)]
        except WireError as error:
            raise InjectionError(f"no producer id: {error}") from error
        ids = sorted(each.id for each in taken)
        blocks = len({each // BLOCK for each in ids})
        return Injection(
            target=f"{len(ids)} transactional ids",
            confirm=lambda: f"{len(ids)} producer ids from {ids[0]} to {ids[-1]}, of {blocks} blocks",
            heal=lambda: None,
            lasts=False,
        )


def _initialised(admin: Client, name: str) -> Producer:
    """The producer id of a new transactional id. Asked for twice, as after a roll has closed a connection, it stays."""
    return admin.until(f"the id of {name}", lambda attempt: admin.init_producer_id(name, deadline=attempt))


@dataclass(frozen=True, slots=True)
class StopZooKeeper:
    """Stop ZooKeeper for good."""

    def describe(self) -> str:
        """The operation in words."""
        return "ZooKeeper stopped"

    def futility(self) -> str | None:
        """The end of a process always shows."""
        return None

    def inject(self, arena: Arena) -> Injection:
        """Stop it and wait for its end."""
        arena.cluster.stop(ZOOKEEPER)
        return Injection(
            target="ZooKeeper",
            confirm=lambda: None if arena.cluster.is_running(ZOOKEEPER) else "its process has ended",
            heal=lambda: None,
            lasts=False,
        )
