"""What a network does to the requests of brokers among themselves: markers, verification and replication held or lost.

Each case lets the frames of one kind between two brokers wait, be lost or be answered in somebody's place, while all
others pass.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from chaos import frames
from chaos.frames import Action, Cut, Direction, Frames, Hold
from fixtures.clusters.observing.coordinators import GROUPS_TOPIC, partition_of
from runner.protocol.toolkit import groups, replicas
from runner.protocol.toolkit.case import BOTH, THREE, generations, needs, requirement
from runner.protocol.toolkit.context import Stage
from runner.protocol.toolkit.inspector import result
from runner.protocol.toolkit.producer import ScriptedProducer, base_offset, plain
from runner.protocol.toolkit.responses import Answer
from runner.protocol.toolkit.tampering import Tampered, into, tampered, to
from verification.scripts.script import Relation
from wire.codes import ErrorCode as Code
from wire.codes import code_name
from wire.transaction_versions import Generation
from wire.values import TopicPartition

#: The coordinator waits for request.timeout.ms (5 s) before it sends a marker again.
AGAIN_WITHIN_S = 20.0


def _owner(stage: Stage, coordinator: int) -> ScriptedProducer:
    return ScriptedProducer(stage, replicas.coordinated(stage, "owner", by=coordinator)).ready()


@requirement("COORD-11", "TXN-16")
@needs(THREE)
@generations(*BOTH)
def test_a_leader_that_cannot_be_reached_delays_its_own_markers_only(stage: Stage) -> None:
    """While a marker cannot be delivered the transaction stays in Prepare; its other partitions show it."""
    one, two, coordinator = stage.brokers
    far, near = replicas.placed(stage, [one, two, coordinator], [two, one, coordinator])
    for commit in (True, False):
        name = replicas.coordinated(stage, f"owner-{commit}", by=coordinator)
        producer = ScriptedProducer(stage, name).ready()
        begins = stage.see.end(far)
        producer.writes(far, near, values=[str(commit)])
        links = to(coordinator, one)
        with tampered(stage, Frames(api="WriteTxnMarkers", producer_id=producer.now.id), Hold(), *links) as markers:
            stage.expect_code("EndTxn", producer.end(commit=commit), Code.NONE)
            markers.met("a marker that is held", *links)
            stable = stage.until(lambda: stage.see.stable(near), lambda seen: seen == stage.see.end(near), within_s=10)
            stage.expect("the last stable offset of the other one", stable, stage.see.end(near))
            stage.expect("the records of the other one", stage.see.committed(near), ["True"])
            state = stage.see.state(str(producer.transactional_id))
            stage.expect("the state", state, "PrepareCommit" if commit else "PrepareAbort")
            stage.expect("the last stable offset of the far one", stage.see.stable(far), begins)
            markers.released()
        stage.expect(
            "the state at last",
            stage.see.completed(producer.transactional_id),
            result(commit=commit),
        )
        own = [kind for kind, who, _ in stage.see.markers(far) if who == producer.now.id]
        # More than one where the coordinator gave the first up: it waits for request.timeout.ms (5 s).
        stage.expect("the markers of the far one", sorted(set(own)), ["commit" if commit else "abort"])
        stage.expect("its last stable offset", stage.see.stable(far), stage.see.end(far))
    stage.expect("what a reader is given of the far one", stage.see.committed(far), ["True"])


@requirement("COORD-12")
@needs(THREE)
@generations(*BOTH)
def test_a_topic_that_is_deleted_while_it_awaits_its_marker(stage: Stage) -> None:
    """A transaction that is decided completes although a topic is deleted before its marker was written."""
    one, two, coordinator = stage.brokers
    (goes,), (stays,) = (replicas.placed(stage, each) for each in ([one, two, coordinator], [two, one, coordinator]))
    producer = _owner(stage, coordinator).writes(goes, stays, values=["a"])
    links = to(coordinator, one)
    with tampered(stage, Frames(api="WriteTxnMarkers", producer_id=producer.now.id), Hold(), *links) as markers:
        stage.expect_code("EndTxn", producer.end(commit=True), Code.NONE)
        markers.met("a marker that is held", *links)
        stage.require("the state", stage.see.state(str(producer.transactional_id)), "PrepareCommit")
        replicas.deleted(stage, goes.topic)
        markers.released()
        stage.expect(
            "the state at last",
            stage.see.completed(producer.transactional_id, within_s=AGAIN_WITHIN_S),
            "CompleteCommit",
        )
    stage.expect("its partitions", stage.see.places(str(producer.transactional_id)), [])
    stage.expect("the markers of the other one", [kind for kind, _, _ in stage.see.markers(stays)], ["commit"])
    stage.expect("what a reader is given of the other one", stage.see.committed(stays), ["a"])
    producer.writes(stays, values=["b"]).ends(commit=True, claim=True)
    stage.expect("the next transaction", stage.see.committed(stays), ["a", "b"])


@requirement("COORD-08")
@needs(THREE)
@generations(*BOTH)
def test_a_marker_whose_answer_was_lost_is_sent_again(stage: Stage) -> None:
    """A marker that was written and whose answer was lost is sent again and changes nothing."""
    one, two, coordinator = stage.brokers
    (at,) = replicas.placed(stage, [one, two, coordinator])
    producer = _owner(stage, coordinator)
    lost = Frames(api="WriteTxnMarkers", direction=Direction.RESPONSE, producer_id=producer.now.id, count=1)
    for commit in (True, False):
        producer.writes(at, values=[str(commit)])
        with tampered(stage, lost, Cut(), *to(coordinator, one)) as markers:
            stage.expect_code("EndTxn", producer.end(commit=commit), Code.NONE)
            markers.met("an answer that is lost", *to(coordinator, one))
            word = result(commit=commit)
            stage.expect("the state", stage.see.completed(producer.transactional_id), word)
        own = [kind for kind, _, _ in stage.see.markers(at)][-2:]
        stage.require("the last two markers", own, ["commit" if commit else "abort"] * 2)
        stage.expect("the last stable offset", stage.see.stable(at), stage.see.end(at))
        stage.expect("what a reader is given", stage.see.committed(at), ["True"])
        stage.expect("aborted transactions", len(stage.see.aborted(at)), 0 if commit else 1)
    producer.writes(at, values=["next"]).ends(commit=True)
    stage.expect("what a reader is given at last", stage.see.committed(at), ["True", "next"])


@requirement("TV2-08", "FENCE-10", "TXN-27")
@needs(THREE)
@generations(Generation.TV2)
def test_a_marker_that_was_held_up_does_not_decide_the_next_transaction(stage: Stage) -> None:
    """A marker that the network holds until its repetition has ended the transaction decides nothing of the next one."""
    one, two, coordinator = stage.brokers
    (at,) = replicas.placed(stage, [one, two, coordinator])
    producer = _owner(stage, coordinator)
    first = Frames(api="WriteTxnMarkers", producer_id=producer.now.id, count=1)
    producer.writes(at, values=["a"])
    with tampered(stage, first, Hold(), *to(coordinator, one)) as markers:
        stage.require_code("EndTxn", producer.end(commit=True))
        markers.met("a marker that is held", *to(coordinator, one))
        state = stage.see.complete(producer.transactional_id, within_s=AGAIN_WITHIN_S)
        stage.require("the state after the marker was sent again", state, "CompleteCommit")
        stage.require("the markers", len(stage.see.markers(at)), 1)
        producer.writes(at, values=["x"])
        codes = markers.released()
        stage.expect("the answer to the late marker", codes, [[code_name(Code.INVALID_PRODUCER_EPOCH)]])
        stage.expect("what a reader is given of the open transaction", stage.see.committed(at), ["a"])
        stage.expect("the last stable offset", stage.see.stable(at), 2)
        stage.set_up("EndTxn(abort)", partial(producer.end, commit=False))
        stage.see.complete(producer.transactional_id)
    stage.expect("what a reader is given at last", stage.see.committed(at), ["a"])


@requirement("ISO-10")
@needs(THREE)
@generations(*BOTH)
def test_a_marker_that_is_not_replicated_shows_nothing(stage: Stage) -> None:
    """While followers have not fetched the marker, the last stable offset stays at the start of the transaction."""
    one, two, coordinator = stage.brokers
    (at,) = replicas.placed(stage, [one, two, coordinator])
    producer = _owner(stage, coordinator).writes(at, values=["a", "b"])
    stage.require("the last stable offset before", stage.see.stable(at), 0)
    with tampered(stage, Frames(api="Fetch"), Hold(), *into(one, two, coordinator)) as fetches:
        fetches.met("a Fetch of each follower", *into(one, two, coordinator))
        stage.expect_code("EndTxn", producer.end(commit=True), Code.NONE)
        decided = stage.until(lambda: stage.see.open_at(at), lambda seen: not seen, within_s=10)
        stage.require("open transactions as the leader, which has the marker, knows them", decided, [])
        seen = [stage.see.end(at), stage.see.stable(at), stage.see.committed(at)]
        # A follower that has left the set since would no longer be waited for.
        stage.require("replicas in sync", len(replicas.in_sync(stage, at)), 3)
        stage.expect("the high watermark, the last stable offset, what a reader is given", seen, [2, 0, []])
    stage.expect("the state at last", stage.see.completed(producer.transactional_id), "CompleteCommit")
    stage.expect("what a reader is given at last", stage.see.committed(at), ["a", "b"])


@requirement("TXN-29")
@needs(THREE)
@generations(*BOTH)
def test_nothing_is_appended_that_cannot_be_verified(stage: Stage) -> None:
    """While the coordinator cannot be asked, a transactional batch is refused with a code that clients retry."""
    one, two, coordinator = stage.brokers
    (at,) = replicas.placed(stage, [one, two, coordinator])
    producer = _owner(stage, coordinator)
    attacks: tuple[tuple[str, Action], ...] = (
        ("the coordinator loads", frames.Answer(error_code=int(Code.COORDINATOR_LOAD_IN_PROGRESS))),
        ("the coordinator is not available", frames.Answer(error_code=int(Code.COORDINATOR_NOT_AVAILABLE))),
        ("the coordinator is another one", frames.Answer(error_code=int(Code.NOT_COORDINATOR))),
        ("the connection ends", Cut()),
    )
    if stage.generation is Generation.TV1:
        stage.set_up("the partition is added", lambda: producer.add(at))
    for what, action in attacks:
        with tampered(stage, Frames(api="AddPartitionsToTxn"), action, *to(one, coordinator)) as asked:
            # The leader's old connection ended when the link was led elsewhere; it may notice that by asking.
            answer = _until_met(stage, partial(producer.produce, at, [what]), asked)
            stage.expect_code(f"Produce while {what}", answer, Code.NOT_ENOUGH_REPLICAS)
            stage.expect("the end of the log", stage.see.end(at), 0)
    retried = int(Code.NOT_ENOUGH_REPLICAS)
    produce = partial(producer.produce, at, ["a"])
    answer = stage.until(produce, lambda each: each.code != retried, within_s=AGAIN_WITHIN_S)
    stage.expect_code("Produce afterwards", answer, Code.NONE)
    stage.expect("its offset", base_offset(answer), 0)
    producer.ends(commit=True)
    stage.expect("what a reader is given", stage.see.committed(at), ["a"])
    plain(stage, at, "b")


def _until_met(stage: Stage, ask: Callable[[], Answer], tampering: Tampered) -> Answer:
    """Ask until the rule has met a frame; the answer to that request."""
    answer: Answer = stage.until(ask, lambda _: bool(tampering.rule.count), within_s=AGAIN_WITHIN_S)
    stage.require("frames that were met", tampering.rule.count, 1, Relation.AT_LEAST)
    return answer


@requirement("GRP-17")
@needs(THREE)
@generations(*BOTH)
def test_pending_offsets_survive_their_coordinator(stage: Stage) -> None:
    """The next group coordinator has pending offsets as pending, and then as the transaction decides."""
    (at,) = stage.topic()
    for commit in (True, False):
        group = f"{stage.name}-group-{commit}"
        owner = ScriptedProducer(stage, f"{stage.name}-{commit}").ready()
        stage.set_up("an offset of before", partial(groups.commit, stage, group, {at: 3}))
        groups.pends(owner, group, {at: 7})
        before = stage.group_coordinator(group)
        after = next(each for each in stage.brokers if each != before)
        count = len(stage.client.metadata([GROUPS_TOPIC]).topics[GROUPS_TOPIC].partitions)
        replicas.lead(stage, TopicPartition(GROUPS_TOPIC, partition_of(group, count)), after)
        stage.require("the group's coordinator now", stage.group_coordinator(group), after)
        stage.expect("the stable offset", stage.see.offset(group, at, stable=True), "UNSTABLE_OFFSET_COMMIT")
        stage.expect("the committed offset", stage.see.offset(group, at), 3)
        stage.expect_code("EndTxn", owner.end(commit=commit), Code.NONE)
        stage.expect("the state", stage.see.completed(owner.transactional_id), result(commit=commit))
        stage.expect("the stable offset at last", stage.see.offset(group, at, stable=True), 7 if commit else 3)
