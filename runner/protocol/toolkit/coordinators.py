"""Transactional ids at a chosen coordinator, and transactions that a script keeps in Prepare.

A transaction stays in Prepare for as long as its markers are held on the links between brokers. It must complete in the
same way after every failure of its coordinator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from fixtures.clusters.observing.coordinators import partition_of
from runner.protocol.toolkit import replicas
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.inspector import ending
from runner.protocol.toolkit.producer import LONGEST_TIMEOUT_MS, ScriptedProducer
from runner.protocol.toolkit.script_recorder import NotApplicableError
from verification.vocabulary import transaction_log
from verification.vocabulary.transaction_log import Entry
from wire.codes import ErrorCode as Code
from wire.router import check
from wire.transaction_versions import TransactionVersion
from wire.values import TopicPartition

WAIT = Code.CONCURRENT_TRANSACTIONS


def id_at(case: CaseContext, name: str, coordinator: int, *, timeout_ms: int = LONGEST_TIMEOUT_MS) -> ScriptedProducer:
    """An initialised producer whose id a chosen broker coordinates."""
    return ScriptedProducer(case, replicas.coordinated(case, name, by=coordinator), timeout_ms=timeout_ms).ready()


def log_of(case: CaseContext, producer: ScriptedProducer) -> TopicPartition:
    """The partition of the transaction log that the producer's id is in."""
    count = len(case.client.metadata([transaction_log.TOPIC]).topics[transaction_log.TOPIC].partitions)
    return TopicPartition(transaction_log.TOPIC, partition_of(str(producer.transactional_id), count))


def whole_log(case: CaseContext) -> list[Entry]:
    """Every entry of the transaction log."""
    if not case.client.definitions.versions("TransactionLogValue"):
        raise NotApplicableError("the log of the coordinators has the transactions of others, too")
    partitions = case.client.metadata([transaction_log.TOPIC]).topics[transaction_log.TOPIC].partitions
    return [
        entry
        for index in sorted(partitions)
        for entry in transaction_log.read(
            case.inspect.batches(TopicPartition(transaction_log.TOPIC, index)), index, case.client.definitions
        )
    ]


def set_log(case: CaseContext, settings: Mapping[str, str | None]) -> None:
    """Change settings of the transaction log; None restores one."""
    configs = [
        {"Name": name, "ConfigOperation": 1 if value is None else 0, "Value": value} for name, value in settings.items()
    ]
    topic = {"ResourceType": 2, "ResourceName": transaction_log.TOPIC, "Configs": configs}
    answer = case.client.call("IncrementalAlterConfigs", {"Resources": [topic]})
    check(answer["Responses"][0]["ErrorCode"], f"IncrementalAlterConfigs of {', '.join(settings)}")


def moved(case: CaseContext, *producers: ScriptedProducer, to_broker: int) -> None:
    """Precondition: another broker leads the partitions of the transaction log that the producers' ids are in."""
    for at in sorted({log_of(case, each) for each in producers}):
        replicas.lead(case, at, to_broker)
    for each in producers:
        case.require("the coordinator now", case.coordinator(str(each.transactional_id)), to_broker)


@dataclass(slots=True, kw_only=True)
class EndedTransaction:
    """A transaction whose end was acknowledged; `before` is its producer as it was before the end."""

    case: CaseContext
    producer: ScriptedProducer
    places: tuple[TopicPartition, ...]
    commit: bool
    before: ScriptedProducer

    @classmethod
    def held(
        cls, case: CaseContext, producer: ScriptedProducer, *places: TopicPartition, commit: bool
    ) -> EndedTransaction:
        """Write a record to each place and end the transaction; the caller holds its markers already."""
        producer.writes(*places, values=[ending(commit=commit)])
        before = producer.copy()
        case.expect_code("EndTxn", producer.end(commit=commit), Code.NONE)
        return cls(case=case, producer=producer, places=places, commit=commit, before=before)

    @property
    def word(self) -> str:
        """Commit or Abort, as in the names of states."""
        return ending(commit=self.commit).capitalize()

    def expect_prepared(self) -> None:
        """Claim that it is in Prepare: no request may go on, and no record is visible."""
        case, name = self.case, str(self.producer.transactional_id)
        case.require("the state", case.inspect.state(name), f"Prepare{self.word}")
        again = self.before.copy()
        case.expect_code(f"Prepare{self.word}: EndTxn again", again.end(commit=self.commit), WAIT)
        answer = ScriptedProducer(case, name).init()
        case.expect_code(f"Prepare{self.word}: InitProducerId", answer, WAIT)
        for at in self.places:
            case.expect(f"Prepare{self.word}: the last stable offset of {at}", case.inspect.stable(at), 0)
            case.expect(f"Prepare{self.word}: what a reader is given of {at}", case.inspect.committed(at), [])

    def expect_complete(self) -> None:
        """Claim that it completes without the client, and that a repeated EndTxn gets the same answer."""
        case = self.case
        case.expect("the state", case.inspect.completed(self.producer.transactional_id), f"Complete{self.word}")
        answer = case.answered(partial(self.before.copy().end, commit=self.commit))
        case.expect_code(f"EndTxn({self.word.lower()}) again", answer, Code.NONE)
        if case.transaction_version is TransactionVersion.TV2:
            told = [answer["ProducerId"], answer["ProducerEpoch"]]
            case.expect("the id and epoch that it answers", told, [self.producer.now.id, self.producer.now.epoch])
        self.expect_marked()

    def expect_marked(self) -> None:
        """Claim one marker on each partition, with the transaction's own epoch, and its effect on the LSO and on readers."""
        case, now = self.case, self.producer.now
        for at in self.places:
            case.expect(f"the markers of {at}", case.inspect.markers(at), [(self.word.lower(), now.id, now.epoch)])
            case.expect(f"the last stable offset of {at}", case.inspect.stable(at), case.inspect.end(at))
            given = [self.word.lower()] if self.commit else []
            case.expect(f"what a reader is given of {at}", case.inspect.committed(at), given)

    def expect_next(self) -> None:
        """Claim that the producer can write and commit the next transaction."""
        self.producer.writes(*self.places, values=["next"])
        self.producer.ends(commit=True)
        for at in self.places:
            self.case.expect(f"the next record of {at}", self.case.inspect.committed(at)[-1:], ["next"])


def described(case: CaseContext, producer: ScriptedProducer) -> list[Any]:
    """The fields of an id's description that must survive a failure of its coordinator."""
    seen = case.inspect.described(str(producer.transactional_id)) or {}
    fields = ("TransactionState", "ProducerId", "ProducerEpoch", "TransactionStartTimeMs", "Topics")
    return [seen.get(each) for each in fields]
