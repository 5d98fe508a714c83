"""TXN, between the end and its completion: while markers are being written nothing may touch the transaction.

Nobody can be asked to write markers slowly, but a transaction on many partitions takes some milliseconds to complete,
and requests that follow EndTxn on the same connection are read as soon as it is answered. Whether they came in time is
told by the same EndTxn at their end: up to completion it answers CONCURRENT_TRANSACTIONS. Tries in which they came too
late say nothing and are repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from runner.protocol.toolkit.case import BOTH, generations, requirement
from runner.protocol.toolkit.context import Stage
from runner.protocol.toolkit.inspector import result
from runner.protocol.toolkit.producer import ScriptedProducer
from runner.protocol.toolkit.responses import Answer
from verification.scripts.script import Relation
from wire.codes import ErrorCode as Code
from wire.schema import Body
from wire.transaction_versions import Generation
from wire.values import TopicPartition

#: Markers on so many partitions take tens of milliseconds, a request that finds nothing to do less than one.
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


class Completion:
    """Transactions that take a while to complete, each of another producer, and what is asked while they do."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.places = stage.topic(partitions=PARTITIONS)
        self.producers = 0

    def open(self) -> ScriptedProducer:
        """Set up: a transaction on every partition, with a record at least on the first."""
        stage, first = self.stage, self.places[0]
        self.producers += 1
        producer = ScriptedProducer(stage, f"{stage.name}-slow-{self.producers}").ready()
        if stage.generation is Generation.TV1:
            stage.set_up("the partitions are added", lambda: producer.add(*self.places))
            stage.set_up("a record is written", lambda: producer.produce(first))
        else:
            body = producer.produce_body({at: producer.batch(at, sequence=0) for at in self.places})
            leader = stage.leader(first)
            stage.set_up("a record is written to each", lambda: stage.ask("Produce", body, broker=leader))
        return producer

    def ask(self, make: Callable[[ScriptedProducer], Probe], *, commit: bool) -> Answer:
        """Transactions until a probe came in time, which is required, and what it was answered."""
        for _ in range(TRIES):
            producer = self.open()
            if (answer := self._probed(producer, make(producer), commit=commit)) is not None:
                self._expect_end(producer, commit=commit)
                return answer
        self.stage.require(f"tries of {TRIES} in which the probe came before the completion", 0, 1)
        raise AssertionError("what is required and does not hold ends the script")

    def _probed(self, producer: ScriptedProducer, probe: Probe, *, commit: bool) -> Answer | None:
        """End the transaction, and what the probe was answered; None when it may have come too late.

        One probe at a time: none of those that come too late leaves anything behind to which the same EndTxn answers
        CONCURRENT_TRANSACTIONS.
        """
        stage, same = self.stage, Probe(api="EndTxn", body=producer.end_body(commit=commit))
        assert producer.transactional_id is not None
        line = stage.another_line(stage.coordinator(producer.transactional_id))
        requests = [stage.request(each.api, each.body, line=line) for each in (same, probe, same)]
        sent = [stage.send(each, line=line) for each in requests]
        first, answer, last = [each.receive() for each in sent]
        stage.require_code("EndTxn", first)
        return answer if last.code == Code.CONCURRENT_TRANSACTIONS else None

    def continued(self, producer: ScriptedProducer) -> Answer | None:
        """End the transaction, and what the next one's first batch was answered; None when it may have come too late."""
        stage, at = self.stage, self.places[0]
        assert producer.transactional_id is not None
        line = stage.another_line(stage.coordinator(producer.transactional_id))
        end = producer.end_body(commit=True)
        batch = producer.batch(at, ["next"], sequence=0, epoch=following(stage, producer))
        wanted = [("EndTxn", end), ("EndTxn", end), ("Produce", producer.produce_body({at: batch}))]
        requests = [stage.request(api, body, line=line) for api, body in wanted]
        sent = [stage.send(each, line=line) for each in requests]
        first, again, answer = [each.receive() for each in sent]
        stage.require_code("EndTxn", first)
        return answer if again.code == Code.CONCURRENT_TRANSACTIONS else None

    def _expect_end(self, producer: ScriptedProducer, *, commit: bool) -> None:
        """Claim that the transaction ends as it would have without the probes."""
        stage, before = self.stage, producer.now
        again = stage.until(
            lambda: producer.copy().end(commit=commit, epoch=before.epoch),
            lambda seen: seen.code != Code.CONCURRENT_TRANSACTIONS,
            within_s=COMPLETE_WITHIN_S,
        )
        stage.expect_code(f"EndTxn at last, commit {commit}", again, Code.NONE)
        if stage.generation is Generation.TV2:
            told = [again["ProducerId"], again["ProducerEpoch"]]
            stage.expect("the id and epoch that it answers with", told, [before.id, before.epoch + 1])
        if stage.since("3.0.0"):
            seen = stage.see.described(str(producer.transactional_id)) or {}
            told = [seen.get(each) for each in ("TransactionState", "ProducerId", "ProducerEpoch", "Topics")]
            word = result(commit=commit)
            stage.expect("the transaction", told, [word, before.id, following(stage, producer), []])
        for at in (self.places[0], self.places[-1]):
            kinds = [kind for kind, who, _ in stage.see.markers(at) if who == before.id]
            stage.expect(f"the markers of {at}", kinds, ["commit" if commit else "abort"])


