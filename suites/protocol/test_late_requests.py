"""Requests of a transaction that arrive after its end or during the next one, and must not count there."""

from __future__ import annotations

from runner.protocol.toolkit.case import requirement, versions
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.fetching import coordinator_epoch, write_marker
from runner.protocol.toolkit.inspector import ending, result
from runner.protocol.toolkit.producer import transactional
from runner.protocol.toolkit.responses import Response
from wire.codes import ErrorCode as Code
from wire.transaction_versions import TransactionVersion
from wire.values import Producer, TopicPartition


@requirement("TXN-27", "TXN-28")
@versions(TransactionVersion.TV2)
def test_a_replayed_end_does_not_end_the_next_transaction(case: CaseContext) -> None:
    """EndTxn that arrives a second time, during the next transaction, is fenced and decides nothing."""
    for commit in (True, False):
        (at,) = case.topic()
        producer = transactional(case, ending(commit=commit)).writes(at, values=["a"])
        assert producer.transactional_id is not None
        coordinator = case.coordinator(producer.transactional_id)
        connection = case.open_connection(coordinator)
        request = case.request("EndTxn", producer.end_body(commit=commit), connection=connection)
        answer = case.require_code(
            f"EndTxn, {ending(commit=commit)}", case.send(request, connection=connection).receive()
        )
        case.require(
            "it completes",
            case.inspect.complete(producer.transactional_id),
            result(commit=commit),
        )
        producer.now = Producer(id=answer["ProducerId"], epoch=answer["ProducerEpoch"])
        producer.sequences.clear()
        producer.writes(at, values=["b", "c"])
        other = case.open_connection(coordinator)
        again = case.send(request, connection=other).receive()
        case.expect_code("the same bytes during the next transaction", again, Code.PRODUCER_FENCED)
        case.expect("the number of markers", len(case.inspect.markers(at)), 1)
        case.expect_code("the opposite end of the next one", producer.end(commit=not commit), Code.NONE)
        case.inspect.complete(producer.transactional_id)
        case.expect("what readers are given", case.inspect.committed(at), ["a"] if commit else ["b", "c"])


@requirement("TXN-27")
@versions(TransactionVersion.TV2)
def test_a_late_batch_does_not_join_the_next_transaction(case: CaseContext) -> None:
    """A batch of an aborted transaction that arrives during the next one is refused."""
    (at,) = case.topic()
    (elsewhere,) = case.topic()
    producer = transactional(case)
    late = producer.batch(at, ["late"], sequence=0)
    producer.writes(elsewhere, values=["z"]).ends(commit=False).writes(at, values=["n"])
    case.expect_code("the late batch", producer.send_batch(at, late), Code.INVALID_PRODUCER_EPOCH)
    producer.ends(commit=True)
    case.expect("the log", case.inspect.values(at), ["n"])
    case.expect("what readers are given", case.inspect.committed(at), ["n"])


@requirement("FENCE-10")
@versions(TransactionVersion.TV2)
def test_late_requests_are_refused_once_the_next_transaction_has_begun(case: CaseContext) -> None:
    """EndTxn again is a repetition until the next transaction begins; then every late request is refused."""
    (at,) = case.topic()
    group = f"{case.name}-group"
    producer = transactional(case).writes(at, values=["a"])
    older = producer.copy()
    producer.ends(commit=True)
    answer = older.copy().end(commit=True)
    case.expect_code("EndTxn again before the next one begins", answer, Code.NONE)
    producer.writes(at, values=["b"])
    case.set_up("TxnOffsetCommit of the next one", lambda: producer.commit_offsets(group, {at: 2}))
    case.expect_code("Produce", older.produce(at, ["x"], sequence=1), Code.INVALID_PRODUCER_EPOCH)
    case.expect_code("TxnOffsetCommit", older.commit_offsets(group, {at: 9}), Code.INVALID_PRODUCER_EPOCH)
    for commit in (True, False):
        answer = older.copy().end(commit=commit)
        case.expect_code(f"EndTxn, {ending(commit=commit)}", answer, Code.PRODUCER_FENCED)
    producer.ends(commit=True)
    case.expect("the log", case.inspect.values(at), ["a", "b"])
    case.expect("what readers are given", case.inspect.committed(at), ["a", "b"])
    offset = case.poll_until(lambda: case.inspect.offset(group, at), lambda seen: seen == 2, within_s=5)
    case.expect("the committed offset", offset, 2)


