"""The transaction log: what coordinators wrote into `__transaction_state`, and whether it can have happened (COORD-01).

A coordinator writes the whole state of a transactional id at each step, and a tombstone when it forgets the id; the
records of one id are a history. A history is legal when each step is one that the state machine has, when producer ids
and epochs only go forward, and when a transaction keeps its partitions and its start until it is decided. Nothing is
guessed: each rule holds for two neighbouring records, and what it says is in the coordinator's own code since 0.11
(`TransactionMetadata.prepareTransitionTo` and `completeTransitionTo`), with KIP-890's additions.

Kafka's own definitions of key and value decode the records; a value of version 1 has tagged fields, of which those that
the definitions do not know are passed over. Compaction removes records of ids that have newer ones: in a partition
whose offsets have holes a step may be missing, and only what holds across missing steps is judged there.

What is doubtful: a definition without `ClientTransactionVersion` (before 3.9) reads records of later releases as if a
TV1 client had caused them; take the definitions of the release that wrote the log, or newer ones.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from verification.errors import VerificationError
from wire.errors import DefinitionError, ProtocolError
from wire.messages import Definitions
from wire.records import Batch
from wire.schema import Body

TOPIC = "__transaction_state"
_VERSION = struct.Struct(">h")
_TV2 = 2


class UnfitTransactionLogError(VerificationError):
    """A record of the transaction log cannot be read."""


class State(StrEnum):
    """A state as DescribeTransactions names it; `DEAD` is what a tombstone says."""

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
IDLE = frozenset({State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT})
#: From which states a state may be entered. A history begins with Empty, and so does one after a tombstone.
PREDECESSORS: Mapping[State, frozenset[State]] = {
    State.EMPTY: IDLE | {State.DEAD},
    State.ONGOING: IDLE | {State.ONGOING},
    State.PREPARE_COMMIT: frozenset({State.ONGOING}),
    State.PREPARE_ABORT: frozenset({State.ONGOING}),
    State.COMPLETE_COMMIT: frozenset({State.PREPARE_COMMIT}),
    State.COMPLETE_ABORT: frozenset({State.PREPARE_ABORT}),
    State.DEAD: IDLE,
    # An intermediate step in the coordinator's memory: never in the log.
    State.PREPARE_EPOCH_FENCE: frozenset(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One record: the state of a transactional id at an offset of the log. Times are wall-clock milliseconds.

    A tombstone has the state `DEAD` and nothing else. `places` are the transaction's partitions, such as `orders-0`;
    `client_version` is the transaction protocol of the request behind it (0 below version 1 of the value).
    """

    partition: int
    offset: int
    transactional_id: str
    state: State
    producer_id: int = -1
    epoch: int = -1
    next_producer_id: int = -1
    client_version: int = 0
    timeout_ms: int = -1
    places: frozenset[str] = frozenset()
    began_ms: int = -1
    updated_ms: int = -1

    def __str__(self) -> str:
        return f"{self.state} of {self.transactional_id} at {TOPIC}-{self.partition}@{self.offset}"


@dataclass(frozen=True, slots=True, kw_only=True)
class IllegalStep:
    """A record that cannot follow the one before it in its history."""

    entry: Entry
    why: str

    def __str__(self) -> str:
        return f"{self.entry}: {self.why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What came of a log. `compacted` are the partitions with holes, in which missing steps are not held against it."""

    histories: int
    entries: int
    illegal: tuple[IllegalStep, ...]
    compacted: tuple[int, ...] = ()


def read(batches: Iterable[Batch], partition: int, definitions: Definitions) -> Iterator[Entry]:
    """The entries of one partition's log in order; raises UnfitTransactionLogError, and BatchError for damaged ones."""
    for batch in batches:
        if batch.control:
            continue
        for record in batch.records():
            try:
                yield _entry(partition, record.offset, record.key, record.value, definitions)
            except (ProtocolError, DefinitionError, struct.error, IndexError) as error:
                raise UnfitTransactionLogError(
                    f"the record at {TOPIC}-{partition}@{record.offset} cannot be read: {error}"
                ) from error


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
    """Key and value begin with the version of what follows."""
    (version,) = _VERSION.unpack_from(data)
    return definitions.decode(message, version, data[_VERSION.size :])


def judge(entries: Iterable[Entry]) -> Judgement:
    """Hold every history against the state machine."""
    by_partition: dict[int, list[Entry]] = defaultdict(list)
    for each in entries:
        by_partition[each.partition].append(each)
    illegal: list[IllegalStep] = []
    compacted, names = [], set()
    for partition, log in sorted(by_partition.items()):
        log.sort(key=lambda each: each.offset)
        whole = [each.offset for each in log] == list(range(len(log)))
        if not whole:
            compacted.append(partition)
        histories: dict[str, list[Entry]] = defaultdict(list)
        for each in log:
            histories[each.transactional_id].append(each)
        names |= {(partition, name) for name in histories}
        for history in histories.values():
            illegal += _illegal_steps(history, whole=whole)
    return Judgement(
        histories=len(names),
        entries=sum(map(len, by_partition.values())),
        illegal=tuple(illegal),
        compacted=tuple(compacted),
    )


def _illegal_steps(history: list[Entry], *, whole: bool) -> Iterator[IllegalStep]:
    replaced: set[int] = set()
    known: Entry | None = None  # the last one that is no tombstone: its id and epoch are still used up
    before: Entry | None = None
    for entry in history:
        reasons = list(_steps(before, entry)) if whole else []
        if entry.state is not State.DEAD:
            if known is not None and known.producer_id != entry.producer_id:
                replaced.add(known.producer_id)
            reasons += _identity(known, entry, replaced)
            known = entry
        yield from (IllegalStep(entry=entry, why=why) for why in reasons)
        before = entry


def _steps(before: Entry | None, entry: Entry) -> Iterator[str]:
    """What is wrong with this record right after that one."""
    allowed = PREDECESSORS[entry.state]
    if entry.state is State.PREPARE_ABORT and entry.client_version >= _TV2:
        allowed |= IDLE  # KIP-890: an abort with nothing in it burns an epoch
    if before is None:
        if entry.state is not State.EMPTY:
            yield "a history begins with Empty"
        return
    if before.state not in allowed:
        yield f"it cannot follow {before.state}"
    elif before.state is State.ONGOING and entry.began_ms != before.began_ms:
        yield f"the transaction began at {before.began_ms} and now at {entry.began_ms}"
    if entry.state is State.ONGOING and before.state is State.ONGOING and not before.places <= entry.places:
        yield f"{sorted(before.places - entry.places)} left the open transaction"
    if entry.state in (State.PREPARE_COMMIT, State.PREPARE_ABORT) and before.state is State.ONGOING:
        if entry.places != before.places:
            yield f"it is decided for {sorted(entry.places)}, but open are {sorted(before.places)}"
    elif entry.state in IDLE and entry.places:
        yield f"{sorted(entry.places)} are in a transaction that is over"


def _identity(known: Entry | None, entry: Entry, replaced: set[int]) -> Iterator[str]:
    """What is wrong with its producer id and epoch after those that were used before."""
    if entry.producer_id in replaced:
        yield f"producer id {entry.producer_id} was replaced before"
    elif known is not None and entry.producer_id == known.producer_id:
        if entry.epoch < known.epoch:
            yield f"epoch {entry.epoch} after epoch {known.epoch} of producer id {entry.producer_id}"
    elif known is not None and entry.state not in IDLE:
        yield f"producer id {entry.producer_id} instead of {known.producer_id} within a transaction"
