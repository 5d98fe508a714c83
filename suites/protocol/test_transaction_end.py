"""TXN, ending: EndTxn, once and repeated, and its effect on logs, coordinators and readers."""

from __future__ import annotations

from functools import partial
from operator import eq

from runner.protocol.toolkit.case import BOTH, requirement, versions
from runner.protocol.toolkit.context import BrokerConnection, CaseContext
from runner.protocol.toolkit.expected_codes import expect_fenced, late_commit_code
from runner.protocol.toolkit.inspector import ending, result
from runner.protocol.toolkit.producer import ScriptedProducer
from runner.protocol.toolkit.responses import Response
from wire.codes import ErrorCode as Code
from wire.request import Request
from wire.transaction_versions import TransactionVersion
from wire.values import Producer, TopicPartition

COMPLETE_WITHIN_S = 15.0


def opened(case: CaseContext, *, partitions: int = 1) -> tuple[ScriptedProducer, tuple[TopicPartition, ...]]:
    """A producer with an open transaction on the partitions of a new topic, with one record on each."""
    places = case.topic(partitions=partitions)
    return ScriptedProducer(case, f"{case.name}-owner").ready().writes(*places), places


@requirement("TXN-16")
@versions(*BOTH)
def test_an_end_puts_one_marker_on_every_partition(case: CaseContext) -> None:
    """After EndTxn every partition gets one marker of its result, and the transaction completes without partitions."""
    for commit in (True, False):
        places = case.topic(partitions=3)
        name = f"{case.name}-{'commit' if commit else 'abort'}"
        producer = ScriptedProducer(case, name).ready().writes(*places, values=["a", "b"])
        before = producer.now
        case.expect_code(f"EndTxn, {ending(commit=commit)}", producer.end(commit=commit), Code.NONE)
        if case.since("3.0.0"):
            case.expect("the state", case.inspect.completed(producer.transactional_id), result(commit=commit))
            case.expect("its partitions", case.inspect.places(name), [])
        else:
            case.set_up("the end is complete", partial(producer.end, commit=commit))
        marker = (
            "commit" if commit else "abort",
            before.id,
            before.epoch + (case.transaction_version is TransactionVersion.TV2),
        )
        for at in places:
            case.expect(f"the markers of {at}", case.inspect.markers(at), [marker])
            case.expect(f"what readers of {at} are given", case.inspect.committed(at), ["a", "b"] if commit else [])
            case.expect(f"the last stable offset of {at}", case.inspect.stable(at), 3)


@requirement("TXN-17")
@versions(TransactionVersion.TV1)
def test_a_repeated_end_is_decided_by_the_state(case: CaseContext) -> None:
    """A repeated EndTxn up to v4 succeeds for the decision that was made and is refused for the other one."""
    for commit in (True, False):
        (at,) = case.topic()
        producer = ScriptedProducer(case, f"{case.name}-{ending(commit=commit)}").ready()
        case.expect_code("EndTxn of the Empty one", producer.end(commit=commit), Code.INVALID_TXN_STATE)
        producer.writes(at).ends(commit=commit)
        for turn in ("again", "a third time"):
            case.expect_code(f"EndTxn, commit {commit}, {turn}", producer.end(commit=commit), Code.NONE)
            case.expect_code("the opposite", producer.end(commit=not commit), Code.INVALID_TXN_STATE)
        case.expect("the number of markers", len(case.inspect.markers(at)), 1)
        case.expect("what readers are given", case.inspect.committed(at), ["a"] if commit else [])


@requirement("TXN-18", "TV2-05")
@versions(TransactionVersion.TV2)
def test_an_end_of_an_empty_transaction(case: CaseContext) -> None:
    """EndTxn v5 on Empty: only an abort with the current epoch succeeds, and raises it."""
    producer = ScriptedProducer(case, f"{case.name}-empty").ready()
    case.require_code("InitProducerId again, so that an epoch before exists", producer.init())
    _expect_state(case, producer, "Empty")
    before = producer.now
    for commit in (False, True):
        answer = producer.copy().end(commit=commit, epoch=before.epoch - 1)
        case.expect_code(f"with the epoch before, {ending(commit=commit)}", answer, Code.PRODUCER_FENCED)
    case.expect_code("a commit with the current epoch", producer.end(commit=True), Code.INVALID_TXN_STATE)
    _expect_state(case, producer, "Empty")
    _expect_empty_abort(case, producer)


