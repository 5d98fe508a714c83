"""The migration from ZooKeeper to KRaft as a schedule: what an operator does within one release (KIP-866).

    zookeeper → controllers → migrate → dual write → roll 1 of 3 → mixed 1 of 3 → … → finish

Controllers are added, brokers are rolled to register with them, and the metadata is copied. Then brokers are rolled to KRaft
one by one, with the placements and faults of the mixed stages of an upgrade: brokers of both modes serve side by side. At
the end the controllers are rolled to leave ZooKeeper alone, and it is stopped.

New producer ids are taken before, during and after: a release that lets a block of ids be issued twice (KAFKA-15552) begins
the second time with the first ids of the last block.

Source: Kafka's documentation, "ZooKeeper to KRaft Migration".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from chaos.faults.brokers import CrashBroker
from chaos.operations.migration import AddControllers, MetadataCopied, StopZooKeeper, TakeProducerIds
from chaos.operations.placement import PlaceRoles
from chaos.operations.rolling import RollNext
from chaos.schedule import Schedule, Step
from chaos.targets import TransactionCoordinatorOf
from fixtures.clusters.local.migrating import Mode
from fixtures.clusters.spec import ClusterSpec
from runner.upgrades.mixed import TOPIC, MixedStages
from runner.upgrades.rolls import BROKERS, CONTROLLERS, DWELL_S, JOIN_WITHIN_S, roll
from verification.vocabulary.experiment import Floor

#: So many ids reach each of three coordinators by far: three partitions of the transaction log share them by a hash.
IDS = 60
#: Clients end some transactions after a step that they do not notice.
SHORT_S = 1.0
#: In this time clients end some twenty transactions in a placement.
PLACED_S = 2.0
#: The ids of the nodes: brokers, then controllers.
_BROKERS = tuple(range(1, BROKERS + 1))
_CONTROLLERS = tuple(range(BROKERS + 1, BROKERS + CONTROLLERS + 1))
#: A step that takes producer ids has all of them.
FLOORS = (Floor(name="ids_each_taking", need=IDS),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """The stages of one migration with one seed; `thorough` tries everything that the seed would draw from."""

    release: str
    seed: int
    thorough: bool = False

    @property
    def cluster(self) -> Callable[..., ClusterSpec]:
        """Three brokers with ZooKeeper, to which three controllers are added."""
        first = dict.fromkeys(_BROKERS, Mode.ZOOKEEPER.of(self.release))
        return partial(ClusterSpec, brokers=BROKERS, controllers=CONTROLLERS, releases=first, zookeeper=True)

    @property
    def schedule(self) -> Schedule:
        """All stages in order."""
        return (*self._before(), *self._to_dual_write(), *self._to_kraft(), *self._finish())

    def _before(self) -> Iterator[Step]:
        # Leaders of new topics are spread already. With ZooKeeper only the controller itself would place them.
        yield self._taken("zookeeper")
        fault = AddControllers(_CONTROLLERS, self._in(Mode.MIGRATING))
        yield Step(fault=fault, stage="controllers", hold_s=DWELL_S, confirm_within_s=JOIN_WITHIN_S, once_whole=True)

    def _to_dual_write(self) -> Iterator[Step]:
        """Each broker holds a block of ids once it was asked for one; the last block is that of the second one."""
        for _ in _BROKERS[:-1]:
            yield self._roll("migrate", Mode.MIGRATING, _BROKERS)
        yield Step(fault=TakeProducerIds("migrate", IDS), stage="migrate", hold_s=SHORT_S, once_whole=True)
        yield self._roll("migrate", Mode.MIGRATING, _BROKERS)
        yield Step(
            fault=MetadataCopied(self._in(Mode.COPIED)),
            stage="dual write",
            hold_s=SHORT_S,
            confirm_within_s=JOIN_WITHIN_S,
        )
        yield from self._ids("dual write")
        yield Step(fault=CrashBroker(TransactionCoordinatorOf(0)), stage="dual write", hold_s=DWELL_S, once_whole=True)

    def _to_kraft(self) -> Iterator[Step]:
        old, new = self._in(Mode.MIGRATING), self._in(Mode.KRAFT)
        mixed = MixedStages(old=old, new=new, seed=self.seed, thorough=self.thorough)
        for number in _BROKERS:
            yield self._roll(f"roll {number} of {BROKERS}", Mode.KRAFT, _BROKERS, dwell_s=DWELL_S)
            if number < BROKERS:
                yield from mixed.steps(f"mixed {number} of {BROKERS}", number)

    def _finish(self) -> Iterator[Step]:
        for _ in _CONTROLLERS:
            yield self._roll("finish", Mode.KRAFT, _CONTROLLERS)
        yield Step(fault=StopZooKeeper(), stage="finish", hold_s=SHORT_S, once_whole=True)
        yield from self._ids("finish")

    def _ids(self, stage: str) -> Iterator[Step]:
        """New ids from all coordinators, which each broker is one of."""
        yield Step(fault=PlaceRoles(topic=TOPIC), stage=stage, hold_s=PLACED_S, once_whole=True)
        yield self._taken(stage)

    def _taken(self, stage: str) -> Step:
        fault = TakeProducerIds(stage.replace(" ", "-"), IDS)
        return Step(fault=fault, stage=stage, hold_s=DWELL_S, once_whole=True)

    def _roll(self, stage: str, mode: Mode, nodes: tuple[int, ...], *, dwell_s: float = SHORT_S) -> Step:
        return roll(RollNext(self._in(mode), nodes=nodes), stage=stage, dwell_s=dwell_s)

    def _in(self, mode: Mode) -> str:
        return mode.of(self.release)
