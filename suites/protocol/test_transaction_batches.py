"""TXN, writing: which transactional batches a partition's leader appends."""

from __future__ import annotations

from runner.protocol.toolkit.case import BOTH, one_broker, requirement, versions
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.expected_codes import outside_code
from runner.protocol.toolkit.producer import ScriptedProducer
from wire.codes import ErrorCode as Code
from wire.transaction_versions import TransactionVersion
from wire.values import TopicPartition

#: The last version without TRANSACTION_ABORTABLE, which lets a client abort and go on.
BEFORE_ABORTABLE = 10


def begun(case: CaseContext, at: TopicPartition, what: str = "owner") -> ScriptedProducer:
    """A producer with an open transaction that has one record on a partition."""
    return ScriptedProducer(case, f"{case.name}-{what}").ready().writes(at)


def _versions(case: CaseContext, at: TopicPartition) -> list[int]:
    """The highest version of Produce, and the last one without TRANSACTION_ABORTABLE if they differ."""
    highest = case.version_of("Produce", case.connection(case.leader(at)))
    return sorted({highest, min(highest, BEFORE_ABORTABLE)})


@requirement("TXN-21")
@versions(*BOTH)
@one_broker
def test_a_transactional_batch_needs_a_transactional_id(case: CaseContext) -> None:
    """A Produce request with a transactional batch and no transactional id is refused as a whole."""
    here, there = case.topic(partitions=2)
    leader = case.leader(here)
    case.require("both partitions have one leader", case.leader(there), leader)
    producer = ScriptedProducer(case, f"{case.name}-owner").ready().writes(here, there)
    batches = {at: producer.batch(at, ["b"]) for at in (here, there)}
    body = producer.produce_body(batches) | {"TransactionalId": None}
    answer = case.ask("Produce", body, broker=leader)
    refused = int(Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    case.expect("the codes", answer.codes, {str(here): refused, str(there): refused})
    case.expect("the logs", [case.inspect.values(here), case.inspect.values(there)], [["a"], ["a"]])
    producer.ends(commit=True)
    case.expect("what readers are given", [case.inspect.committed(here), case.inspect.committed(there)], [["a"], ["a"]])


@requirement("TXN-22")
@versions(TransactionVersion.TV1)
def test_a_partition_that_was_not_added_takes_no_batch(case: CaseContext) -> None:
    """A transactional batch for a partition outside the producer's open transaction is refused and not appended."""
    inside, outside = case.topic(partitions=2)
    producer = begun(case, inside)
    for version in _versions(case, outside):
        answer = producer.produce(outside, ["x"], sequence=0, version=version)
        case.expect_code(f"Produce v{version}", answer, outside_code(answer))
    case.expect("the end of its log", case.inspect.end(outside), 0)
    producer.ends(commit=True)
    case.expect("its last stable offset", case.inspect.stable(outside), case.inspect.end(outside))
    case.expect(
        "what readers are given", [case.inspect.committed(inside), case.inspect.committed(outside)], [["a"], []]
    )


@requirement("TXN-22")
@versions(TransactionVersion.TV1)
def test_a_late_batch_of_an_ended_transaction_is_refused(case: CaseContext) -> None:
    """A batch that arrives after its transaction was aborted is refused, and readers go on past it."""
    (at,) = case.topic()
    producer = begun(case, at)
    late = producer.batch(at, ["late"])
    producer.ends(commit=False)
    end = case.inspect.end(at)
    for version in _versions(case, at):
        answer = producer.send_batch(at, late, version=version)
        case.expect_code(f"Produce v{version}", answer, outside_code(answer))
    case.expect("the end of the log", case.inspect.end(at), end)
    reader = ScriptedProducer(case, None).ready()
    case.require_code("a plain record afterwards", reader.produce(at, ["plain"]))
    case.expect("the last stable offset", case.inspect.stable(at), case.inspect.end(at))
    case.expect("what readers are given", case.inspect.committed(at), ["plain"])


@requirement("TXN-23")
@versions(*BOTH)
def test_a_plain_batch_does_not_join_a_transaction(case: CaseContext) -> None:
    """A non-transactional batch of a producer with an open transaction on the partition is refused."""
    (at,) = case.topic()
    producer = begun(case, at)
    answer = producer.produce(at, ["plain"], transactional=False)
    case.expect_code("the plain batch, in a request with the transactional id", answer, Code.INVALID_TXN_STATE)
    batch = producer.batch(at, ["plain"], transactional=False)
    answer = producer.send_batch(at, batch, TransactionalId=None)
    case.expect_code("the plain batch, in a request without one", answer, Code.INVALID_TXN_STATE)
    case.expect("the log", case.inspect.values(at), ["a"])
    case.expect_code("the next transactional batch", producer.produce(at, ["b"], sequence=1), Code.NONE)
    producer.ends(commit=True, claim=True)
    case.expect("what readers are given", case.inspect.committed(at), ["a", "b"])


@requirement("TXN-24")
@versions(*BOTH)
@one_broker
def test_a_request_is_of_one_producer(case: CaseContext) -> None:
    """A transactional Produce request with batches of two producers is refused as a whole."""
    here, there = case.topic(partitions=2)
    leader = case.leader(here)
    case.require("both partitions have one leader", case.leader(there), leader)
    first, second = begun(case, here, "first"), begun(case, there, "second")
    for sender in (first, second):
        batches = {here: first.batch(here, ["b"], sequence=1), there: second.batch(there, ["b"], sequence=1)}
        answer = case.ask("Produce", sender.produce_body(batches), broker=leader)
        refused = int(Code.INVALID_PRODUCER_ID_MAPPING)
        expected = {str(here): refused, str(there): refused}
        case.expect(f"the codes, sent as {sender.transactional_id}", answer.codes, expected)
    case.expect("the logs", [case.inspect.values(here), case.inspect.values(there)], [["a"], ["a"]])
    first.ends(commit=True)
    second.ends(commit=True)
