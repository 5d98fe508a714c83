"""TXN, ending: EndTxn, once and again, and what it leaves in logs, in the coordinator and before readers."""

from __future__ import annotations

from functools import partial
from operator import eq

from runner.protocol.toolkit.case import BOTH, generations, requirement
from runner.protocol.toolkit.context import Line, Stage
from runner.protocol.toolkit.expected_codes import expect_fenced, late_commit_code
from runner.protocol.toolkit.inspector import result
from runner.protocol.toolkit.producer import ScriptedProducer
from runner.protocol.toolkit.responses import Answer
from wire.codes import ErrorCode as Code
from wire.request import Request
from wire.transaction_versions import Generation
from wire.values import Producer, TopicPartition

COMPLETE_WITHIN_S = 15.0


def opened(stage: Stage, *, partitions: int = 1) -> tuple[ScriptedProducer, tuple[TopicPartition, ...]]:
    """A producer with a transaction open on the partitions of a new topic, one record on each."""
    places = stage.topic(partitions=partitions)
    return ScriptedProducer(stage, f"{stage.name}-owner").ready().writes(*places), places


@requirement("TXN-16")
@generations(*BOTH)
def test_an_end_puts_one_marker_on_every_partition(stage: Stage) -> None:
    """After EndTxn every partition gets one marker of its result, and the transaction completes without partitions."""
    for commit in (True, False):
        places = stage.topic(partitions=3)
        name = f"{stage.name}-{'commit' if commit else 'abort'}"
        producer = ScriptedProducer(stage, name).ready().writes(*places, values=["a", "b"])
        before = producer.now
        stage.expect_code(f"EndTxn, commit {commit}", producer.end(commit=commit), Code.NONE)
        if stage.since("3.0.0"):
            stage.expect("the state", stage.see.completed(producer.transactional_id), result(commit=commit))
            stage.expect("its partitions", stage.see.places(name), [])
        else:
            stage.set_up("the end is complete", partial(producer.end, commit=commit))
        marker = ("commit" if commit else "abort", before.id, before.epoch + (stage.generation is Generation.TV2))
        for at in places:
            stage.expect(f"the markers of {at}", stage.see.markers(at), [marker])
            stage.expect(f"what readers of {at} are given", stage.see.committed(at), ["a", "b"] if commit else [])
            stage.expect(f"the last stable offset of {at}", stage.see.stable(at), 3)


@requirement("TXN-17")
@generations(Generation.TV1)
def test_a_repeated_end_is_decided_by_the_state(stage: Stage) -> None:
    """A repeated EndTxn up to v4 succeeds for the decision that was made and is refused for the other one."""
    for commit in (True, False):
        (at,) = stage.topic()
        producer = ScriptedProducer(stage, f"{stage.name}-{commit}").ready()
        stage.expect_code("EndTxn of the Empty one", producer.end(commit=commit), Code.INVALID_TXN_STATE)
        producer.writes(at).ends(commit=commit)
        for turn in ("again", "a third time"):
            stage.expect_code(f"EndTxn, commit {commit}, {turn}", producer.end(commit=commit), Code.NONE)
            stage.expect_code("the opposite", producer.end(commit=not commit), Code.INVALID_TXN_STATE)
        stage.expect("the number of markers", len(stage.see.markers(at)), 1)
        stage.expect("what readers are given", stage.see.committed(at), ["a"] if commit else [])


@requirement("TXN-18", "TV2-05")
@generations(Generation.TV2)
def test_an_end_of_an_empty_transaction(stage: Stage) -> None:
    """EndTxn v5 on Empty: only an abort with the current epoch succeeds, and raises it."""
    producer = ScriptedProducer(stage, f"{stage.name}-empty").ready()
    stage.require_code("InitProducerId again, so that an epoch before exists", producer.init())
    _expect_state(stage, producer, "Empty")
    before = producer.now
    for commit in (False, True):
        answer = producer.copy().end(commit=commit, epoch=before.epoch - 1)
        stage.expect_code(f"with the epoch before, commit {commit}", answer, Code.PRODUCER_FENCED)
    stage.expect_code("a commit with the current epoch", producer.end(commit=True), Code.INVALID_TXN_STATE)
    _expect_state(stage, producer, "Empty")
    _expect_empty_abort(stage, producer)


