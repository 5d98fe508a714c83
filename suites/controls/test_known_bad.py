"""Controls: subjects that are known to be bad. A suite that does not find exactly the planted fault proves nothing.

Controls test this suite and not the cluster. A control that is MISSED makes the whole run an ERROR.
"""

from __future__ import annotations

from chaos.clients import SyncPoint
from chaos.cluster import Site
from chaos.faults.clients import KillClient
from chaos.faults.compound import ElectUncleanly, IsolateThenCrashLeader
from chaos.faults.frames import TamperFrames
from chaos.faults.sites import LoseResponses
from chaos.faults.zombies import PausedZombie
from chaos.frames import FrameFilter, Respond
from chaos.link_targets import BetweenBrokers, FromSite
from chaos.schedule import Step
from chaos.targets import AllBrokers, LeaderAwayFromCoordinators, LeaderOf
from fixtures.workloads import CopyWorkload, IdempotentAppend, OrderFanOut
from fixtures.workloads.slots import Misreading
from runner.scenarios.scenario import STRUCK, THREE_BROKERS, RunScenario, convict, librdkafka, local_only, smoke
from verification.vocabulary.experiment import Floor
from wire.codes import ErrorCode as Code

#: Every transaction writes to every partition, so to every leader, and is committed.
_ORDERS = OrderFanOut(partitions=3, spread=3, records_per_transaction=24, abort_ratio=0.0, plain_ratio=0.0, rate=400)


# A control needs a client that does it. Without idempotence aiokafka gives a batch up with its first request that times out.
@smoke
@librdkafka
@convict("duplicate")
def test_retries_without_idempotence(run: RunScenario) -> None:
    """A producer that retries lost responses without idempotence writes records twice."""
    run(
        cluster=THREE_BROKERS,
        workload=IdempotentAppend(partitions=4, idempotence=False),
        schedule=(Step(fault=LoseResponses(Site("app"), "billing-events", 0), hold_s=5),),
        floors=STRUCK,
    )


@convict("lost-write")
def test_acknowledged_by_the_leader_alone(run: RunScenario) -> None:
    """With acks=1 an isolated leader acknowledges records that die with it."""
    run(
        cluster=THREE_BROKERS,
        workload=IdempotentAppend(partitions=4, idempotence=False, acks="1"),
        schedule=(Step(fault=IsolateThenCrashLeader("billing-events", 0), hold_s=4),),
        floors=STRUCK,
    )


@convict("duplicate")
def test_copier_that_writes_then_commits_offsets(run: RunScenario) -> None:
    """A copier that dies between writing and committing its offsets makes its successor write again."""
    run(
        cluster=THREE_BROKERS,
        workload=CopyWorkload(partitions=2, order="write-then-offsets"),
        schedule=(Step(fault=KillClient("copier", SyncPoint.BETWEEN), hold_s=2),),
        floors=STRUCK,
    )


@convict("offset-without-output")
def test_copier_that_commits_offsets_then_writes(run: RunScenario) -> None:
    """A copier that dies between committing its offsets and writing leaves inputs without outputs."""
    run(
        cluster=THREE_BROKERS,
        workload=CopyWorkload(partitions=2, order="offsets-then-write"),
        schedule=(Step(fault=KillClient("copier", SyncPoint.BETWEEN), hold_s=2),),
        floors=STRUCK,
    )


@convict("output-without-offset")
def test_copier_that_never_comes_back(run: RunScenario) -> None:
    """The outputs of a copier that dies before committing its offsets, and has no successor, have no offset."""
    run(
        cluster=THREE_BROKERS,
        workload=CopyWorkload(partitions=2, members=1, order="write-then-offsets"),
        schedule=(Step(fault=KillClient("copier", SyncPoint.BETWEEN, replaced=False), hold_s=2),),
        floors=STRUCK,
        copies_on=False,
    )


@convict("aborted-read|early-read")
def test_reader_that_lies_about_its_isolation(run: RunScenario) -> None:
    """A read_uncommitted consumer that claims read_committed receives aborted and undecided records."""
    run(
        cluster=THREE_BROKERS,
        workload=OrderFanOut(partitions=4, misreads=Misreading.ISOLATION),
        floors=STRUCK[:1],
    )