@requirement("TV2-06")
@versions(TransactionVersion.TV2)
def test_the_ended_epoch_takes_no_batch(case: CaseContext) -> None:
    """After EndTxn a batch of the ended epoch is refused, be it new or the last one again."""
    (at,) = case.topic()
    for commit in (True, False):
        producer = transactional(case, ending(commit=commit))
        last = producer.batch(at, ["a"], sequence=0)
        case.require_code("a batch", producer.send_batch(at, last))
        older = producer.copy()
        producer.ends(commit=commit)
        end = case.inspect.end(at)
        answer = older.send_batch(at, last)
        case.expect_code(f"the last batch again, {ending(commit=commit)}", answer, Code.INVALID_PRODUCER_EPOCH)
        answer = older.produce(at, ["x"], sequence=1)
        case.expect_code(f"the next batch, {ending(commit=commit)}", answer, Code.INVALID_PRODUCER_EPOCH)
        case.expect("the end of the log", case.inspect.end(at), end)


@requirement("TV2-08", "FENCE-10")
@versions(TransactionVersion.TV2)
def test_a_late_marker_does_not_decide_the_next_transaction(case: CaseContext) -> None:
    """The marker of one transaction, sent again during the next, is refused and decides nothing."""
    (at,) = case.topic()
    producer = transactional(case).writes(at, values=["a"]).ends(commit=True).writes(at, values=["x"])
    answer = repeated(case, at, producer.now, commit=True)
    case.expect_code("the commit marker of the transaction before", answer, Code.INVALID_PRODUCER_EPOCH)
    case.expect("what readers are given during the second one", case.inspect.committed(at), ["a"])
    case.expect("the last stable offset", case.inspect.stable(at), 2)
    case.set_up("EndTxn(abort) of the second one", lambda: producer.end(commit=False))
    case.inspect.complete(producer.transactional_id)
    case.expect("what readers are given at last", case.inspect.committed(at), ["a"])


@requirement("TV2-09")
@versions(TransactionVersion.TV2)
def test_a_repeated_marker_does_no_harm(case: CaseContext) -> None:
    """A marker of the current epoch is taken as a repetition while no transaction is open."""
    (at,) = case.topic()
    producer = transactional(case)
    for number, commit in enumerate((True, False)):
        producer.writes(at, values=[str(number)]).ends(commit=commit)
        answer = repeated(case, at, producer.now, commit=commit)
        case.expect_code(f"the marker again, {ending(commit=commit)}", answer, Code.NONE)
        case.expect("what readers are given", case.inspect.committed(at), ["0"])
        case.expect("the last stable offset", case.inspect.stable(at), case.inspect.end(at))
    producer.writes(at, values=["2"]).ends(commit=True)
    case.expect("what readers are given at last", case.inspect.committed(at), ["0", "2"])
    case.expect("the aborted transactions", [pid for pid, _ in case.inspect.aborted(at)], [producer.now.id])


def repeated(case: CaseContext, at: TopicPartition, producer: Producer, *, commit: bool) -> Response:
    """WriteTxnMarkers of transaction.version 2, as from the coordinator that wrote the partition's last marker."""
    return write_marker(
        case,
        at,
        producer_id=producer.id,
        epoch=producer.epoch,
        coordinator_epoch=coordinator_epoch(case, at, producer.id),
        commit=commit,
        transaction_version=2,
    )