@requirement("TXN-18", "TV2-05")
@generations(Generation.TV2)
def test_an_end_of_a_committed_transaction(stage: Stage) -> None:
    """EndTxn v5 on CompleteCommit: the repeated commit answers as the first did, an abort only ends the next one."""
    _ended_twice(stage, commit=True)


@requirement("TXN-18", "TV2-05")
@generations(Generation.TV2)
def test_an_end_of_an_aborted_transaction(stage: Stage) -> None:
    """EndTxn v5 on CompleteAbort: the repeated abort answers as the first did, a commit is always refused."""
    _ended_twice(stage, commit=False)


def _ended_twice(stage: Stage, *, commit: bool) -> None:
    producer, (at,) = opened(stage)
    before = producer.now
    producer.ends(commit=commit)
    after = producer.now
    stage.require("the epoch that the end answered with", after, Producer(id=before.id, epoch=before.epoch + 1))
    for turn in ("again", "a third time"):
        answer = producer.copy().end(commit=commit, epoch=before.epoch)
        stage.expect_code(f"the same with the epoch before, {turn}", answer, Code.NONE)
        stage.expect("the id and epoch", [answer["ProducerId"], answer["ProducerEpoch"]], [after.id, after.epoch])
        answer = producer.copy().end(commit=not commit, epoch=before.epoch)
        refused = Code.INVALID_TXN_STATE if commit else late_commit_code(stage)
        stage.expect_code("the opposite with the epoch before", answer, refused)
    stage.expect_code("a commit with the current epoch", producer.end(commit=True), Code.INVALID_TXN_STATE)
    expect_fenced(
        stage, "an abort with an epoch that is yet to come", producer.end(commit=False, epoch=after.epoch + 1)
    )
    _expect_state(stage, producer, result(commit=commit))
    _expect_empty_abort(stage, producer)
    stage.expect("the number of markers", len(stage.see.markers(at)), 1)
    stage.expect("what readers are given", stage.see.committed(at), ["a"] if commit else [])


def _expect_empty_abort(stage: Stage, producer: ScriptedProducer) -> None:
    """The abort of a transaction that has nothing in it yet: a yes, and another epoch."""
    before = producer.now
    answer = producer.end(commit=False)
    stage.expect_code("an abort with the current epoch", answer, Code.NONE)
    told = [answer["ProducerId"], answer["ProducerEpoch"]]
    stage.expect("the id and epoch that it answers with", told, [before.id, before.epoch + 1])
    stage.see.complete(producer.transactional_id)
    _expect_state(stage, producer, "CompleteAbort")


def _expect_state(stage: Stage, producer: ScriptedProducer, state: str) -> None:
    assert producer.transactional_id is not None
    seen = stage.see.described(producer.transactional_id) or {}
    told = [seen.get("TransactionState"), seen.get("ProducerId"), seen.get("ProducerEpoch")]
    stage.expect("the state, id and epoch", told, [state, producer.now.id, producer.now.epoch])


@requirement("TXN-19")
@generations(*BOTH)
def test_another_epoch_ends_nothing(stage: Stage) -> None:
    """EndTxn with a lower or a higher epoch is fenced, and the transaction goes on to its owner's end."""
    (at,) = stage.topic()
    producer = ScriptedProducer(stage, f"{stage.name}-owner").ready()
    stage.require_code("InitProducerId again, so that a lower epoch exists", producer.init())
    producer.writes(at)
    for epoch in (producer.now.epoch + 1, producer.now.epoch - 1):
        for commit in (True, False):
            answer = producer.end(commit=commit, epoch=epoch)
            expect_fenced(stage, f"EndTxn with epoch {epoch}, commit {commit}", answer)
    if stage.since("3.0.0"):
        _expect_state(stage, producer, "Ongoing")
    stage.expect("the markers", stage.see.markers(at), [])
    stage.expect_code("EndTxn(commit) with the right epoch", producer.end(commit=True), Code.NONE)
    end = stage.until(lambda: stage.see.stable(at), lambda seen: seen == 2, within_s=COMPLETE_WITHIN_S)
    stage.expect("the last stable offset", end, 2)
    stage.expect("what readers are given", stage.see.committed(at), ["a"])