@convict("lost-write")
def test_unclean_election(run: RunScenario) -> None:
    """A leader that is elected uncleanly lacks records that the last one acknowledged."""
    run(
        cluster=THREE_BROKERS,
        workload=IdempotentAppend(partitions=1),
        schedule=(Step(fault=ElectUncleanly("billing-events", 0), hold_s=3),),
        floors=STRUCK,
        replication=2,
        min_in_sync=1,
        topic_settings={"unclean.leader.election.enable": "true"},
    )


@librdkafka
@local_only
@convict("hung-transaction", "decided-late")
def test_leader_that_acknowledges_markers_and_drops_them(run: RunScenario) -> None:
    """Transactions whose markers a leader acknowledges and does not write stay open, or the next marker decides them."""
    run(
        cluster=THREE_BROKERS,
        workload=_ORDERS,
        schedule=(
            Step(
                fault=TamperFrames(
                    on=BetweenBrokers(AllBrokers(), LeaderAwayFromCoordinators("billing-events")),
                    frames=FrameFilter(api="WriteTxnMarkers"),
                    action=Respond(error_code=Code.NONE),
                ),
                hold_s=2,
                while_held=SyncPoint.BEFORE_COMMIT,
                # They never write there again, so nothing decides their transactions; the others go on.
                holding=2,
                leaving=2,
            ),
        ),
        floors=STRUCK,
    )


@librdkafka
@local_only
@convict("torn-transaction")
def test_leader_that_acknowledges_records_and_drops_them(run: RunScenario) -> None:
    """Transactions whose records a leader acknowledges and does not write are committed without them."""
    run(
        cluster=THREE_BROKERS,
        workload=_ORDERS,
        schedule=(
            Step(
                fault=TamperFrames(
                    on=FromSite(Site("app"), LeaderOf("billing-events", 0)),
                    frames=FrameFilter(api="Produce"),
                    action=Respond(error_code=Code.NONE),
                ),
                hold_s=2,
            ),
        ),
        floors=STRUCK,
    )


@librdkafka
@local_only
# The steps close connections, so requests without an answer may be written twice as well.
@convict("reordered-write", "reordered-write|duplicate")
def test_retries_with_several_requests_in_flight(run: RunScenario) -> None:
    """Without idempotence a request that is refused and sent again is written after those that were sent later."""
    refused = Step(
        fault=TamperFrames(
            on=FromSite(Site("app"), LeaderOf("billing-events", 0)),
            # Fewer than an operation has: the rest of them are written first.
            frames=FrameFilter(api="Produce", count=7),
            action=Respond(error_code=Code.NOT_ENOUGH_REPLICAS),
        ),
        hold_s=1,
    )
    run(
        cluster=THREE_BROKERS,
        workload=IdempotentAppend(
            partitions=1, idempotence=False, ordered=True, rate=400, settings={"batch.num.messages": 1}
        ),
        # Twice, because the refused ones can be the last of their operation.
        schedule=(refused, refused),
        floors=STRUCK,
    )


@librdkafka
@convict("poll-skip", "nonmonotonic-poll")
def test_reader_that_loses_its_position(run: RunScenario) -> None:
    """A reader that loses the records of a poll, and later goes back, misses records and receives others again."""
    run(
        cluster=THREE_BROKERS,
        workload=IdempotentAppend(partitions=4, rate=400, misreads=Misreading.POSITION),
        floors=(Floor(name="ok_before", need=50),),
    )


@librdkafka
@convict("aborted-read", "zombie-write")
def test_mock_cluster(run: RunScenario) -> None:
    """The mock cluster of librdkafka shows aborted records and lets a superseded producer commit."""
    run(
        cluster=THREE_BROKERS,
        mock=True,
        workload=OrderFanOut(
            partitions=4, producers=3, records_per_transaction=6, plain_ratio=0.0, zombie=True, rate=200
        ),
        schedule=(Step(fault=PausedZombie(Site("zombie"), Site("app")), after_s=1, hold_s=1, confirm_within_s=1),),
        floors=(Floor(name="transactions", need=100),),
    )
