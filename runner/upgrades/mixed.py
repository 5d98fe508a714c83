"""The stages in which nodes of both releases serve: who has which role, and what goes wrong meanwhile.

There are two placements. Old nodes coordinate transactions and new ones lead, or the other way round. A run meets each of
them, clients work through it for a while, and in it strike some of five faults (`PROBES`):

* the coordinator crashes, so that a coordinator of the other release takes over, also with prepared transactions;
* the leader crashes, so that a leader of the other release takes over, with what its log says of producers;
* a producer is paused past its transaction timeout, and a successor takes over its id;
* the response to an EndTxn is lost, and the client asks again;
* a batch arrives after the markers of its transaction.

The last two have a variant for each of two producers, because their libraries may differ. They lead a connection through
the harness, which a Toxiproxy server in a container cannot reach. So an upgrade in containers has the first three only.

The seed draws for the quick profile: one placement for each stage and one fault for each placement. The nightly profile
runs all faults in both placements of each stage. At the end of a stage the roles are spread over all nodes again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from chaos.cluster import Site
from chaos.faults.brokers import CrashBroker
from chaos.faults.frames import TamperFrames
from chaos.faults.late_duplicate import LateDuplicate
from chaos.faults.zombies import PausedZombie
from chaos.frames import Direction, Drop, FrameFilter
from chaos.link_targets import FromSite
from chaos.operations.placement import PlaceRoles
from chaos.schedule import Step
from chaos.targets import LeaderOf, TransactionCoordinatorOf

#: The topic whose leaders are placed; every transaction of the workload writes to it.
TOPIC = "billing-events"
#: The transaction timeout of the workload, past which a producer is paused. Longer than a transaction is held open across a
#: roll: 5 s on two quiet cores, up to 18 s on a machine that is busy with other work.
TIMEOUT_S = 20.0
#: A commit takes less than a second, a roll holds it for 8 s at most. What stands for 10 s in a cluster that is whole
#: stands until the next roll: so long do prepared transactions wait for a leader that refuses their markers (KB-10).
DWELL_S = 10.0
#: A placement that a fault has undone is made again. Clients have met it for long already.
AGAIN_S = 2.0
_APP = Site("app")
#: Replicas of a crash are in sync before the next one, or a partition has too few of them.
PROBES: tuple[Step, ...] = (
    Step(fault=CrashBroker(TransactionCoordinatorOf(0)), hold_s=3, once_whole=True),
    Step(fault=CrashBroker(LeaderOf(TOPIC, 0)), hold_s=3, once_whole=True),
    # Both instances may run at one site: only a process is stopped, and no link is cut.
    Step(fault=PausedZombie(_APP, _APP, past_s=TIMEOUT_S), hold_s=1, once_whole=True),
    *(
        Step(
            fault=TamperFrames(
                on=FromSite(_APP, TransactionCoordinatorOf(producer)),
                frames=FrameFilter(api="EndTxn", direction=Direction.RESPONSE, count=1),
                action=Drop(),
                producer=producer,
            ),
            # Clients give a request up after 3 s (`request.timeout.ms`, `socket.timeout.ms`), and ask again.
            hold_s=4,
            once_whole=True,
        )
        for producer in (0, 1)
    ),
    # The client gives the request up, sends it again, ends its transaction and begins the next one.
    *(
        Step(fault=LateDuplicate(on=FromSite(_APP), producer=producer), hold_s=1, confirm_within_s=60, once_whole=True)
        for producer in (0, 1)
    ),
)


#: The faults that lead a connection through the harness.
_THROUGH_HARNESS = (TamperFrames, LateDuplicate)


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedStages:
    """The steps that follow the first and the second of three rolls from release `old` to `new`.

    `thorough` runs all of them in each stage.
    """

    old: str
    new: str
    seed: int
    thorough: bool
    containers: bool = False

    def steps(self, stage: str, number: int) -> Iterator[Step]:
        """The steps of the `number`-th of two stages."""
        random = Random(f"{self.seed}:mixed")
        possible = [each for each in PROBES if not (self.containers and isinstance(each.fault, _THROUGH_HARNESS))]
        placements, probes = random.sample(self._placements, 2), random.sample(possible, 2)
        if not self.thorough:
            placements, probes = placements[number - 1 : number], probes[number - 1 : number]
        for placement in placements:
            for at, probe in enumerate(probes if not self.thorough else possible):
                yield Step(fault=placement, stage=stage, hold_s=AGAIN_S if at else DWELL_S, once_whole=True)
                yield replace(probe, stage=stage)
        yield Step(fault=PlaceRoles(topic=TOPIC), stage=stage, hold_s=0, once_whole=True)

    @property
    def _placements(self) -> tuple[PlaceRoles, PlaceRoles]:
        return (
            PlaceRoles(topic=TOPIC, coordinators=self.old, leaders=self.new),
            PlaceRoles(topic=TOPIC, coordinators=self.new, leaders=self.old),
        )
