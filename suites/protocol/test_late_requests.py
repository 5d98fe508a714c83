"""Late requests: what of one transaction arrives during the next one, or after its end, and must not count there."""

from __future__ import annotations

from runner.protocol.toolkit.case import generations, requirement
from runner.protocol.toolkit.context import Stage
from runner.protocol.toolkit.fetching import coordinator_epoch, write_marker
from runner.protocol.toolkit.inspector import result
from runner.protocol.toolkit.producer import transactional
from runner.protocol.toolkit.responses import Answer
from wire.codes import ErrorCode as Code
from wire.transaction_versions import Generation
from wire.values import Producer, TopicPartition


@requirement("TXN-27", "TXN-28")
@generations(Generation.TV2)
def test_a_replayed_end_does_not_end_the_next_transaction(stage: Stage) -> None:
    """EndTxn that arrives a second time, during the next transaction, is fenced and decides nothing."""
    for commit in (True, False):
        (at,) = stage.topic()
        producer = transactional(stage, f"{commit}").writes(at, values=["a"])
        assert producer.transactional_id is not None
        coordinator = stage.coordinator(producer.transactional_id)
        line = stage.another_line(coordinator)
        request = stage.request("EndTxn", producer.end_body(commit=commit), line=line)
        answer = stage.require_code(f"EndTxn, commit {commit}", stage.send(request, line=line).receive())
        stage.require(
            "it completes",
            stage.see.complete(producer.transactional_id),
            result(commit=commit),
        )
        producer.now = Producer(id=answer["ProducerId"], epoch=answer["ProducerEpoch"])
        producer.sequences.clear()
        producer.writes(at, values=["b", "c"])
        other = stage.another_line(coordinator)
        again = stage.send(request, line=other).receive()
        stage.expect_code("the same bytes during the next transaction", again, Code.PRODUCER_FENCED)
        stage.expect("the number of markers", len(stage.see.markers(at)), 1)
        stage.expect_code("the opposite end of the next one", producer.end(commit=not commit), Code.NONE)
        stage.see.complete(producer.transactional_id)
        stage.expect("what readers are given", stage.see.committed(at), ["a"] if commit else ["b", "c"])


@requirement("TXN-27")
@generations(Generation.TV2)
def test_a_late_batch_does_not_join_the_next_transaction(stage: Stage) -> None:
    """A batch of an aborted transaction that arrives during the next one is refused."""
    (at,) = stage.topic()
    (elsewhere,) = stage.topic()
    producer = transactional(stage)
    late = producer.batch(at, ["late"], sequence=0)
    producer.writes(elsewhere, values=["z"]).ends(commit=False).writes(at, values=["n"])
    stage.expect_code("the late batch", producer.send_batch(at, late), Code.INVALID_PRODUCER_EPOCH)
    producer.ends(commit=True)
    stage.expect("the log", stage.see.values(at), ["n"])
    stage.expect("what readers are given", stage.see.committed(at), ["n"])


@requirement("FENCE-10")
@generations(Generation.TV2)
def test_late_requests_are_refused_once_the_next_transaction_has_begun(stage: Stage) -> None:
    """EndTxn again is a repetition until the next transaction begins; then every late request is refused."""
    (at,) = stage.topic()
    group = f"{stage.name}-group"
    producer = transactional(stage).writes(at, values=["a"])
    older = producer.copy()
    producer.ends(commit=True)
    answer = older.copy().end(commit=True)
    stage.expect_code("EndTxn again before the next one begins", answer, Code.NONE)
    producer.writes(at, values=["b"])
    stage.set_up("TxnOffsetCommit of the next one", lambda: producer.commit_offsets(group, {at: 2}))
    stage.expect_code("Produce", older.produce(at, ["x"], sequence=1), Code.INVALID_PRODUCER_EPOCH)
    stage.expect_code("TxnOffsetCommit", older.commit_offsets(group, {at: 9}), Code.INVALID_PRODUCER_EPOCH)
    for commit in (True, False):
        answer = older.copy().end(commit=commit)
        stage.expect_code(f"EndTxn, commit {commit}", answer, Code.PRODUCER_FENCED)
    producer.ends(commit=True)
    stage.expect("the log", stage.see.values(at), ["a", "b"])
    stage.expect("what readers are given", stage.see.committed(at), ["a", "b"])
    offset = stage.until(lambda: stage.see.offset(group, at), lambda seen: seen == 2, within_s=5)
    stage.expect("the committed offset", offset, 2)


