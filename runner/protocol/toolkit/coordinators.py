"""Transactional ids and their coordinators in scripts: ids at a coordinator of one's choice, and transactions in Prepare.

A transaction whose markers are held on the links between brokers stands in Prepare for as long as a script needs; what
must become of it then is the same whatever happened to its coordinator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from fixtures.clusters.observing.coordinators import partition_of
from runner.protocol.toolkit import replicas
from runner.protocol.toolkit.context import Stage
from runner.protocol.toolkit.producer import ScriptedProducer
from verification.vocabulary import transaction_log
from verification.vocabulary.transaction_log import Entry
from wire.codes import ErrorCode as Code
from wire.router import check
from wire.transaction_versions import Generation
from wire.values import TopicPartition

WAIT = Code.CONCURRENT_TRANSACTIONS


def id_at(stage: Stage, name: str, coordinator: int, *, timeout_ms: int = 60_000) -> ScriptedProducer:
    """A producer that is initialised at a coordinator of one's choice."""
    return ScriptedProducer(stage, replicas.coordinated(stage, name, by=coordinator), timeout_ms=timeout_ms).ready()


def log_of(stage: Stage, producer: ScriptedProducer) -> TopicPartition:
    """The partition of the transaction log that the producer's id is in."""
    count = len(stage.client.metadata([transaction_log.TOPIC]).topics[transaction_log.TOPIC].partitions)
    return TopicPartition(transaction_log.TOPIC, partition_of(str(producer.transactional_id), count))


def whole_log(stage: Stage) -> list[Entry]:
    """Every entry of the transaction log."""
    partitions = stage.client.metadata([transaction_log.TOPIC]).topics[transaction_log.TOPIC].partitions
    return [
        entry
        for index in sorted(partitions)
        for entry in transaction_log.read(
            stage.see.batches(TopicPartition(transaction_log.TOPIC, index)), index, stage.client.definitions
        )
    ]


def set_log(stage: Stage, settings: Mapping[str, str | None]) -> None:
    """Give the transaction log other settings; None takes one back."""
    configs = [
        {"Name": name, "ConfigOperation": 1 if value is None else 0, "Value": value} for name, value in settings.items()
    ]
    topic = {"ResourceType": 2, "ResourceName": transaction_log.TOPIC, "Configs": configs}
    answer = stage.client.call("IncrementalAlterConfigs", {"Resources": [topic]})
    check(answer["Responses"][0]["ErrorCode"], f"IncrementalAlterConfigs of {', '.join(settings)}")


def moved(stage: Stage, *producers: ScriptedProducer, to_broker: int) -> None:
    """Ground: another broker leads the partitions of the transaction log that the producers' ids are in."""
    for at in sorted({log_of(stage, each) for each in producers}):
        replicas.lead(stage, at, to_broker)
    for each in producers:
        stage.require("the coordinator now", stage.coordinator(str(each.transactional_id)), to_broker)


@dataclass(slots=True, kw_only=True)
class Decided:
    """A transaction whose end was acknowledged; `markers` is what each of its partitions must hold in the end."""

    stage: Stage
    producer: ScriptedProducer
    places: tuple[TopicPartition, ...]
    commit: bool
    before: ScriptedProducer

    @classmethod
    def held(cls, stage: Stage, producer: ScriptedProducer, *places: TopicPartition, commit: bool) -> Decided:
        """Write a record to each place and ask for the end; markers are held by now."""
        producer.writes(*places, values=[str(commit)])
        before = producer.copy()
        stage.expect_code("EndTxn", producer.end(commit=commit), Code.NONE)
        return cls(stage=stage, producer=producer, places=places, commit=commit, before=before)

    @property
    def word(self) -> str:
        """Commit or abort, as states spell it."""
        return "Commit" if self.commit else "Abort"

    def expect_prepared(self) -> None:
        """Claim that it stands in Prepare: nobody may go on, and nothing shows."""
        stage, name = self.stage, str(self.producer.transactional_id)
        stage.require("the state", stage.see.state(name), f"Prepare{self.word}")
        again = self.before.copy()
        stage.expect_code(f"Prepare{self.word}: EndTxn again", again.end(commit=self.commit), WAIT)
        answer = ScriptedProducer(stage, name).init()
        stage.expect_code(f"Prepare{self.word}: InitProducerId", answer, WAIT)
        for at in self.places:
            stage.expect(f"Prepare{self.word}: the last stable offset of {at}", stage.see.stable(at), 0)
            stage.expect(f"Prepare{self.word}: what a reader is given of {at}", stage.see.committed(at), [])

    def expect_complete(self) -> None:
        """Claim that it is complete without the client, and what a repeated end is told."""
        stage = self.stage
        stage.expect("the state", stage.see.completed(self.producer.transactional_id), f"Complete{self.word}")
        answer = stage.answered(partial(self.before.copy().end, commit=self.commit))
        stage.expect_code(f"EndTxn({self.word.lower()}) again", answer, Code.NONE)
        if stage.generation is Generation.TV2:
            told = [answer["ProducerId"], answer["ProducerEpoch"]]
            stage.expect("the id and epoch that it answers", told, [self.producer.now.id, self.producer.now.epoch])
        self.expect_marked()

    def expect_marked(self) -> None:
        """Claim one marker on each partition, with the transaction's own epoch, and what follows from it."""
        stage, now = self.stage, self.producer.now
        for at in self.places:
            stage.expect(f"the markers of {at}", stage.see.markers(at), [(self.word.lower(), now.id, now.epoch)])
            stage.expect(f"the last stable offset of {at}", stage.see.stable(at), stage.see.end(at))
            given = [str(self.commit)] if self.commit else []
            stage.expect(f"what a reader is given of {at}", stage.see.committed(at), given)

    def expect_next(self) -> None:
        """Claim that the producer goes on."""
        self.producer.writes(*self.places, values=["next"])
        self.producer.ends(commit=True)
        for at in self.places:
            self.stage.expect(f"the next record of {at}", self.stage.see.committed(at)[-1:], ["next"])


def described(stage: Stage, producer: ScriptedProducer) -> list[Any]:
    """What its coordinator says of the id that must survive it."""
    seen = stage.see.described(str(producer.transactional_id)) or {}
    fields = ("TransactionState", "ProducerId", "ProducerEpoch", "TransactionStartTimeMs", "Topics")
    return [seen.get(each) for each in fields]
