"""The attacks on pipelines, the same for each subject.

The instances of a pipeline are members of one group and run at a site of their own. They have no sync points: what a
fault meets is seen in the topics.
"""

from __future__ import annotations

from chaos.faults.brokers import CrashBroker, StopBroker
from chaos.faults.frames import TamperFrames
from chaos.faults.pipelines import CutInstance, KillInstance, PauseInstance
from chaos.faults.sites import CutSite
from chaos.frames import Direction, Drop, FrameFilter, Hold
from chaos.link_targets import FromSite
from chaos.schedule import Step
from chaos.targets import CoordinatorOfOpenTransaction, GroupCoordinator, LeaderOf
from fixtures.workloads.pipeline import APART, PIPELINE
from fixtures.workloads.plans import INPUTS
from runner.scenarios.scenario import BROKEN_FLOORS, STRUCK
from verification.vocabulary.experiment import Floor

OUTPUT, PARTITIONS = "billing-events", 4
COORDINATOR = CoordinatorOfOpenTransaction(OUTPUT)
#: The group's session (6 s) and the transaction timeout (10 s) are over, and the group may have to meet again.
TAKEN_OVER_S = 40.0

#: It names no partition, so it waits for no transaction and kills the oldest instance: each instance in its turn.
IN_TURN = Step(fault=KillInstance(OUTPUT, 0), after_s=2, hold_s=1)
IN_A_TRANSACTION = Step(fault=KillInstance(OUTPUT, PARTITIONS), after_s=2, hold_s=1)
#: Known mistakes: the instances worked, and were struck.
WORKED = (*STRUCK, Floor(name="copied_before", need=200))
#: A pipeline without outputs has no observers. It leaves records out only if some come again.
REDELIVERED = (*(each for each in BROKEN_FLOORS if each.name != "observers_at_end"), Floor(name="redelivered", need=1))

#: The second kill comes later than the transaction timeout (10 s), so that it meets an instance that works again.
KILLS = tuple(Step(fault=KillInstance(OUTPUT, PARTITIONS), after_s=after_s, hold_s=1) for after_s in (2, 14))
#: The last two are for pipelines with transactions: one is open at the broker that crashes, and at the one that is stopped.
#: A broker that is stopped hands its roles over first, as in a restart by its operator.
BROKERS_FAIL = (
    Step(fault=CrashBroker(GroupCoordinator()), after_s=2, hold_s=3),
    Step(fault=CrashBroker(LeaderOf(OUTPUT, 0)), after_s=2, hold_s=3, once_whole=True),
    Step(fault=CrashBroker(COORDINATOR), after_s=2, hold_s=3, once_whole=True),
    Step(fault=StopBroker(COORDINATOR), after_s=2, hold_s=3, once_whole=True),
)
#: For pipelines without outputs: those that coordinate its group and lead an input.
INPUT_BROKERS_CRASH = (
    Step(fault=CrashBroker(LeaderOf(INPUTS, 0)), after_s=2, hold_s=3),
    Step(fault=CrashBroker(GroupCoordinator()), after_s=2, hold_s=3, once_whole=True),
)
#: The successor starts only when others have the work of the one that was killed.
KILLED_UNTIL_OTHERS = (
    Step(
        fault=KillInstance(OUTPUT, PARTITIONS, until_others=True),
        after_s=2,
        hold_s=1,
        confirm_within_s=TAKEN_OVER_S,
    ),
)
#: Where transactional ids are of instances, nothing takes over the id of one that is paused or cut off: its transaction is
#: aborted by its timeout, and nothing is said about fencing.
PAUSED = (Step(fault=PauseInstance(OUTPUT, PARTITIONS), after_s=2, hold_s=1, confirm_within_s=TAKEN_OVER_S),)
#: It goes on alone, and comes back when others have its work.
ONE_CUT_OFF = (Step(fault=CutInstance(APART, OUTPUT, PARTITIONS), after_s=2, hold_s=1, confirm_within_s=TAKEN_OVER_S),)
#: Longer than the transaction timeout: the open transactions are aborted meanwhile.
CUT_OFF = (Step(fault=CutSite(PIPELINE), after_s=2, hold_s=13),)
#: The transactions are decided, and no instance gets the answer meanwhile. Clients ask again once their connections are
#: closed.
ANSWERS_LOST, ANSWERS_LATE = (
    Step(
        fault=TamperFrames(
            on=FromSite(PIPELINE), frames=FrameFilter(api="EndTxn", direction=Direction.RESPONSE), action=action
        ),
        after_s=2,
        hold_s=4,
    )
    for action in (Drop(), Hold())
)
#: All that a network does between instances and their coordinators; the cut spares what other brokers coordinate. It is
#: longer than the transaction timeout, so that the transaction which was open there is aborted.
NETWORK_FAILS = (Step(fault=CutSite(PIPELINE, COORDINATOR), after_s=2, hold_s=13), ANSWERS_LOST, ANSWERS_LATE)
