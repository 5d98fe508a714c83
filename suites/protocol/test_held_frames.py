"""Requests between brokers that the network holds or loses: markers, verification and replication.

In each case the frames of one kind between two brokers are held, lost, or answered in place of the target. All others
pass.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from chaos import frames
from chaos.cluster import GROUPS_TOPIC
from chaos.frames import Cut, Direction, FrameAction, FrameFilter, Hold
from fixtures.clusters.observing.coordinators import partition_of
from runner.protocol.toolkit import groups, replicas
from runner.protocol.toolkit.case import BOTH, THREE, needs, requirement, versions
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.inspector import ending, result
from runner.protocol.toolkit.producer import ScriptedProducer, base_offset, plain
from runner.protocol.toolkit.responses import Response
from runner.protocol.toolkit.tampering import Tampered, into, tampered, to
from verification.scripts.script import Relation
from wire.codes import ErrorCode as Code
from wire.codes import code_name
from wire.transaction_versions import TransactionVersion
from wire.values import TopicPartition

#: The coordinator waits for request.timeout.ms (5 s) before it sends a marker again.
AGAIN_WITHIN_S = 20.0


def _owner(case: CaseContext, coordinator: int) -> ScriptedProducer:
    return ScriptedProducer(case, replicas.coordinated(case, "owner", by=coordinator)).ready()


@requirement("COORD-11", "TXN-16")
@needs(THREE)
@versions(*BOTH)
def test_a_leader_that_cannot_be_reached_delays_its_own_markers_only(case: CaseContext) -> None:
    """While a marker cannot be delivered the transaction stays in Prepare; its other partitions show it."""
    one, two, coordinator = case.brokers
    far, near = replicas.placed(case, [one, two, coordinator], [two, one, coordinator])
    for commit in (True, False):
        name = replicas.coordinated(case, f"owner-{ending(commit=commit)}", by=coordinator)
        producer = ScriptedProducer(case, name).ready()
        begins = case.inspect.end(far)
        producer.writes(far, near, values=[ending(commit=commit)])
        links = to(coordinator, one)
        with tampered(case, FrameFilter(api="WriteTxnMarkers", producer_id=producer.now.id), Hold(), *links) as markers:
            case.expect_code("EndTxn", producer.end(commit=commit), Code.NONE)
            markers.met("a marker that is held", *links)
            stable = case.poll_until(
                lambda: case.inspect.stable(near), lambda seen: seen == case.inspect.end(near), within_s=10
            )
            case.expect("the last stable offset of the other one", stable, case.inspect.end(near))
            case.expect("the records of the other one", case.inspect.committed(near), ["commit"])
            state = case.inspect.state(str(producer.transactional_id))
            case.expect("the state", state, "PrepareCommit" if commit else "PrepareAbort")
            case.expect("the last stable offset of the far one", case.inspect.stable(far), begins)
            markers.released()
        case.expect(
            "the state at last",
            case.inspect.completed(producer.transactional_id),
            result(commit=commit),
        )
        own = [kind for kind, id_, _ in case.inspect.markers(far) if id_ == producer.now.id]
        # There are several if the coordinator gave up the first after request.timeout.ms (5 s).
        case.expect("the markers of the far one", sorted(set(own)), ["commit" if commit else "abort"])
        case.expect("its last stable offset", case.inspect.stable(far), case.inspect.end(far))
    case.expect("what a reader is given of the far one", case.inspect.committed(far), ["commit"])


@requirement("COORD-12")
@needs(THREE)
@versions(*BOTH)
def test_a_topic_that_is_deleted_while_it_awaits_its_marker(case: CaseContext) -> None:
    """A decided transaction completes although a topic is deleted before its marker was written."""
    one, two, coordinator = case.brokers
    (goes,), (stays,) = (replicas.placed(case, each) for each in ([one, two, coordinator], [two, one, coordinator]))
    producer = _owner(case, coordinator).writes(goes, stays, values=["a"])
    links = to(coordinator, one)
    with tampered(case, FrameFilter(api="WriteTxnMarkers", producer_id=producer.now.id), Hold(), *links) as markers:
        case.expect_code("EndTxn", producer.end(commit=True), Code.NONE)
        markers.met("a marker that is held", *links)
        case.require("the state", case.inspect.state(str(producer.transactional_id)), "PrepareCommit")
        replicas.deleted(case, goes.topic)
        markers.released()
        case.expect(
            "the state at last",
            case.inspect.completed(producer.transactional_id, within_s=AGAIN_WITHIN_S),
            "CompleteCommit",
        )
    case.expect("its partitions", case.inspect.places(str(producer.transactional_id)), [])
    case.expect("the markers of the other one", [kind for kind, _, _ in case.inspect.markers(stays)], ["commit"])
    case.expect("what a reader is given of the other one", case.inspect.committed(stays), ["a"])
    producer.writes(stays, values=["b"]).ends(commit=True, claim=True)
    case.expect("the next transaction", case.inspect.committed(stays), ["a", "b"])


@requirement("COORD-08")
@needs(THREE)
@versions(*BOTH)
def test_a_marker_whose_answer_was_lost_is_sent_again(case: CaseContext) -> None:
    """A marker that was written and whose answer was lost is sent again and changes nothing."""
    one, two, coordinator = case.brokers
    (at,) = replicas.placed(case, [one, two, coordinator])
    producer = _owner(case, coordinator)
    lost = FrameFilter(api="WriteTxnMarkers", direction=Direction.RESPONSE, producer_id=producer.now.id, count=1)
    for commit in (True, False):
        producer.writes(at, values=[ending(commit=commit)])
        with tampered(case, lost, Cut(), *to(coordinator, one)) as markers:
            case.expect_code("EndTxn", producer.end(commit=commit), Code.NONE)
            markers.met("an answer that is lost", *to(coordinator, one))
            word = result(commit=commit)
            case.expect("the state", case.inspect.completed(producer.transactional_id), word)
        own = [kind for kind, _, _ in case.inspect.markers(at)][-2:]
        case.require("the last two markers", own, ["commit" if commit else "abort"] * 2)
        case.expect("the last stable offset", case.inspect.stable(at), case.inspect.end(at))
        case.expect("what a reader is given", case.inspect.committed(at), ["commit"])
        case.expect("aborted transactions", len(case.inspect.aborted(at)), 0 if commit else 1)
    producer.writes(at, values=["next"]).ends(commit=True)
    case.expect("what a reader is given at last", case.inspect.committed(at), ["commit", "next"])


@requirement("TV2-08", "FENCE-10", "TXN-27")
@needs(THREE)
@versions(TransactionVersion.TV2)
def test_a_marker_that_was_held_up_does_not_decide_the_next_transaction(case: CaseContext) -> None:
    """A marker that arrives after its repetition has ended the transaction decides nothing of the next one."""
    one, two, coordinator = case.brokers
    (at,) = replicas.placed(case, [one, two, coordinator])
    producer = _owner(case, coordinator)
    first = FrameFilter(api="WriteTxnMarkers", producer_id=producer.now.id, count=1)
    producer.writes(at, values=["a"])
    with tampered(case, first, Hold(), *to(coordinator, one)) as markers:
        case.require_code("EndTxn", producer.end(commit=True))
        markers.met("a marker that is held", *to(coordinator, one))
        state = case.inspect.complete(producer.transactional_id, within_s=AGAIN_WITHIN_S)
        case.require("the state after the marker was sent again", state, "CompleteCommit")
        case.require("the markers", len(case.inspect.markers(at)), 1)
        producer.writes(at, values=["x"])
        codes = markers.released()
        case.expect("the answer to the late marker", codes, [[code_name(Code.INVALID_PRODUCER_EPOCH)]])
        case.expect("what a reader is given of the open transaction", case.inspect.committed(at), ["a"])
        case.expect("the last stable offset", case.inspect.stable(at), 2)
        case.set_up("EndTxn(abort)", partial(producer.end, commit=False))
        case.inspect.complete(producer.transactional_id)
    case.expect("what a reader is given at last", case.inspect.committed(at), ["a"])


@requirement("ISO-10")
@needs(THREE)
@versions(*BOTH)
def test_a_marker_that_is_not_replicated_shows_nothing(case: CaseContext) -> None:
    """While followers have not fetched the marker, the last stable offset stays at the start of the transaction."""
    one, two, coordinator = case.brokers
    (at,) = replicas.placed(case, [one, two, coordinator])
    producer = _owner(case, coordinator).writes(at, values=["a", "b"])
    case.require("the last stable offset before", case.inspect.stable(at), 0)
    with tampered(case, FrameFilter(api="Fetch"), Hold(), *into(one, two, coordinator)) as fetches:
        fetches.met("a Fetch of each follower", *into(one, two, coordinator))
        case.expect_code("EndTxn", producer.end(commit=True), Code.NONE)
        decided = case.poll_until(lambda: case.inspect.open_at(at), lambda seen: not seen, within_s=10)
        case.require("open transactions as the leader, which has the marker, knows them", decided, [])
        seen = [case.inspect.end(at), case.inspect.stable(at), case.inspect.committed(at)]
        # The leader would no longer wait for a follower that has left the in-sync set.
        case.require("replicas in sync", len(replicas.in_sync(case, at)), 3)
        case.expect("the high watermark, the last stable offset, what a reader is given", seen, [2, 0, []])
    case.expect("the state at last", case.inspect.completed(producer.transactional_id), "CompleteCommit")
    case.expect("what a reader is given at last", case.inspect.committed(at), ["a", "b"])


@requirement("TXN-29")
@needs(THREE)
@versions(*BOTH)
def test_nothing_is_appended_that_cannot_be_verified(case: CaseContext) -> None:
    """While the coordinator cannot be asked, a transactional batch is refused with a code that clients retry."""
    one, two, coordinator = case.brokers
    (at,) = replicas.placed(case, [one, two, coordinator])
    producer = _owner(case, coordinator)
    attacks: tuple[tuple[str, FrameAction], ...] = (
        ("the coordinator loads", frames.Respond(error_code=int(Code.COORDINATOR_LOAD_IN_PROGRESS))),
        ("the coordinator is not available", frames.Respond(error_code=int(Code.COORDINATOR_NOT_AVAILABLE))),
        ("the coordinator is another one", frames.Respond(error_code=int(Code.NOT_COORDINATOR))),
        ("the connection ends", Cut()),
    )
    if case.transaction_version is TransactionVersion.TV1:
        case.set_up("the partition is added", lambda: producer.add(at))
    for what, action in attacks:
        with tampered(case, FrameFilter(api="AddPartitionsToTxn"), action, *to(one, coordinator)) as asked:
            # The leader's old connection ended when the link was redirected; its next request may find that.
            answer = _until_met(case, partial(producer.produce, at, [what]), asked)
            case.expect_code(f"Produce while {what}", answer, Code.NOT_ENOUGH_REPLICAS)
            case.expect("the end of the log", case.inspect.end(at), 0)
    retried = int(Code.NOT_ENOUGH_REPLICAS)
    produce = partial(producer.produce, at, ["a"])
    answer = case.poll_until(produce, lambda each: each.code != retried, within_s=AGAIN_WITHIN_S)
    case.expect_code("Produce afterwards", answer, Code.NONE)
    case.expect("its offset", base_offset(answer), 0)
    producer.ends(commit=True)
    case.expect("what a reader is given", case.inspect.committed(at), ["a"])
    plain(case, at, "b")


def _until_met(case: CaseContext, ask: Callable[[], Response], tampering: Tampered) -> Response:
    """Repeat a request until the rule has matched a frame; returns the answer."""
    answer: Response = case.poll_until(ask, lambda _: bool(tampering.rule.count), within_s=AGAIN_WITHIN_S)
    case.require("frames that were met", tampering.rule.count, 1, Relation.AT_LEAST)
    return answer


@requirement("GRP-17")
@needs(THREE)
@versions(*BOTH)
def test_pending_offsets_survive_their_coordinator(case: CaseContext) -> None:
    """The next group coordinator keeps pending offsets pending, until the transaction decides them."""
    (at,) = case.topic()
    for commit in (True, False):
        group = f"{case.name}-group-{ending(commit=commit)}"
        owner = ScriptedProducer(case, f"{case.name}-{ending(commit=commit)}").ready()
        case.set_up("an offset of before", partial(groups.commit, case, group, {at: 3}))
        groups.pends(owner, group, {at: 7})
        before = case.group_coordinator(group)
        after = next(each for each in case.brokers if each != before)
        count = len(case.client.metadata([GROUPS_TOPIC]).topics[GROUPS_TOPIC].partitions)
        replicas.lead(case, TopicPartition(GROUPS_TOPIC, partition_of(group, count)), after)
        case.require("the group's coordinator now", case.group_coordinator(group), after)
        case.expect("the stable offset", case.inspect.offset(group, at, stable=True), "UNSTABLE_OFFSET_COMMIT")
        case.expect("the committed offset", case.inspect.offset(group, at), 3)
        case.expect_code("EndTxn", owner.end(commit=commit), Code.NONE)
        case.expect("the state", case.inspect.completed(owner.transactional_id), result(commit=commit))
        case.expect("the stable offset at last", case.inspect.offset(group, at, stable=True), 7 if commit else 3)