@requirement("TXN-20")
@generations(*BOTH)
def test_a_stranger_ends_nothing(stage: Stage) -> None:
    """EndTxn with an unknown transactional id or another's producer id is refused, and the transaction goes on."""
    producer, (at,) = opened(stage)
    other = ScriptedProducer(stage, f"{stage.name}-other").ready()
    unknown = ScriptedProducer(stage, f"{stage.name}-unknown")
    unknown.now = producer.now
    thief = producer.copy()
    thief.now = other.now
    for commit in (True, False):
        answer = unknown.end(commit=commit)
        stage.expect_code(f"an unknown id, commit {commit}", answer, Code.INVALID_PRODUCER_ID_MAPPING)
        answer = thief.end(commit=commit)
        stage.expect_code(f"another's producer id, commit {commit}", answer, Code.INVALID_PRODUCER_ID_MAPPING)
    stage.expect("the markers", stage.see.markers(at), [])
    producer.ends(commit=True, claim=True)
    stage.expect("what readers are given", stage.see.committed(at), ["a"])


@requirement("TXN-26")
@generations(*BOTH)
def test_an_empty_transaction_is_not_committed(stage: Stage) -> None:
    """EndTxn on Empty refuses a commit; an abort is refused up to v4, and costs an epoch from v5 on."""
    producer = ScriptedProducer(stage, f"{stage.name}-empty").ready()
    stage.expect_code("a commit", producer.end(commit=True), Code.INVALID_TXN_STATE)
    if stage.generation is Generation.TV2:
        _expect_empty_abort(stage, producer)
        stage.expect_code("a commit of the next one", producer.end(commit=True), Code.INVALID_TXN_STATE)
    else:
        stage.expect_code("an abort", producer.end(commit=False), Code.INVALID_TXN_STATE)
        if stage.since("3.0.0"):
            _expect_state(stage, producer, "Empty")


@requirement("TXN-28")
@generations(*BOTH)
def test_a_lost_answer_is_learnt_by_asking_again(stage: Stage) -> None:
    """EndTxn whose answer was lost is sent again and answered as the first would have been; nothing is decided twice."""
    for commit in (True, False):
        (at,) = stage.topic()
        producer = ScriptedProducer(stage, f"{stage.name}-{commit}").ready().writes(at)
        before = producer.now
        assert producer.transactional_id is not None
        coordinator = stage.coordinator(producer.transactional_id)
        line = stage.another_line(coordinator)
        request = stage.request("EndTxn", producer.end_body(commit=commit), line=line)
        stage.send(request, line=line)
        end = stage.until(partial(stage.see.stable, at), partial(eq, 2), within_s=COMPLETE_WITHIN_S)
        stage.require("the marker is written", end, 2)
        line.connection.close("the answer is to be lost")
        other = stage.another_line(coordinator)
        again = stage.until(
            partial(_sent, stage, request, other),
            lambda seen: seen.code != Code.CONCURRENT_TRANSACTIONS,
            within_s=COMPLETE_WITHIN_S,
        )
        stage.expect_code(f"the same EndTxn, commit {commit}, on another connection", again, Code.NONE)
        if stage.generation is Generation.TV2:
            told = [again["ProducerId"], again["ProducerEpoch"]]
            stage.expect("the id and epoch that it answers with", told, [before.id, before.epoch + 1])
        stage.expect("the number of markers", len(stage.see.markers(at)), 1)
        stage.expect("what readers are given", stage.see.committed(at), ["a"] if commit else [])


def _sent(stage: Stage, request: Request, line: Line) -> Answer:
    return stage.send(request, line=line).receive()
