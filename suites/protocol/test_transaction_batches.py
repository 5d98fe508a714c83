"""TXN, writing: which transactional batches a partition's leader appends."""

from __future__ import annotations

from runner.protocol.toolkit.case import BOTH, generations, requirement
from runner.protocol.toolkit.context import Stage
from runner.protocol.toolkit.expected_codes import outside_code
from runner.protocol.toolkit.producer import ScriptedProducer
from wire.codes import ErrorCode as Code
from wire.transaction_versions import Generation
from wire.values import TopicPartition

#: The last version in which a client cannot be told that it may abort and go on.
BEFORE_ABORTABLE = 10


def begun(stage: Stage, at: TopicPartition, what: str = "owner") -> ScriptedProducer:
    """A producer with a transaction open on a partition, one record in it."""
    return ScriptedProducer(stage, f"{stage.name}-{what}").ready().writes(at)


def _versions(stage: Stage, at: TopicPartition) -> list[int]:
    """The highest version of Produce, and the last one without TRANSACTION_ABORTABLE where that is another."""
    highest = stage.version_of("Produce", stage.line(stage.leader(at)))
    return sorted({highest, min(highest, BEFORE_ABORTABLE)})


@requirement("TXN-21")
@generations(*BOTH)
def test_a_transactional_batch_needs_a_transactional_id(stage: Stage) -> None:
    """A Produce request with a transactional batch and no transactional id is refused as a whole."""
    here, there = stage.topic(partitions=2)
    leader = stage.leader(here)
    stage.require("both partitions have one leader", stage.leader(there), leader)
    producer = ScriptedProducer(stage, f"{stage.name}-owner").ready().writes(here, there)
    batches = {at: producer.batch(at, ["b"]) for at in (here, there)}
    body = producer.produce_body(batches) | {"TransactionalId": None}
    answer = stage.ask("Produce", body, broker=leader)
    refused = int(Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    stage.expect("the codes", answer.codes, {str(here): refused, str(there): refused})
    stage.expect("the logs", [stage.see.values(here), stage.see.values(there)], [["a"], ["a"]])
    producer.ends(commit=True)
    stage.expect("what readers are given", [stage.see.committed(here), stage.see.committed(there)], [["a"], ["a"]])


@requirement("TXN-22")
@generations(Generation.TV1)
def test_a_partition_that_was_not_added_takes_no_batch(stage: Stage) -> None:
    """A transactional batch for a partition outside the producer's open transaction is refused and not appended."""
    inside, outside = stage.topic(partitions=2)
    producer = begun(stage, inside)
    for version in _versions(stage, outside):
        answer = producer.produce(outside, ["x"], sequence=0, version=version)
        stage.expect_code(f"Produce v{version}", answer, outside_code(answer))
    stage.expect("the end of its log", stage.see.end(outside), 0)
    producer.ends(commit=True)
    stage.expect("its last stable offset", stage.see.stable(outside), stage.see.end(outside))
    stage.expect("what readers are given", [stage.see.committed(inside), stage.see.committed(outside)], [["a"], []])


@requirement("TXN-22")
@generations(Generation.TV1)
def test_a_late_batch_of_an_ended_transaction_is_refused(stage: Stage) -> None:
    """A batch that arrives after its transaction was aborted is refused, and readers go on past it."""
    (at,) = stage.topic()
    producer = begun(stage, at)
    late = producer.batch(at, ["late"])
    producer.ends(commit=False)
    end = stage.see.end(at)
    for version in _versions(stage, at):
        answer = producer.send_batch(at, late, version=version)
        stage.expect_code(f"Produce v{version}", answer, outside_code(answer))
    stage.expect("the end of the log", stage.see.end(at), end)
    reader = ScriptedProducer(stage, None).ready()
    stage.require_code("a plain record afterwards", reader.produce(at, ["plain"]))
    stage.expect("the last stable offset", stage.see.stable(at), stage.see.end(at))
    stage.expect("what readers are given", stage.see.committed(at), ["plain"])


@requirement("TXN-23")
@generations(*BOTH)
def test_a_plain_batch_does_not_join_a_transaction(stage: Stage) -> None:
    """A non-transactional batch of a producer with an open transaction on the partition is refused."""
    (at,) = stage.topic()
    producer = begun(stage, at)
    answer = producer.produce(at, ["plain"], transactional=False)
    stage.expect_code("the plain batch, in a request with the transactional id", answer, Code.INVALID_TXN_STATE)
    batch = producer.batch(at, ["plain"], transactional=False)
    answer = producer.send_batch(at, batch, TransactionalId=None)
    stage.expect_code("the plain batch, in a request without one", answer, Code.INVALID_TXN_STATE)
    stage.expect("the log", stage.see.values(at), ["a"])
    stage.expect_code("the next transactional batch", producer.produce(at, ["b"], sequence=1), Code.NONE)
    producer.ends(commit=True, claim=True)
    stage.expect("what readers are given", stage.see.committed(at), ["a", "b"])


@requirement("TXN-24")
@generations(*BOTH)
def test_a_request_is_of_one_producer(stage: Stage) -> None:
    """A transactional Produce request with batches of two producers is refused as a whole."""
    here, there = stage.topic(partitions=2)
    leader = stage.leader(here)
    stage.require("both partitions have one leader", stage.leader(there), leader)
    first, second = begun(stage, here, "first"), begun(stage, there, "second")
    for who in (first, second):
        batches = {here: first.batch(here, ["b"], sequence=1), there: second.batch(there, ["b"], sequence=1)}
        answer = stage.ask("Produce", who.produce_body(batches), broker=leader)
        refused = int(Code.INVALID_PRODUCER_ID_MAPPING)
        expected = {str(here): refused, str(there): refused}
        stage.expect(f"the codes, sent as {who.transactional_id}", answer.codes, expected)
    stage.expect("the logs", [stage.see.values(here), stage.see.values(there)], [["a"], ["a"]])
    first.ends(commit=True)
    second.ends(commit=True)
