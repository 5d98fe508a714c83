"""The operation of an upgrade as a schedule: what a careful operator does, with named stages.

    roll 1 of 3 → mixed 1 of 3 → … → back → forward → finalize … → refuse → clients → lower

Rolls go node by node, and each waits until all replicas are in sync again. One roll, chosen by the seed, is a SIGKILL.
The cluster goes back to the old release while the old feature levels are still final, then forward again. What follows
is in `runner.upgrades.finalize`, and the clients that follow the brokers in `runner.upgrades.clients`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from random import Random

from chaos.cluster import BrokerId
from chaos.operations.restarting import RestartNext
from chaos.operations.rolling import RollNext
from chaos.schedule import Schedule, Step
from fixtures.clusters.spec import ClusterSpec
from fixtures.workloads.upgrade import UpgradeWorkload
from runner.upgrades import clients
from runner.upgrades.finalize import Finalization, lowered_transactions, remembered_transactions
from runner.upgrades.migration import Migration
from runner.upgrades.mixed import TIMEOUT_S, MixedStages
from runner.upgrades.path import UpgradePath
from runner.upgrades.rolls import BROKERS, DWELL_S, roll
from verification.vocabulary.experiment import Floor

PARTITIONS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradePlan:
    """The stages of one upgrade with one seed.

    Nodes are brokers and controllers at once, unless there are dedicated `controllers`. `thorough` tries everything that the
    seed would draw from. Nodes are processes, or `containers`.
    """

    path: UpgradePath
    seed: int
    controllers: int = 0
    thorough: bool = False
    containers: bool = False
    restarts: Counter[BrokerId] = field(default_factory=Counter, compare=False)

    @property
    def cluster(self) -> Callable[..., ClusterSpec]:
        """Three brokers and the dedicated controllers, all of the old release at first."""
        releases = dict.fromkeys(range(1, self.nodes + 1), self.path.source.version)
        return partial(ClusterSpec, brokers=BROKERS, controllers=self.controllers, releases=releases)

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return BROKERS + self.controllers

    @property
    def workload(self) -> UpgradeWorkload:
        """Everything that must survive, by both client libraries."""
        return UpgradeWorkload(partitions=PARTITIONS, transaction_timeout_s=TIMEOUT_S)

    @property
    def schedule(self) -> Schedule:
        """All stages in order."""
        levels = Finalization(path=self.path, seed=self.seed, thorough=self.thorough)
        replaced = clients.replaced(self.workload, self.path)
        return (*self._rolls(), *self._back(), *levels.raised, *replaced, *levels.lowered)

    @property
    def floors(self) -> tuple[Floor, ...]:
        """The coverage that an upgrade needs besides that of every scenario."""
        return clients.floors(self.workload, self.path)

    @property
    def upgraded(self) -> Callable[..., ClusterSpec]:
        """A new cluster of the target with its own feature levels, for what comes after an upgrade."""
        return partial(ClusterSpec, brokers=BROKERS, controllers=self.controllers)

    @property
    def lowered(self) -> Schedule:
        """transaction.version is lowered level by level, and raised again, under producers that speak TV2."""
        return tuple(lowered_transactions(self.path))

    @property
    def remembered(self) -> Schedule:
        """Every node to the new release, and a level that only the metadata log still has."""
        rolls = (self._roll(f"roll {number + 1} of {self.nodes}") for number in range(self.nodes))
        return (*rolls, *remembered_transactions(self.path))

    @property
    def migration(self) -> Migration:
        """The migration of a cluster of the source release from ZooKeeper to KRaft."""
        return Migration(release=self.path.source.version, seed=self.seed, thorough=self.thorough)

    def _rolls(self) -> Iterator[Step]:
        """Every node to the new release; clients meet each mix for a while."""
        killed = Random(f"{self.seed}:killed").randrange(self.nodes)
        old, new = self.path.source.version, self.path.target.version
        mixed = MixedStages(old=old, new=new, seed=self.seed, thorough=self.thorough, containers=self.containers)
        for number in range(self.nodes):
            # Clients do not see the release of a dedicated controller, and these go first.
            dwell_s = DWELL_S if number >= self.controllers else 1.0
            yield self._roll(f"roll {number + 1} of {self.nodes}", by_kill=number == killed, dwell_s=dwell_s)
            upgraded = number + 1 - self.controllers
            if 0 < upgraded < BROKERS:
                yield from mixed.steps(f"mixed {upgraded} of {BROKERS}", upgraded)

    def _back(self) -> Iterator[Step]:
        """Every node back to the old release, and forward again."""
        for stage, release in (("back", self.path.source), ("forward", self.path.target)):
            for _ in range(self.nodes):
                yield self._roll(stage, release=release.version)

    def _roll(self, stage: str, *, release: str = "", by_kill: bool = False, dwell_s: float = 1.0) -> Step:
        control = self.path.source == self.path.target
        fault = (
            RestartNext(self.restarts, by_kill)
            if control
            else RollNext(release or self.path.target.version, by_kill=by_kill)
        )
        return roll(fault, stage=stage, dwell_s=dwell_s)
