"""TXN, between EndTxn and completion: while markers are written, no request may change the transaction.

A transaction on many partitions takes some milliseconds to complete. Requests after EndTxn on the same connection are
read as soon as it is answered. A second EndTxn at their end shows whether they arrived in time: until completion it gets
CONCURRENT_TRANSACTIONS. If they arrived too late, the attempt is inconclusive and is repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from runner.protocol.toolkit.case import BOTH, one_broker, requirement, versions
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.inspector import ending, result
from runner.protocol.toolkit.producer import ScriptedProducer
from runner.protocol.toolkit.responses import Response
from verification.scripts.script import Relation
from wire.codes import ErrorCode as Code
from wire.schema import Body
from wire.transaction_versions import TransactionVersion
from wire.values import TopicPartition

#: Markers on so many partitions take tens of milliseconds; a request without any work takes less than one.
PARTITIONS = 200
TRIES = 40
COMPLETE_WITHIN_S = 15.0
#: add.partitions.to.txn.retry.backoff.max.ms
LEADER_WAITS_MS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A request that is sent while a transaction completes."""

    api: str
    body: Body


class SlowCompletion:
    """Transactions that complete slowly, each of another producer, and requests during the completion."""

    def __init__(self, case: CaseContext) -> None:
        self.case = case
        self.places = case.topic(partitions=PARTITIONS)
        self.producers = 0

    def open(self) -> ScriptedProducer:
        """Set up: open a transaction on every partition, with a record at least on the first."""
        case, first = self.case, self.places[0]
        self.producers += 1
        producer = ScriptedProducer(case, f"{case.name}-slow-{self.producers}").ready()
        if case.transaction_version is TransactionVersion.TV1:
            case.set_up("the partitions are added", lambda: producer.add(*self.places))
            case.set_up("a record is written", lambda: producer.produce(first))
        else:
            body = producer.produce_body({at: producer.batch(at, sequence=0) for at in self.places})
            leader = case.leader(first)
            case.set_up("a record is written to each", lambda: case.ask("Produce", body, broker=leader))
        return producer

    def ask(self, make: Callable[[ScriptedProducer], Probe], *, commit: bool) -> Response:
        """End transactions until a probe arrives in time, which is required; returns its answer."""
        for _ in range(TRIES):
            producer = self.open()
            if (answer := self._probed(producer, make(producer), commit=commit)) is not None:
                self._expect_end(producer, commit=commit)
                return answer
        self.case.require(f"tries of {TRIES} in which the probe came before the completion", 0, 1)
        raise AssertionError("an unmet precondition ends the script")

    def _probed(self, producer: ScriptedProducer, probe: Probe, *, commit: bool) -> Response | None:
        """End the transaction and send a probe; returns its answer, or None if it may have arrived too late.

        There is one probe per transaction: a late one does not cause CONCURRENT_TRANSACTIONS in the second EndTxn.
        """
        case, same = self.case, Probe(api="EndTxn", body=producer.end_body(commit=commit))
        assert producer.transactional_id is not None
        connection = case.open_connection(case.coordinator(producer.transactional_id))
        requests = [case.request(each.api, each.body, connection=connection) for each in (same, probe, same)]
        sent = [case.send(each, connection=connection) for each in requests]
        first, answer, last = [each.receive() for each in sent]
        case.require_code("EndTxn", first)
        return answer if last.code == Code.CONCURRENT_TRANSACTIONS else None

    def continued(self, producer: ScriptedProducer) -> Response | None:
        """End the transaction and send the first batch of the next; returns its answer, or None if it may have been late."""
        case, at = self.case, self.places[0]
        assert producer.transactional_id is not None
        connection = case.open_connection(case.coordinator(producer.transactional_id))
        end = producer.end_body(commit=True)
        batch = producer.batch(at, ["next"], sequence=0, epoch=following(case, producer))
        wanted = [("EndTxn", end), ("EndTxn", end), ("Produce", producer.produce_body({at: batch}))]
        requests = [case.request(api, body, connection=connection) for api, body in wanted]
        sent = [case.send(each, connection=connection) for each in requests]
        first, again, answer = [each.receive() for each in sent]
        case.require_code("EndTxn", first)
        return answer if again.code == Code.CONCURRENT_TRANSACTIONS else None

    def _expect_end(self, producer: ScriptedProducer, *, commit: bool) -> None:
        """Claim that the transaction ends as without probes."""
        case, before = self.case, producer.now
        again = case.poll_until(
            lambda: producer.copy().end(commit=commit, epoch=before.epoch),
            lambda seen: seen.code != Code.CONCURRENT_TRANSACTIONS,
            within_s=COMPLETE_WITHIN_S,
        )
        case.expect_code(f"EndTxn at last, {ending(commit=commit)}", again, Code.NONE)
        if case.transaction_version is TransactionVersion.TV2:
            told = [again["ProducerId"], again["ProducerEpoch"]]
            case.expect("the id and epoch that it answers with", told, [before.id, before.epoch + 1])
        if case.since("3.0.0"):
            seen = case.inspect.described(str(producer.transactional_id)) or {}
            told = [seen.get(each) for each in ("TransactionState", "ProducerId", "ProducerEpoch", "Topics")]
            word = result(commit=commit)
            case.expect("the transaction", told, [word, before.id, following(case, producer), []])
        for at in (self.places[0], self.places[-1]):
            kinds = [kind for kind, id_, _ in case.inspect.markers(at) if id_ == before.id]
            case.expect(f"the markers of {at}", kinds, ["commit" if commit else "abort"])