@requirement("TXN-18", "TV2-05")
@versions(TransactionVersion.TV2)
def test_an_end_of_a_committed_transaction(case: CaseContext) -> None:
    """EndTxn v5 on CompleteCommit: the repeated commit answers as the first did, an abort only ends the next one."""
    _ended_twice(case, commit=True)


@requirement("TXN-18", "TV2-05")
@versions(TransactionVersion.TV2)
def test_an_end_of_an_aborted_transaction(case: CaseContext) -> None:
    """EndTxn v5 on CompleteAbort: the repeated abort answers as the first did, a commit is always refused."""
    _ended_twice(case, commit=False)


def _ended_twice(case: CaseContext, *, commit: bool) -> None:
    producer, (at,) = opened(case)
    before = producer.now
    producer.ends(commit=commit)
    after = producer.now
    case.require("the epoch that the end answered with", after, Producer(id=before.id, epoch=before.epoch + 1))
    for turn in ("again", "a third time"):
        answer = producer.copy().end(commit=commit, epoch=before.epoch)
        case.expect_code(f"the same with the epoch before, {turn}", answer, Code.NONE)
        case.expect("the id and epoch", [answer["ProducerId"], answer["ProducerEpoch"]], [after.id, after.epoch])
        answer = producer.copy().end(commit=not commit, epoch=before.epoch)
        refused = Code.INVALID_TXN_STATE if commit else late_commit_code(case)
        case.expect_code("the opposite with the epoch before", answer, refused)
    case.expect_code("a commit with the current epoch", producer.end(commit=True), Code.INVALID_TXN_STATE)
    expect_fenced(case, "an abort with an epoch that is yet to come", producer.end(commit=False, epoch=after.epoch + 1))
    _expect_state(case, producer, result(commit=commit))
    _expect_empty_abort(case, producer)
    case.expect("the number of markers", len(case.inspect.markers(at)), 1)
    case.expect("what readers are given", case.inspect.committed(at), ["a"] if commit else [])


def _expect_empty_abort(case: CaseContext, producer: ScriptedProducer) -> None:
    """Claim that the abort of a transaction without partitions succeeds and raises the epoch."""
    before = producer.now
    answer = producer.end(commit=False)
    case.expect_code("an abort with the current epoch", answer, Code.NONE)
    told = [answer["ProducerId"], answer["ProducerEpoch"]]
    case.expect("the id and epoch that it answers with", told, [before.id, before.epoch + 1])
    case.inspect.complete(producer.transactional_id)
    _expect_state(case, producer, "CompleteAbort")


def _expect_state(case: CaseContext, producer: ScriptedProducer, state: str) -> None:
    assert producer.transactional_id is not None
    seen = case.inspect.described(producer.transactional_id) or {}
    told = [seen.get("TransactionState"), seen.get("ProducerId"), seen.get("ProducerEpoch")]
    case.expect("the state, id and epoch", told, [state, producer.now.id, producer.now.epoch])


@requirement("TXN-19")
@versions(*BOTH)
def test_another_epoch_ends_nothing(case: CaseContext) -> None:
    """EndTxn with a lower or a higher epoch is fenced, and the transaction goes on to its owner's end."""
    (at,) = case.topic()
    producer = ScriptedProducer(case, f"{case.name}-owner").ready()
    case.require_code("InitProducerId again, so that a lower epoch exists", producer.init())
    producer.writes(at)
    for epoch in (producer.now.epoch + 1, producer.now.epoch - 1):
        for commit in (True, False):
            answer = producer.end(commit=commit, epoch=epoch)
            expect_fenced(case, f"EndTxn with epoch {epoch}, {ending(commit=commit)}", answer)
    if case.since("3.0.0"):
        _expect_state(case, producer, "Ongoing")
    case.expect("the markers", case.inspect.markers(at), [])
    case.expect_code("EndTxn(commit) with the right epoch", producer.end(commit=True), Code.NONE)
    end = case.poll_until(lambda: case.inspect.stable(at), lambda seen: seen == 2, within_s=COMPLETE_WITHIN_S)
    case.expect("the last stable offset", end, 2)
    case.expect("what readers are given", case.inspect.committed(at), ["a"])


