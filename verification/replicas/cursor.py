"""A position in one replica's log that moves on batch by batch, or record by record where batches differ.

A comparison compares the `Content` of records: everything that a reader, a broker or a transaction depends on. That is
times, key, value, headers, producer, epoch, sequence, control and transactional bits, and leader epoch. Grouping and
compression of records are left out, because the cleaner of each broker regroups them for itself.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from verification.replicas.directory import Replica
from verification.replicas.segments import SegmentLog
from verification.vocabulary.errors import SegmentDamagedError
from wire.errors import BatchError
from wire.records import Batch, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """One record, or control record, apart from its offset: that of `record` is -1.

    -1 stands for none in the producer's fields; `control` is `commit`, `abort`, `other`, or None for data.
    """

    record: Record
    producer_id: int
    producer_epoch: int
    sequence: int
    leader_epoch: int
    transactional: bool
    control: str | None

    def __str__(self) -> str:
        kind = "record" if self.control is None else f"{self.control} marker"
        parts = [f"a {'transactional ' if self.transactional and self.control is None else ''}{kind}"]
        if (self.producer_id, self.producer_epoch, self.sequence) != (-1, -1, -1):
            parts.append(f"of producer {self.producer_id} epoch {self.producer_epoch} sequence {self.sequence}")
        record = self.record
        parts.append(f"(key {_described(record.key)}, value {_described(record.value)}, {len(record.headers)} headers,")
        parts.append(f"leader epoch {self.leader_epoch}, timestamp {record.timestamp_ms})")
        return " ".join(parts)


def _described(content: bytes | None) -> str:
    return "null" if content is None else f"{len(content)} bytes with CRC-32 {zlib.crc32(content):08x}"


def contents(batch: Batch) -> Iterator[tuple[int, Content]]:
    """The records of a batch by offset; raises BatchError when they do not fit its header."""
    # The cleaner keeps empty batches: they hold the producer's last sequence.
    decision = batch.marker() if batch.count else None
    control = (decision.name.lower() if decision is not None else "other") if batch.control else None
    for record in batch.records():
        sequence = batch.base_sequence
        if sequence >= 0:
            sequence = (sequence + record.offset - batch.base_offset) % (1 << 31)
        yield (
            record.offset,
            Content(
                record=record._replace(offset=-1),
                producer_id=batch.producer_id,
                producer_epoch=batch.producer_epoch,
                sequence=sequence,
                leader_epoch=batch.leader_epoch,
                transactional=batch.transactional,
                control=control,
            ),
        )


@dataclass(slots=True, eq=False)
class Cursor:
    """A cursor from a replica's log start to its high watermark.

    `head` is the next batch, None after the last one. The replica vouches for the offsets in [log start, `until`):
    `until` is its high watermark, or the offset from which `damage` makes the rest unreadable.
    """

    replica: Replica
    log: SegmentLog = field(init=False)
    head: Batch | None = None
    until: int = field(init=False)
    damage: str = ""
    _rest: dict[int, Content] | None = None  # the records of a partly taken head that are left
    _batches: Iterator[Batch] = field(init=False)

    def __post_init__(self) -> None:
        self.until = self.replica.high_watermark or 0
        self.log = self.replica.log()
        self._batches = iter(self.log)
        self.advance()

    @property
    def broken(self) -> bool:
        """Whether damage keeps it from vouching for all offsets below its high watermark."""
        return self.until < (self.replica.high_watermark or 0)

    def vouches(self, first: int, end: int) -> bool:
        """Whether it vouches for any of the offsets from `first` to before `end`."""
        return max(first, self.replica.log_start) < min(end, self.until)

    def advance(self) -> None:
        """Go on to the next batch below the high watermark."""
        self._rest, before = None, self.head
        try:
            self.head = next(self._batches, None)
        except (SegmentDamagedError, OSError) as error:
            self._damaged(str(error), before.next_offset if before is not None else self.replica.log_start)
        if self.head is not None and self.head.base_offset >= self.until:
            self.head = None

    def take(self, stop: int) -> dict[int, Content]:
        """The records of the head below `stop` that were not taken yet; moves on after a head that ends there."""
        if self.head is None or self.head.base_offset >= stop:
            return {}
        if self._rest is None:
            try:
                self._rest = dict(contents(self.head))
            except BatchError as error:
                self._damaged(f"{self.replica.directory}: {error}", self.head.base_offset)
                return {}
        rest = self._rest
        taken = {offset: rest.pop(offset) for offset in sorted(rest) if offset < stop}
        if self.head.next_offset <= stop:
            self.advance()
        return taken

    def read_to_the_end(self) -> int:
        """Read on after the high watermark, for the tail, and return the end of the log."""
        try:
            for _ in () if self.damage else self._batches:
                pass
        except (SegmentDamagedError, OSError) as error:
            self.damage = str(error)
        return self.log.position

    def _damaged(self, why: str, at: int) -> None:
        self.damage, self.head, self._rest = why, None, None
        self.until = min(self.until, at)
