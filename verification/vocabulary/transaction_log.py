"""The transaction log: the records that coordinators wrote into `__transaction_state`.

A coordinator writes the whole state of a transactional id at each step, and a tombstone when it forgets the id. The
records of one id are a history; `verification.checks.transaction_states` says which histories are legal.

Kafka's own definitions of key and value decode the records. A value of version 1 has tagged fields; unknown ones are
ignored.

Limit: a definition without `ClientTransactionVersion` (before 3.9) reads records of later releases as if a TV1 client
had caused them. Use the definitions of the release that wrote the log, or newer ones.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from verification.vocabulary.errors import VerificationError
from verification.vocabulary.strict_json import Int64
from wire.errors import DefinitionError, ProtocolError
from wire.messages import Definitions
from wire.records import Batch
from wire.schema import Body

TOPIC = "__transaction_state"
#: Its place among the topics of a run, which count from 0: violations name topics by numbers.
TOPIC_INDEX = -1
#: The transaction protocol in which each end of a transaction raises the epoch (KIP-890), as `client_version` has it.
TV2 = 2
_VERSION = struct.Struct(">h")


class UnfitTransactionLogError(VerificationError):
    """A record of the transaction log cannot be read."""


class State(StrEnum):
    """A state as DescribeTransactions names it; a tombstone means `DEAD`."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"


#: The states by the numbers that the log has for them (`TransactionState.id`).
STATES = tuple(State)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One record: the state of a transactional id at an offset of the log. Times are wall-clock milliseconds.

    A tombstone has the state `DEAD` and nothing else. `places` are the transaction's partitions, such as `orders-0`;
    `client_version` is the transaction protocol of the request behind it (0 below version 1 of the value). `leader_epoch`
    and `appended_ms` are from the record batch: the leadership of the partition that wrote it, and the time.
    """

    partition: Int64
    offset: Int64
    transactional_id: str
    state: State
    producer_id: Int64 = -1
    epoch: Int64 = -1
    next_producer_id: Int64 = -1
    client_version: Int64 = 0
    timeout_ms: Int64 = -1
    places: frozenset[str] = frozenset()
    began_ms: Int64 = -1
    updated_ms: Int64 = -1
    leader_epoch: Int64 = -1
    appended_ms: Int64 = -1

    def __str__(self) -> str:
        return f"{self.state} of {self.transactional_id} at {TOPIC}-{self.partition}@{self.offset}"


def read(batches: Iterable[Batch], partition: int, definitions: Definitions) -> Iterator[Entry]:
    """The entries of one partition's log in order; raises UnfitTransactionLogError, and BatchError for damaged ones."""
    for batch in batches:
        if batch.control:
            continue
        for record in batch.records():
            try:
                entry = _entry(partition, record.offset, record.key, record.value, definitions)
            except (ProtocolError, DefinitionError, struct.error, IndexError) as error:
                raise UnfitTransactionLogError(
                    f"the record at {TOPIC}-{partition}@{record.offset} cannot be read: {error}"
                ) from error
            yield replace(entry, leader_epoch=batch.leader_epoch, appended_ms=record.timestamp_ms)


def _entry(partition: int, offset: int, key: bytes | None, value: bytes | None, definitions: Definitions) -> Entry:
    name = _decode("TransactionLogKey", key or b"", definitions)["TransactionalId"]
    if value is None:
        return Entry(partition=partition, offset=offset, transactional_id=name, state=State.DEAD)
    body = _decode("TransactionLogValue", value, definitions)
    return Entry(
        partition=partition,
        offset=offset,
        transactional_id=name,
        state=STATES[body["TransactionStatus"]],
        producer_id=body["ProducerId"],
        epoch=body["ProducerEpoch"],
        next_producer_id=body.get("NextProducerId", -1),
        client_version=body.get("ClientTransactionVersion", 0),
        timeout_ms=body["TransactionTimeoutMs"],
        places=frozenset(
            f"{each['Topic']}-{index}" for each in body["TransactionPartitions"] or () for index in each["PartitionIds"]
        ),
        began_ms=body["TransactionStartTimestampMs"],
        updated_ms=body["TransactionLastUpdateTimestampMs"],
    )


def _decode(message: str, data: bytes, definitions: Definitions) -> Body:
    """The message in a key or a value, which begins with the version of the message."""
    (version,) = _VERSION.unpack_from(data)
    return definitions.decode(message, version, data[_VERSION.size :])