@requirement("TXN-20")
@versions(*BOTH)
def test_a_stranger_ends_nothing(case: CaseContext) -> None:
    """EndTxn with an unknown transactional id or another's producer id is refused, and the transaction goes on."""
    producer, (at,) = opened(case)
    other = ScriptedProducer(case, f"{case.name}-other").ready()
    unknown = ScriptedProducer(case, f"{case.name}-unknown")
    unknown.now = producer.now
    thief = producer.copy()
    thief.now = other.now
    for commit in (True, False):
        answer = unknown.end(commit=commit)
        case.expect_code(f"an unknown id, {ending(commit=commit)}", answer, Code.INVALID_PRODUCER_ID_MAPPING)
        answer = thief.end(commit=commit)
        case.expect_code(f"another's producer id, {ending(commit=commit)}", answer, Code.INVALID_PRODUCER_ID_MAPPING)
    case.expect("the markers", case.inspect.markers(at), [])
    producer.ends(commit=True, claim=True)
    case.expect("what readers are given", case.inspect.committed(at), ["a"])


@requirement("TXN-26")
@versions(*BOTH)
def test_an_empty_transaction_is_not_committed(case: CaseContext) -> None:
    """EndTxn on Empty refuses a commit; an abort is refused up to v4, and costs an epoch from v5 on."""
    producer = ScriptedProducer(case, f"{case.name}-empty").ready()
    case.expect_code("a commit", producer.end(commit=True), Code.INVALID_TXN_STATE)
    if case.transaction_version is TransactionVersion.TV2:
        _expect_empty_abort(case, producer)
        case.expect_code("a commit of the next one", producer.end(commit=True), Code.INVALID_TXN_STATE)
    else:
        case.expect_code("an abort", producer.end(commit=False), Code.INVALID_TXN_STATE)
        if case.since("3.0.0"):
            _expect_state(case, producer, "Empty")


@requirement("TXN-28")
@versions(*BOTH)
def test_a_lost_answer_is_learnt_by_asking_again(case: CaseContext) -> None:
    """EndTxn that is sent again after a lost answer gets the answer of the first; nothing is decided twice."""
    for commit in (True, False):
        (at,) = case.topic()
        producer = ScriptedProducer(case, f"{case.name}-{ending(commit=commit)}").ready().writes(at)
        before = producer.now
        assert producer.transactional_id is not None
        coordinator = case.coordinator(producer.transactional_id)
        connection = case.open_connection(coordinator)
        request = case.request("EndTxn", producer.end_body(commit=commit), connection=connection)
        case.send(request, connection=connection)  # answer dropped: it is the one that is lost
        end = case.poll_until(partial(case.inspect.stable, at), partial(eq, 2), within_s=COMPLETE_WITHIN_S)
        case.require("the marker is written", end, 2)
        connection.wire.close("the answer is to be lost")
        other = case.open_connection(coordinator)
        again = case.poll_until(
            partial(_sent, case, request, other),
            lambda seen: seen.code != Code.CONCURRENT_TRANSACTIONS,
            within_s=COMPLETE_WITHIN_S,
        )
        case.expect_code(f"the same EndTxn, {ending(commit=commit)}, on another connection", again, Code.NONE)
        if case.transaction_version is TransactionVersion.TV2:
            told = [again["ProducerId"], again["ProducerEpoch"]]
            case.expect("the id and epoch that it answers with", told, [before.id, before.epoch + 1])
        case.expect("the number of markers", len(case.inspect.markers(at)), 1)
        case.expect("what readers are given", case.inspect.committed(at), ["a"] if commit else [])


def _sent(case: CaseContext, request: Request, connection: BrokerConnection) -> Response:
    return case.send(request, connection=connection).receive()