def following(stage: Stage, producer: ScriptedProducer) -> int:
    """The epoch that is current as soon as the open transaction's end is decided."""
    return producer.now.epoch + (stage.generation is Generation.TV2)


def initialisation(stage: Stage, producer: ScriptedProducer, *, continues: bool) -> Probe:
    """InitProducerId, plain or with the id and epoch that are current now."""
    body = {"TransactionalId": producer.transactional_id, "TransactionTimeoutMs": producer.timeout_ms}
    if continues:
        body |= {"ProducerId": producer.now.id, "ProducerEpoch": following(stage, producer)}
    return Probe(api="InitProducerId", body=body)


def addition(stage: Stage, producer: ScriptedProducer, at: TopicPartition) -> Probe:
    """AddPartitionsToTxn with the id and epoch that are current now."""
    body = {
        "V3AndBelowTransactionalId": producer.transactional_id,
        "V3AndBelowProducerId": producer.now.id,
        "V3AndBelowProducerEpoch": following(stage, producer),
        "V3AndBelowTopics": [{"Name": at.topic, "Partitions": [at.partition]}],
    }
    return Probe(api="AddPartitionsToTxn", body=body)


@requirement("TXN-04")
@generations(*BOTH)
def test_no_instance_begins_while_a_transaction_completes(stage: Stage) -> None:
    """InitProducerId is told to wait while markers are written, and changes nothing."""
    completion = Completion(stage)
    for commit in (True, False):
        for continues in (False, True) if stage.since("2.5.0") else (False,):
            answer = completion.ask(partial(initialisation, stage, continues=continues), commit=commit)
            what = "with the current id and epoch" if continues else "without an id"
            stage.expect_code(f"InitProducerId {what}, commit {commit}", answer, Code.CONCURRENT_TRANSACTIONS)


@requirement("TXN-13")
@generations(*BOTH)
def test_no_partition_is_added_while_a_transaction_completes(stage: Stage) -> None:
    """AddPartitionsToTxn is told to wait while markers are written, and changes nothing."""
    completion = Completion(stage)
    (other,) = stage.topic()
    for commit in (True, False):
        answer = completion.ask(partial(addition, stage, at=other), commit=commit)
        stage.expect("the codes", answer.codes, {str(other): int(Code.CONCURRENT_TRANSACTIONS)})


@requirement("TXN-17", "TXN-18", "TV2-05")
@generations(*BOTH)
def test_a_repeated_end_while_markers_are_written(stage: Stage) -> None:
    """While markers are written EndTxn is told to wait, whatever it wants."""
    completion = Completion(stage)

    def end(producer: ScriptedProducer, *, commit: bool, epoch: int = 0) -> Probe:
        return Probe(api="EndTxn", body=producer.end_body(commit=commit, epoch=producer.now.epoch + epoch))

    for commit in (True, False):
        for what, again in (("the same", commit), ("the opposite", not commit)):
            answer = completion.ask(partial(end, commit=again), commit=commit)
            stage.expect_code(f"EndTxn, commit {commit}: {what}", answer, Code.CONCURRENT_TRANSACTIONS)
        if stage.generation is Generation.TV2:
            answer = completion.ask(partial(end, commit=True, epoch=1), commit=commit)
            stage.expect_code(f"EndTxn(commit) of the next one, commit {commit}", answer, Code.CONCURRENT_TRANSACTIONS)


@requirement("TXN-30")
@generations(Generation.TV2)
def test_a_leader_waits_for_the_transaction_before(stage: Stage) -> None:
    """The first batch of the next transaction is taken, or refused as too early after the leader has waited itself."""
    completion = Completion(stage)
    for _ in range(TRIES):
        producer = completion.open()
        stage.require("one broker coordinates and leads", len(stage.brokers), 1)
        answer = completion.continued(producer)
        if answer is None:
            continue
        stage.expect_code("the next transaction's first batch", answer, Code.NONE, Code.CONCURRENT_TRANSACTIONS)
        exchange = stage.recording.exchanges[answer.exchange - 1]
        waited_ms = ((exchange.answered_ns or 0) - exchange.sent_ns) / 1e6
        if answer.code == Code.CONCURRENT_TRANSACTIONS:
            stage.expect("milliseconds until it was refused", waited_ms, LEADER_WAITS_MS, Relation.AT_LEAST)
        return
    stage.require(f"tries of {TRIES} in which the batch came before the completion", 0, 1)