@requirement("TV2-06")
@generations(Generation.TV2)
def test_the_ended_epoch_takes_no_batch(stage: Stage) -> None:
    """After EndTxn a batch of the ended epoch is refused, be it new or the last one again."""
    (at,) = stage.topic()
    for commit in (True, False):
        producer = transactional(stage, f"{commit}")
        last = producer.batch(at, ["a"], sequence=0)
        stage.require_code("a batch", producer.send_batch(at, last))
        older = producer.copy()
        producer.ends(commit=commit)
        end = stage.see.end(at)
        answer = older.send_batch(at, last)
        stage.expect_code(f"the last batch again, commit {commit}", answer, Code.INVALID_PRODUCER_EPOCH)
        answer = older.produce(at, ["x"], sequence=1)
        stage.expect_code(f"the next batch, commit {commit}", answer, Code.INVALID_PRODUCER_EPOCH)
        stage.expect("the end of the log", stage.see.end(at), end)


@requirement("TV2-08", "FENCE-10")
@generations(Generation.TV2)
def test_a_late_marker_does_not_decide_the_next_transaction(stage: Stage) -> None:
    """The marker of one transaction, sent again during the next, is refused and decides nothing."""
    (at,) = stage.topic()
    producer = transactional(stage).writes(at, values=["a"]).ends(commit=True).writes(at, values=["x"])
    answer = repeated(stage, at, producer.now, commit=True)
    stage.expect_code("the commit marker of the transaction before", answer, Code.INVALID_PRODUCER_EPOCH)
    stage.expect("what readers are given during the second one", stage.see.committed(at), ["a"])
    stage.expect("the last stable offset", stage.see.stable(at), 2)
    stage.set_up("EndTxn(abort) of the second one", lambda: producer.end(commit=False))
    stage.see.complete(producer.transactional_id)
    stage.expect("what readers are given at last", stage.see.committed(at), ["a"])


@requirement("TV2-09")
@generations(Generation.TV2)
def test_a_repeated_marker_does_no_harm(stage: Stage) -> None:
    """A marker of the current epoch is taken as a repetition while no transaction is open."""
    (at,) = stage.topic()
    producer = transactional(stage)
    for number, commit in enumerate((True, False)):
        producer.writes(at, values=[str(number)]).ends(commit=commit)
        answer = repeated(stage, at, producer.now, commit=commit)
        stage.expect_code(f"the marker again, commit {commit}", answer, Code.NONE)
        stage.expect("what readers are given", stage.see.committed(at), ["0"])
        stage.expect("the last stable offset", stage.see.stable(at), stage.see.end(at))
    producer.writes(at, values=["2"]).ends(commit=True)
    stage.expect("what readers are given at last", stage.see.committed(at), ["0", "2"])
    stage.expect("the aborted transactions", [pid for pid, _ in stage.see.aborted(at)], [producer.now.id])


def repeated(stage: Stage, at: TopicPartition, who: Producer, *, commit: bool) -> Answer:
    """WriteTxnMarkers as the coordinator that wrote the partition's last marker would send it, of transaction.version 2."""
    return write_marker(
        stage,
        at,
        producer_id=who.id,
        epoch=who.epoch,
        coordinator_epoch=coordinator_epoch(stage, at, who.id),
        commit=commit,
        transaction_version=2,
    )