def following(case: CaseContext, producer: ScriptedProducer) -> int:
    """The current epoch once the end of the open transaction is decided."""
    return producer.now.epoch + (case.transaction_version is TransactionVersion.TV2)


def initialisation(case: CaseContext, producer: ScriptedProducer, *, continues: bool) -> Probe:
    """InitProducerId, plain or with the current id and epoch."""
    body = {"TransactionalId": producer.transactional_id, "TransactionTimeoutMs": producer.timeout_ms}
    if continues:
        body |= {"ProducerId": producer.now.id, "ProducerEpoch": following(case, producer)}
    return Probe(api="InitProducerId", body=body)


def addition(case: CaseContext, producer: ScriptedProducer, at: TopicPartition) -> Probe:
    """AddPartitionsToTxn with the current id and epoch."""
    body = {
        "V3AndBelowTransactionalId": producer.transactional_id,
        "V3AndBelowProducerId": producer.now.id,
        "V3AndBelowProducerEpoch": following(case, producer),
        "V3AndBelowTopics": [{"Name": at.topic, "Partitions": [at.partition]}],
    }
    return Probe(api="AddPartitionsToTxn", body=body)


@requirement("TXN-04")
@versions(*BOTH)
@one_broker
def test_no_instance_begins_while_a_transaction_completes(case: CaseContext) -> None:
    """While markers are written, InitProducerId gets CONCURRENT_TRANSACTIONS and changes nothing."""
    completion = SlowCompletion(case)
    for commit in (True, False):
        for continues in (False, True) if case.since("2.5.0") else (False,):
            answer = completion.ask(partial(initialisation, case, continues=continues), commit=commit)
            what = "with the current id and epoch" if continues else "without an id"
            case.expect_code(f"InitProducerId {what}, {ending(commit=commit)}", answer, Code.CONCURRENT_TRANSACTIONS)


@requirement("TXN-13")
@versions(*BOTH)
@one_broker
def test_no_partition_is_added_while_a_transaction_completes(case: CaseContext) -> None:
    """While markers are written, AddPartitionsToTxn gets CONCURRENT_TRANSACTIONS and changes nothing."""
    completion = SlowCompletion(case)
    (other,) = case.topic()
    for commit in (True, False):
        answer = completion.ask(partial(addition, case, at=other), commit=commit)
        case.expect("the codes", answer.codes, {str(other): int(Code.CONCURRENT_TRANSACTIONS)})


@requirement("TXN-17", "TXN-18", "TV2-05")
@versions(*BOTH)
@one_broker
def test_a_repeated_end_while_markers_are_written(case: CaseContext) -> None:
    """While markers are written, EndTxn gets CONCURRENT_TRANSACTIONS, for a commit and for an abort."""
    completion = SlowCompletion(case)

    def end(producer: ScriptedProducer, *, commit: bool, epoch: int = 0) -> Probe:
        return Probe(api="EndTxn", body=producer.end_body(commit=commit, epoch=producer.now.epoch + epoch))

    for commit in (True, False):
        for what, again in (("the same", commit), ("the opposite", not commit)):
            answer = completion.ask(partial(end, commit=again), commit=commit)
            case.expect_code(f"EndTxn, commit {commit}: {what}", answer, Code.CONCURRENT_TRANSACTIONS)
        if case.transaction_version is TransactionVersion.TV2:
            answer = completion.ask(partial(end, commit=True, epoch=1), commit=commit)
            case.expect_code(
                f"EndTxn(commit) of the next one, {ending(commit=commit)}", answer, Code.CONCURRENT_TRANSACTIONS
            )


@requirement("TXN-30")
@versions(TransactionVersion.TV2)
@one_broker
def test_a_leader_waits_for_the_transaction_before(case: CaseContext) -> None:
    """The first batch of the next transaction is taken, or the leader waits itself and then refuses it as too early."""
    completion = SlowCompletion(case)
    for _ in range(TRIES):
        producer = completion.open()
        case.require("one broker coordinates and leads", len(case.brokers), 1)
        answer = completion.continued(producer)
        if answer is None:
            continue
        case.expect_code("the next transaction's first batch", answer, Code.NONE, Code.CONCURRENT_TRANSACTIONS)
        exchange = case.recording.exchanges[answer.exchange - 1]
        waited_ms = ((exchange.answered_ns or 0) - exchange.sent_ns) / 1e6
        if answer.code == Code.CONCURRENT_TRANSACTIONS:
            case.expect("milliseconds until it was refused", waited_ms, LEADER_WAITS_MS, Relation.AT_LEAST)
        return
    case.require(f"tries of {TRIES} in which the batch came before the completion", 0, 1)
