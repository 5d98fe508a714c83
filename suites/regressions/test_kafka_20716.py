"""KB-13: an unclean leader election loses acknowledged records and markers (KAFKA-20716).

A replica outside the in-sync set becomes leader, and acknowledged records that it had not fetched are lost. The lost
part may include the marker of a transaction whose data the replica has. Then the transaction is open on the partition
and complete at its coordinator, and the last stable offset stands. It is the documented price of
`unclean.leader.election.enable`, on every release. Without the setting the partition waits for the complete replica.
"""

from __future__ import annotations

from chaos.cluster import BrokerId
from runner.protocol.toolkit import brokers
from runner.protocol.toolkit.case import THREE
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.producer import ScriptedProducer, plain
from runner.protocol.toolkit.replicas import coordinated, placed
from runner.regressions.outages import MISSED_WITHIN_S, leader, whole_afterwards
from runner.regressions.probes import readable_to
from runner.regressions.reproduction import decide, reproduces

ON = ("3.9.2", "4.3.1", "4.4.0")
RECORDS = [f"acknowledged {number}" for number in range(5)]
#: Without the setting no replica may lead. An election would follow at once when the broker is back.
LEADERLESS_S = 3.0


@reproduces("KB-13", only=ON, violated=[("2.4.0", None)], needs=THREE)
def test_a_stale_replica_leads(case: CaseContext) -> None:
    """With unclean elections, acknowledged records and markers outlive the replicas that were in sync."""
    _only_the_stale_one_returns(case, unclean=True)


@reproduces("KB-13", "/clean", only=ON, violated=[], needs=THREE)
def test_a_stale_replica_waits(case: CaseContext) -> None:
    """Without unclean elections, acknowledged records and markers outlive the replicas that were in sync."""
    _only_the_stale_one_returns(case, unclean=False)


def _only_the_stale_one_returns(case: CaseContext, *, unclean: bool) -> None:
    asked = brokers.controller(case)
    first, stale = (each for each in case.brokers if each != asked)
    setting = {"unclean_leader_election_enable": str(unclean).lower()}
    (at,) = placed(case, [first, stale], min_insync_replicas="1", **setting)
    producer = ScriptedProducer(case, coordinated(case, "owner", by=asked)).ready().writes(at, values=["a"])
    # The high watermark passes a record once both replicas have it.
    end = case.poll_until(lambda: case.inspect.end(at), lambda seen: seen == 1, within_s=MISSED_WITHIN_S)
    case.require("the high watermark", end, 1)
    with whole_afterwards(case):
        _take(case, stale)
        producer.ends(commit=True)
        for value in RECORDS:
            plain(case, at, value)
        _take(case, first)
        case.cluster.start(BrokerId(stale))
        back = case.poll_until(lambda: stale in case.brokers, bool, within_s=MISSED_WITHIN_S)
        case.require("the broker of the stale replica is back", back, True)
        # The other brokers first notice that the crashed one is gone; an election may follow then, or not at all.
        led = case.poll_until(lambda: leader(case, at), lambda each: each not in (first, -1), within_s=MISSED_WITHIN_S)
        if led is None:
            led = case.poll_until(lambda: leader(case, at), lambda each: each is not None, within_s=LEADERLESS_S)
    log, readers = case.inspect.values(at), case.inspect.committed(at)
    seen = {
        "it leads": led == stale,
        "the log": log,
        "what readers are given": readers,
        "readable to the end": readable_to(case, at),
    }
    everything = ["a", *RECORDS]
    held = {"the log": everything, "what readers are given": everything, "readable to the end": True}
    violated = {"it leads": True, "the log": ["a"], "what readers are given": [], "readable to the end": False}
    decide(case, "what is left", seen, held=held, violated=violated)


def _take(case: CaseContext, broker: int) -> None:
    case.cluster.crash(BrokerId(broker))
    case.close_connections()
