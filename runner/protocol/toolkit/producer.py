"""A producer that a script plays: it knows its id, epoch and sequences, and sends single requests.

Every method is one request and returns its answer. It reacts to no error: the script decides the next step. Its state
changes only with an answer without an error: the sequence after an acknowledged batch, the epoch after an initialisation
or, in TV2, after the end of a transaction (KIP-890). The script can override every field.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from runner.protocol.toolkit.context import BrokerConnection, CaseContext
from runner.protocol.toolkit.inspector import COMPLETE
from runner.protocol.toolkit.responses import Response
from verification.scripts.script import Relation
from wire.codes import ErrorCode, code_name
from wire.records import encode
from wire.schema import Body
from wire.transaction_versions import TransactionVersion
from wire.values import Producer, TopicPartition

UNKNOWN = Producer(id=-1, epoch=-1)
PRODUCE_TIMEOUT_MS = 10_000
#: The longest transaction timeout that brokers accept by default. With a minute, a restart on a machine under heavy load
#: (60 s at a load of 50 on two cores) outlived a transaction that a case had left open, and looked like a violation.
LONGEST_TIMEOUT_MS = 900_000


class ScriptedProducer:
    """A transactional producer, or an idempotent one if `transactional_id` is None."""

    def __init__(
        self, case: CaseContext, transactional_id: str | None, *, timeout_ms: int = LONGEST_TIMEOUT_MS
    ) -> None:
        self.case = case
        self.transactional_id = transactional_id
        self.timeout_ms = timeout_ms
        self.now = UNKNOWN
        self.sequences: dict[TopicPartition, int] = defaultdict(int)

    # -- requests to the transaction coordinator ---------------------------------------------------------------

    def init(self, *, continues: Producer | None = None, version: int | None = None, **fields: Any) -> Response:
        """Send InitProducerId; `continues` is the current id and epoch (KIP-360). Without an error sequences begin at 0."""
        body: Body = {"TransactionalId": self.transactional_id, "TransactionTimeoutMs": self.timeout_ms}
        if continues is not None:
            body |= {"ProducerId": continues.id, "ProducerEpoch": continues.epoch}
        broker = None if self.transactional_id is None else self._coordinator
        answer = self.case.ask("InitProducerId", body | fields, broker=broker, version=version)
        if answer.code == 0:
            self.now = Producer(id=answer["ProducerId"], epoch=answer["ProducerEpoch"])
            self.sequences.clear()
        return answer

    def add(self, *places: TopicPartition, epoch: int | None = None, version: int | None = None) -> Response:
        """Send AddPartitionsToTxn as a client does (up to v3)."""
        topics = [{"Name": name, "Partitions": indexes} for name, indexes in _by_topic(places).items()]
        body = {
            "V3AndBelowTransactionalId": self.transactional_id,
            "V3AndBelowProducerId": self.now.id,
            "V3AndBelowProducerEpoch": self.now.epoch if epoch is None else epoch,
            "V3AndBelowTopics": topics,
        }
        return self.case.ask("AddPartitionsToTxn", body, broker=self._coordinator, version=version)

    def add_offsets(self, group: str, *, epoch: int | None = None, version: int | None = None) -> Response:
        """Send AddOffsetsToTxn."""
        body = self._identified(epoch) | {"GroupId": group}
        return self.case.ask("AddOffsetsToTxn", body, broker=self._coordinator, version=version)

    def end(self, *, commit: bool, epoch: int | None = None, version: int | None = None) -> Response:
        """Send EndTxn. In TV2 the answer has the id and epoch of the next transaction."""
        body = self.end_body(commit=commit, epoch=epoch)
        answer = self.case.ask("EndTxn", body, broker=self._coordinator, version=version)
        if answer.code == 0 and answer.body is not None and answer.body.get("ProducerId", -1) >= 0:
            told = Producer(id=answer["ProducerId"], epoch=answer["ProducerEpoch"])
            if told != self.now:
                self.now = told
                self.sequences.clear()
        return answer

    def end_body(self, *, commit: bool, epoch: int | None = None) -> Body:
        """The body of EndTxn, to hold it back or to repeat it byte for byte."""
        return self._identified(epoch) | {"Committed": commit}

    @property
    def _coordinator(self) -> int:
        assert self.transactional_id is not None, "an idempotent producer has no coordinator"
        return self.case.coordinator(self.transactional_id)

    def _identified(self, epoch: int | None) -> Body:
        return {
            "TransactionalId": self.transactional_id,
            "ProducerId": self.now.id,
            "ProducerEpoch": self.now.epoch if epoch is None else epoch,
        }

    # -- requests to leaders -----------------------------------------------------------------------------------

    def batch(
        self,
        at: TopicPartition,
        values: Sequence[str] = ("a",),
        *,
        sequence: int | None = None,
        epoch: int | None = None,
        transactional: bool | None = None,
        **fields: Any,
    ) -> bytes:
        """Encode a record batch of this producer, at its next sequence unless another one is given."""
        return encode(
            [(None, value.encode()) for value in values],
            producer_id=self.now.id,
            producer_epoch=self.now.epoch if epoch is None else epoch,
            base_sequence=self.sequences[at] if sequence is None else sequence,
            transactional=self.transactional_id is not None if transactional is None else transactional,
            **fields,
        )

    def produce(
        self,
        at: TopicPartition,
        values: Sequence[str] = ("a",),
        *,
        connection: BrokerConnection | None = None,
        version: int | None = None,
        **fields: Any,
    ) -> Response:
        """Produce one batch to a partition's leader; `fields` are those of `batch`. If acknowledged, the sequence moves."""
        batch = self.batch(at, values, **fields)
        answer = self.send_batch(at, batch, connection=connection, version=version)
        if answer.code == 0 and "sequence" not in fields and "epoch" not in fields:
            self.sequences[at] += len(values)
        return answer

    def send_batch(
        self,
        at: TopicPartition,
        batch: bytes,
        *,
        connection: BrokerConnection | None = None,
        version: int | None = None,
        **fields: Any,
    ) -> Response:
        """Produce exactly these bytes."""
        leader = None if connection else self.case.leader(at)
        return self.case.ask(
            "Produce", self.produce_body({at: batch}) | fields, broker=leader, connection=connection, version=version
        )

    def produce_body(self, batches: Mapping[TopicPartition, bytes]) -> Body:
        """The body of a Produce request with these batches, acks=all."""
        topics = [
            {
                "Name": name,
                "PartitionData": [
                    {"Index": index, "Records": batches[TopicPartition(name, index)]} for index in indexes
                ],
            }
            for name, indexes in _by_topic(batches).items()
        ]
        return {
            "TransactionalId": self.transactional_id,
            "Acks": -1,
            "TimeoutMs": PRODUCE_TIMEOUT_MS,
            "TopicData": topics,
        }

    # -- requests to group coordinators ------------------------------------------------------------------------

    def commit_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, int],
        *,
        epoch: int | None = None,
        version: int | None = None,
        **fields: Any,
    ) -> Response:
        """Send TxnOffsetCommit; without `GenerationId` and `MemberId` no member is fenced."""
        topics = [
            {
                "Name": name,
                "Partitions": [
                    {"PartitionIndex": index, "CommittedOffset": offsets[TopicPartition(name, index)]}
                    for index in indexes
                ],
            }
            for name, indexes in _by_topic(offsets).items()
        ]
        body = self._identified(epoch) | {"GroupId": group, "Topics": topics} | fields
        broker = self.case.group_coordinator(group)
        return self.case.ask("TxnOffsetCommit", body, broker=broker, version=version)

    # -- set-up ------------------------------------------------------------------------------------------------

    def ready(self) -> ScriptedProducer:
        """Set up: initialise."""
        self.case.set_up(f"{self.transactional_id or 'a producer without transactions'} is initialised", self.init)
        return self

    def writes(self, *places: TopicPartition, values: Sequence[str] = ("a",)) -> ScriptedProducer:
        """Set up: add the partitions if the transaction version needs that, and write to each of them."""
        if self.transactional_id is not None and self.case.transaction_version is TransactionVersion.TV1:
            self.case.set_up("the partitions are added", lambda: self.add(*places))
        for at in places:
            self.case.set_up(f"a batch is acknowledged by {at}", partial(self.produce, at, values))
        return self

    def ends(self, *, commit: bool, claim: bool = False) -> ScriptedProducer:
        """Set up: end the transaction and wait until it is complete. `claim` makes this a claim, not a precondition.

        Before 2.8 the state cannot be read. There EndTxn is sent again, which TV1 answers with 0 once the markers are
        written.
        """
        word, ask = "commit" if commit else "abort", partial(self.end, commit=commit)
        state_it = self.case.expect if claim else self.case.require
        answer = self.case.answered(ask)
        state_it(f"the {word} is acknowledged", code_name(answer.code), code_name(ErrorCode.NONE))
        state = self.case.inspect.complete(self.transactional_id)
        if state is None:
            answer = self.case.answered(ask)
            state_it(f"the {word} is complete", code_name(answer.code), code_name(ErrorCode.NONE))
        else:
            wanted = [f"Complete{word.title()}"] if claim else sorted(COMPLETE)
            state_it(f"the state after the {word}", state, wanted, Relation.ONE_OF)
        return self

    def copy(self) -> ScriptedProducer:
        """A second instance with the same state. Once one of the two goes on, the other is its zombie."""
        twin = ScriptedProducer(self.case, self.transactional_id, timeout_ms=self.timeout_ms)
        twin.now, twin.sequences = replace(self.now), defaultdict(int, self.sequences)
        return twin


def transactional(case: CaseContext, name: str = "owner", *, timeout_ms: int = LONGEST_TIMEOUT_MS) -> ScriptedProducer:
    """An initialised producer with a transactional id that only this case uses."""
    return ScriptedProducer(case, f"{case.name}-{name}", timeout_ms=timeout_ms).ready()


def idempotent(case: CaseContext) -> tuple[ScriptedProducer, TopicPartition]:
    """An initialised idempotent producer, and a partition that only it writes to."""
    (at,) = case.topic()
    return ScriptedProducer(case, None).ready(), at


def plain(case: CaseContext, at: TopicPartition, value: str, **fields: Any) -> Response:
    """Set up: write a record without a producer id."""
    without_id = ScriptedProducer(case, None)
    return case.require_code(f"a plain record in {at}", without_id.produce(at, [value], sequence=-1, **fields))


def base_offset(answer: Response) -> int:
    """The base offset in the answer to a Produce request with one batch."""
    return int(answer["Responses"][0]["PartitionResponses"][0]["BaseOffset"])


def _by_topic(places: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = defaultdict(list)
    for at in places:
        topics[at.topic].append(at.partition)
    return topics
