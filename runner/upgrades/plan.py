"""The operation of an upgrade as a schedule: what a careful operator does, with named stages.

    roll 1 of 3 → mixed 1 of 3 → … → back → forward → finalize

Rolls go node by node, and each waits until all replicas are in sync again. One roll, chosen by the seed, is a SIGKILL.
The cluster goes back to the old release while the old feature levels are still final, then forward again; then each
feature is finalized by itself. After transaction.version one node restarts, because a live producer learns of a level
only from a new connection.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from random import Random

from chaos.clients import SyncPoint
from chaos.cluster import BrokerId
from chaos.operations.feature_levels import SetFeatureLevel
from chaos.operations.restarting import RestartNext
from chaos.operations.rolling import RollNext
from chaos.schedule import Schedule, Step
from fixtures.clusters.spec import ClusterSpec
from runner.upgrades.mixed import MixedStages
from runner.upgrades.path import UpgradePath

BROKERS = 3
#: In this time the clients of a workload end some 50 transactions.
DWELL_S = 5.0
#: A node starts in 6 to 10 s on two quiet cores, in 40 s on a machine that is busy with other work.
JOIN_WITHIN_S = 90.0
#: A feature level is finalized in less than a second; clients then meet it.
LEVEL_DWELL_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradePlan:
    """The stages of one upgrade with one seed; `thorough` tries everything that the seed would draw from."""

    path: UpgradePath
    seed: int
    thorough: bool = False
    restarts: Counter[BrokerId] = field(default_factory=Counter, compare=False)

    @property
    def cluster(self) -> Callable[..., ClusterSpec]:
        """Three combined nodes, all of the old release at first."""
        releases = dict.fromkeys(range(1, BROKERS + 1), self.path.source.version)
        return partial(ClusterSpec, brokers=BROKERS, releases=releases)

    @property
    def schedule(self) -> Schedule:
        """All stages in order."""
        return (*self._rolls(), *self._back(), *self._finalize())

    def _rolls(self) -> Iterator[Step]:
        """Every node to the new release; clients meet each mix for a while."""
        killed = Random(f"{self.seed}:killed").randrange(BROKERS)
        mixed = MixedStages(path=self.path, seed=self.seed, thorough=self.thorough)
        for number in range(BROKERS):
            yield self._roll(f"roll {number + 1} of {BROKERS}", by_kill=number == killed, dwell_s=DWELL_S)
            if number + 1 < BROKERS:
                yield from mixed.steps(f"mixed {number + 1} of {BROKERS}", number + 1)

    def _back(self) -> Iterator[Step]:
        """Every node back to the old release, and forward again."""
        for stage, release in (("back", self.path.source), ("forward", self.path.target)):
            for _ in range(BROKERS):
                yield self._roll(stage, release=release.version)

    def _finalize(self) -> Iterator[Step]:
        """Each feature level by itself."""
        for feature, levels in self.path.raised.items():
            for level in levels:
                yield Step(
                    fault=SetFeatureLevel(feature, level),
                    stage=f"finalize {feature}",
                    hold_s=LEVEL_DWELL_S,
                    once_whole=True,
                )

    def _roll(self, stage: str, *, release: str = "", by_kill: bool = False, dwell_s: float = 1.0) -> Step:
        control = self.path.source == self.path.target
        return Step(
            fault=RestartNext(self.restarts, by_kill)
            if control
            else RollNext(release or self.path.target.version, by_kill=by_kill),
            stage=stage,
            hold_s=dwell_s,
            confirm_within_s=JOIN_WITHIN_S,
            while_held=SyncPoint.BEFORE_COMMIT,
            holding=1,
            once_whole=True,
        )
