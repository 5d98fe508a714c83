"""REC: elections after the last in-sync replica of a partition crashed, and what is left of its acknowledged records.

Both cases cut followers off their leader, so that they fall behind and leave the in-sync set, and then crash the leader.
The controller is a third broker, which no link keeps from holding the election.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from runner.protocol.toolkit import brokers, replicas
from runner.protocol.toolkit.case import THREE, needs, requirement, shares
from runner.protocol.toolkit.context import CaseContext, Sent
from runner.protocol.toolkit.coordinators import id_at
from runner.protocol.toolkit.producer import ScriptedProducer, plain
from runner.protocol.toolkit.script_recorder import NotApplicableError
from runner.protocol.toolkit.tampering import to
from verification.scripts.script import Relation
from wire.codes import ErrorCode as Code
from wire.codes import code_name
from wire.values import TopicPartition

#: A leader gives up a replica after replica.lag.time.max.ms (3 s), and checks in half of that.
SHRUNK_WITHIN_S = 20.0
#: Codes of a record that fewer replicas have than min.insync.replicas asks for.
TOO_FEW = (Code.NOT_ENOUGH_REPLICAS_AFTER_APPEND, Code.NOT_ENOUGH_REPLICAS, Code.REQUEST_TIMED_OUT)
ELIGIBLE = "eligible.leader.replicas.version"
#: 4.0 knows the feature and leaves it off; clusters that are formatted by 4.1 or later have it.
ELIGIBLE_SINCE = "4.1.0"


@requirement("REC-08")
@needs(THREE)
@shares("leader crashed")
def test_an_unclean_leader_lacks_what_was_acknowledged(case: CaseContext) -> None:
    """With unclean elections a replica without the last records leads; they are gone, and a transaction stays open."""
    first, stale, asked = _roles(case)
    (at,) = replicas.placed(case, [first, stale], min_insync_replicas="1", unclean_leader_election_enable="true")
    owner = id_at(case, "owner", asked).writes(at, values=["a"])
    case.require(
        "the high watermark", case.poll_until(partial(case.inspect.end, at), bool, within_s=SHRUNK_WITHIN_S), 1
    )
    with ExitStack() as away, _cut_off(case, stale, first):
        case.expect_code("EndTxn(commit)", owner.end(commit=True), Code.NONE)
        plain(case, at, "acknowledged")
        case.require("the state", case.inspect.complete(owner.transactional_id), "CompleteCommit")
        # The leader knows it first: it acknowledges at once, and other brokers learn of it some milliseconds later.
        _await_in_sync(case, at, first)
        case.require("what a reader is given", case.inspect.committed(at), ["a", "acknowledged"])
        away.enter_context(brokers.crashed(case, first))
        case.expect("the leader that is elected", brokers.elected(case, at, instead_of=first), stale)
    case.expect("the log without the acknowledged record", case.inspect.values(at), ["a"])
    case.expect("the markers", case.inspect.markers(at), [])
    case.expect("the stable offset and the end", [case.inspect.stable(at), case.inspect.end(at)], [0, 1])
    case.expect("what a reader is given of the committed transaction", case.inspect.committed(at), [])
    # Its transaction would stay open for ever.
    replicas.deleted(case, at.topic)


@requirement("REC-09")
@needs(THREE)
@shares("leader crashed")
def test_an_eligible_replica_leads_and_has_every_record(case: CaseContext) -> None:
    """When the last in-sync replica crashes, a replica with all acknowledged records leads, and none without them."""
    if not case.since(ELIGIBLE_SINCE):
        raise NotApplicableError(f"{ELIGIBLE} is off in new clusters before {ELIGIBLE_SINCE} (KIP-966)")
    case.require(ELIGIBLE, case.client.connection().features.get(ELIGIBLE), 1)
    first, stale, asked = _roles(case)
    # The replica that lacks records would be preferred to the one that has them.
    (at,) = replicas.placed(case, [first, stale, asked])
    # A leader gives up a replica only if it lacks a record. The links are restored before the leader is back.
    with ExitStack() as away, _cut_off(case, stale, first):
        by_two = _written(case, at, "acknowledged by two", first)
        _await_in_sync(case, at, first, asked)
        case.require_code("a record that two replicas have", by_two.receive())
        with _cut_off(case, asked, first):
            alone = _written(case, at, "not acknowledged", first, TimeoutMs=1000)
            _await_in_sync(case, at, first)
            refused = code_name(alone.receive().code)
            case.require("a record that one replica has", refused, [*map(code_name, TOO_FEW)], Relation.ONE_OF)
            away.enter_context(brokers.crashed(case, first))
            case.expect("the leader that is elected", brokers.elected(case, at, instead_of=first), asked)
    case.expect("the acknowledged record", case.inspect.values(at)[:1], ["acknowledged by two"])
    plain(case, at, "next")
    case.expect("the next record", case.inspect.values(at)[-1:], ["next"])


def _written(case: CaseContext, at: TopicPartition, value: str, leader: int, **fields: int) -> Sent:
    """Send a record to its leader, without waiting for the replicas."""
    producer, connection = ScriptedProducer(case, None), case.open_connection(leader)
    body = producer.produce_body({at: producer.batch(at, [value], sequence=-1)}) | fields
    return case.send(case.request("Produce", body, connection=connection), connection=connection)


def _roles(case: CaseContext) -> tuple[int, int, int]:
    """The broker that leads and crashes, one that falls behind, and the controller."""
    asked = brokers.controller(case)
    first = brokers.spare(case)
    stale = next(each for each in case.brokers if each not in (asked, first))
    return first, stale, asked


@contextmanager
def _cut_off(case: CaseContext, follower: int, leader: int) -> Iterator[None]:
    """Keep a follower from fetching from a leader."""
    brokers.require_links(case)
    links = to(follower, leader)
    known = set(links) <= set(case.cluster.links.links())
    case.require(f"there is a link from broker {follower} to broker {leader}, which can be cut", known, True)
    case.cluster.links.cut(*links)
    try:
        yield
    finally:
        case.cluster.links.restore(*links)


def _await_in_sync(case: CaseContext, at: TopicPartition, *wanted: int) -> None:
    seen = case.poll_until(
        partial(replicas.in_sync, case, at), lambda each: each == sorted(wanted), within_s=SHRUNK_WITHIN_S
    )
    case.require("the replicas in sync", seen, sorted(wanted))
