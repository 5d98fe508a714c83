"""The state of the model: one transactional id, the partitions that it writes to, and one group's offset.

Producer ids are left out: a walk has one, and a request names either this one or a foreign one. Partitions begin empty,
so that an offset is an index of their log.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from verification.vocabulary.releases import within
from wire.transaction_versions import TransactionVersion

#: The place of the group's offsets among the partitions of a transaction.
GROUP = -1
NO_EPOCH = -1
#: The number of batches that a leader remembers of a producer (ProducerStateEntry.NUM_BATCHES_TO_RETAIN).
REMEMBERED = 5
#: The highest sequence number, after which comes 0.
LAST_SEQUENCE = 0x7FFF_FFFF


class TransactionPhase(StrEnum):
    """The state of a transactional id, named as in DescribeTransactions."""

    ABSENT = "absent"
    EMPTY = "Empty"
    ONGOING = "Ongoing"
    COMMITTED = "CompleteCommit"
    ABORTED = "CompleteAbort"


class RequestKind(StrEnum):
    """The requests of a walk, by their names in the protocol; also a wait for a timeout, and a look."""

    INIT = "InitProducerId"
    ADD = "AddPartitionsToTxn"
    ADD_OFFSETS = "AddOffsetsToTxn"
    PRODUCE = "Produce"
    COMMIT_OFFSET = "TxnOffsetCommit"
    END = "EndTxn"
    EXPIRE = "timeout"
    LOOK = "look"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Facts on which correct answers depend: release, finalized `transaction.version`, and TV1 or TV2 requests."""

    release: str
    generation: TransactionVersion
    level: int

    @property
    def tv2(self) -> bool:
        """Whether requests are TV2's."""
        return self.generation is TransactionVersion.TV2

    def after_abort(self, epoch: int) -> tuple[int, int]:
        """The epoch after the coordinator has aborted a transaction of `epoch`, and the last one that may continue.

        At level 2 the abort keeps the earlier epoch as the last one, so that the instance that lost its transaction may
        go on. 4.0.0 raises the epoch when it fences the owner, and again at the end of the transaction (KAFKA-19367).
        The owner is then two epochs behind, and its EndTxn is fenced instead of repeated. The last epoch is one that no
        instance was given.
        """
        if self.level < 2:
            return epoch + 1, NO_EPOCH
        return (epoch + 1, epoch) if self.since("4.0.1") else (epoch + 2, epoch + 1)

    def since(self, release: str) -> bool:
        """Whether the brokers are of this release or a later one."""
        return within(self.release, release, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelBatch:
    """A batch that a leader remembers: its first and last sequence, and its offset."""

    first: int
    last: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPartition:
    """A partition: its log as (value, transaction), markers without a value, and its leader's memory of the producer.

    `refused` is the (epoch, lowest sequence) of batches that the leader verified and did not append. Until the
    verification ends it takes no batch above that sequence (KB-17).
    """

    epoch: int = NO_EPOCH
    batches: tuple[ModelBatch, ...] = ()
    open: bool = False
    log: tuple[tuple[str | None, int], ...] = ()
    refused: tuple[int, int] | None = None

    @property
    def next_sequence(self) -> int:
        """The next sequence; 0 where no batch of the epoch is known."""
        return (self.batches[-1].last + 1) & LAST_SEQUENCE if self.batches else 0

    def next_for(self, epoch: int) -> int:
        """The next sequence in an epoch."""
        return self.next_sequence if epoch == self.epoch else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Offset:
    """The group's offset, committed and pending, and the epoch that its partition knows."""

    epoch: int = NO_EPOCH
    open: bool = False
    committed: int = -1
    pending: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelState:
    """The whole state. `last` is the epoch that KIP-360 lets continue besides the current one.

    `txn` numbers transactions as they begin. `settling` says that markers may not be written yet. `tainted` names a
    defect that may keep the transaction from ending, as long as it has not ended.
    """

    phase: TransactionPhase = TransactionPhase.ABSENT
    epoch: int = NO_EPOCH
    last: int = NO_EPOCH
    settling: bool = False
    txn: int = 0
    parts: frozenset[int] = frozenset()
    places: tuple[ModelPartition, ...] = (ModelPartition(), ModelPartition())
    offset: Offset = field(default_factory=Offset)
    committed: frozenset[int] = frozenset()
    tainted: str = ""

    @property
    def meant(self) -> int:
        """The number of the transaction that a request made now belongs to."""
        return self.txn if self.phase is TransactionPhase.ONGOING else self.txn + 1

    def with_place(self, index: int, place: ModelPartition) -> ModelState:
        """This state with another partition."""
        return replace(self, places=(*self.places[:index], place, *self.places[index + 1 :]))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One request in the model's terms. `epoch` is -1 for an InitProducerId that continues nothing.

    `meant` is the transaction that it was made for, `foreign` says that it names another producer id.
    """

    kind: RequestKind
    epoch: int = NO_EPOCH
    foreign: bool = False
    place: int = 0
    sequence: int = 0
    values: tuple[str, ...] = ()
    commit: bool = False
    offset: int = -1
    meant: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    """An answer: the code, the epoch and offset if there are any, and the things that a look saw.

    `trouble` is the reason why no answer came, or says that it is about another producer id. A look is several requests;
    `api` is the one that was refused with the code.
    """

    code: int = 0
    epoch: int | None = None
    offset: int | None = None
    seen: dict[str, Any] | None = None
    trouble: str = ""
    api: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedOutcome:
    """An answer that is allowed and the state after it. `known` names a defect or limitation that it shows."""

    answer: ModelAnswer
    after: ModelState
    known: str = ""
