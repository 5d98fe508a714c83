"""Writes compacted logs in scripts, and waits until the cleaner has been over them.

Segments are rolled by timestamps: a record that is `ROLL_MS` later than the first of its segment begins the next one at
once. A sentinel shows that the cleaner has been everywhere. It is a key at the beginning of the log and again at the end
of the cleanable part. After the cleaning only the last one is left.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.producer import ScriptedProducer
from wire.records import encode
from wire.transaction_versions import TransactionVersion

SEGMENT_MS = 30_000
ROLL_MS = SEGMENT_MS + 1000
DAY_MS = 86_400_000
#: Keys of records that this module writes, and not the case.
SENTINEL, NEXT_SEGMENT = b"sentinel", b"next segment"
OWN = (SENTINEL, NEXT_SEGMENT)
#: A pass takes milliseconds; the cleaner looks for work ten times a second, and the machine may be busy.
CLEANED_WITHIN_S = 30.0
Pair = tuple[bytes, bytes]


class CompactedLog:
    """A compacted partition and its clock: `now_ms` is the timestamp of the next record."""

    def __init__(self, case: CaseContext, *, delete_retention_ms: int = DAY_MS) -> None:
        (self.at,) = case.topic(
            cleanup_policy="compact",
            min_cleanable_dirty_ratio="0.0",
            segment_ms=str(SEGMENT_MS),
            delete_retention_ms=str(delete_retention_ms),
        )
        self.case = case
        self.now_ms = time.time_ns() // 1_000_000
        self._plain = ScriptedProducer(case, None)
        self._sentinels = 0

    def plain(self, *pairs: Pair) -> None:
        """Write records without a producer id."""
        batch = encode(pairs, timestamp_ms=self.now_ms)
        self.case.require_code("plain records", self._plain.send_batch(self.at, batch))

    def sentinel(self) -> None:
        """Write the sentinel once more."""
        self._sentinels += 1
        self.plain((SENTINEL, str(self._sentinels).encode()))

    def writes(self, producer: ScriptedProducer, *pairs: Pair) -> None:
        """Write records of a transaction, which begins with them unless it is open."""
        if self.case.transaction_version is TransactionVersion.TV1:
            self.case.set_up("the partition is added", lambda: producer.add(self.at))
        batch = encode(
            pairs,
            timestamp_ms=self.now_ms,
            producer_id=producer.now.id,
            producer_epoch=producer.now.epoch,
            base_sequence=producer.sequences[self.at],
            transactional=True,
        )
        self.case.set_up("records of a transaction", lambda: producer.send_batch(self.at, batch))
        producer.sequences[self.at] += len(pairs)

    def roll(self) -> None:
        """Let the next record begin a new segment."""
        self.now_ms += ROLL_MS

    def cleaned(self) -> None:
        """Set up: write a record in a new segment, and wait until the cleaner has been over everything before it."""
        self.roll()
        self.plain((NEXT_SEGMENT, str(self._sentinels).encode()))
        left = self.case.poll_until(self._sentinels_left, lambda seen: seen == 1, within_s=CLEANED_WITHIN_S)
        self.case.require("sentinels that the cleaner has left", left, 1)

    def _sentinels_left(self) -> int:
        return sum(key == SENTINEL for key, _ in self.records())

    def records(self) -> list[tuple[bytes | None, bytes | None]]:
        """Every data record of the log, decided or not."""
        return [
            (record.key, record.value)
            for batch in self.case.inspect.batches(self.at)
            if not batch.control
            for record in batch.records()
        ]

    def data(self) -> list[str]:
        """The values of all records without the sentinels."""
        return [(value or b"").decode() for key, value in self.records() if key not in OWN]

    def committed(self) -> list[str]:
        """The values that a reader under read_committed gets, without the sentinels."""
        own = {(value or b"").decode() for key, value in self.records() if key in OWN}
        return [value for value in self.case.inspect.committed(self.at) if value not in own]


def transactional(case: CaseContext, name: str) -> ScriptedProducer:
    """A transactional producer that outlives the slowest cleaner."""
    return ScriptedProducer(case, f"{case.name}-{name}", timeout_ms=300_000).ready()


def pairs(keys: Sequence[str], value: str) -> list[Pair]:
    """Records with one value each, made of the key."""
    return [(key.encode(), f"{value}-{key}".encode()) for key in keys]
