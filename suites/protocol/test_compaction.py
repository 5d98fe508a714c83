"""ISO: what the log cleaner may take from a topic with transactions, and what it must leave.

Segments are rolled by timestamps: a record that is `ROLL_MS` later than the first of its segment begins the next one at
once. That the cleaner has been everywhere is seen by a sentinel: a key that stands at the beginning of the log and
again at the end of what can be cleaned, of which only the last one is left then.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from suites.protocol.case import BOTH, HASTY, generations, needs, requirement
from suites.protocol.generations import Generation
from suites.protocol.producer import ScriptedProducer
from suites.protocol.stage import Stage
from wire.records import encode
from wire.values import TopicPartition

SEGMENT_MS = 30_000
ROLL_MS = SEGMENT_MS + 1000
DAY_MS = 86_400_000
#: Keys of records that belong to the looking and not to the case.
SENTINEL, NEXT_SEGMENT = b"sentinel", b"next segment"
OWN = (SENTINEL, NEXT_SEGMENT)
#: A pass takes milliseconds; the cleaner looks for work ten times a second, and the machine may be busy.
CLEANED_WITHIN_S = 30.0
Pair = tuple[bytes, bytes]


class CompactedLog:
    """A compacted partition and its clock: `now_ms` is the timestamp of what is written next."""

    def __init__(self, stage: Stage, *, delete_retention_ms: int = DAY_MS) -> None:
        (self.at,) = stage.topic(
            cleanup_policy="compact",
            min_cleanable_dirty_ratio="0.0",
            segment_ms=str(SEGMENT_MS),
            delete_retention_ms=str(delete_retention_ms),
        )
        self.stage = stage
        self.now_ms = time.time_ns() // 1_000_000
        self._plain = ScriptedProducer(stage, None)
        self._sentinels = 0

    def plain(self, *pairs: Pair) -> None:
        """Records of no producer."""
        batch = encode(pairs, timestamp_ms=self.now_ms)
        self.stage.require_code("plain records", self._plain.send_batch(self.at, batch))

    def sentinel(self) -> None:
        """The sentinel once more."""
        self._sentinels += 1
        self.plain((SENTINEL, str(self._sentinels).encode()))

    def writes(self, producer: ScriptedProducer, *pairs: Pair) -> None:
        """Records of a transaction, which begins with them unless it is open."""
        if self.stage.generation is Generation.TV1:
            self.stage.set_up("the partition is added", lambda: producer.add(self.at))
        batch = encode(
            pairs,
            timestamp_ms=self.now_ms,
            producer_id=producer.now.id,
            producer_epoch=producer.now.epoch,
            base_sequence=producer.sequences[self.at],
            transactional=True,
        )
        self.stage.set_up("records of a transaction", lambda: producer.send_batch(self.at, batch))
        producer.sequences[self.at] += len(pairs)

    def roll(self) -> None:
        """The next record begins a new segment."""
        self.now_ms += ROLL_MS

    def cleaned(self) -> None:
        """Set up: a record in a new segment, and the cleaner has been over everything before it."""
        self.roll()
        self.plain((NEXT_SEGMENT, str(self._sentinels).encode()))
        left = self.stage.until(self._sentinels_left, lambda seen: seen == 1, within_s=CLEANED_WITHIN_S)
        self.stage.require("sentinels that the cleaner has left", left, 1)

    def _sentinels_left(self) -> int:
        return sum(key == SENTINEL for key, _ in self.records())

    def records(self) -> list[tuple[bytes | None, bytes | None]]:
        """Every data record of the log, decided or not."""
        return [
            (record.key, record.value)
            for batch in self.stage.see.batches(self.at)
            if not batch.control
            for record in batch.records()
        ]

    def data(self) -> list[str]:
        """The values of all records but the cleaner's own."""
        return [(value or b"").decode() for key, value in self.records() if key not in OWN]

    def committed(self) -> list[str]:
        """What a reader under read_committed is given, without the cleaner's own."""
        own = {(value or b"").decode() for key, value in self.records() if key in OWN}
        return [value for value in self.stage.see.committed(self.at) if value not in own]


def transactional(stage: Stage, name: str) -> ScriptedProducer:
    """A transactional producer that outlives the slowest cleaner."""
    return ScriptedProducer(stage, f"{stage.name}-{name}", timeout_ms=300_000).ready()


def pairs(keys: Sequence[str], value: str) -> list[Pair]:
    """Records with one value each, made of the key."""
    return [(key.encode(), f"{value}-{key}".encode()) for key in keys]


@requirement("ISO-17")
@needs(HASTY)
@generations(*BOTH)
def test_cleaning_follows_the_transactions(stage: Stage) -> None:
    """Aborted records go whatever their key, the last committed one stays, and beyond the stable offset all stays."""
    log = CompactedLog(stage)
    producer, opener = transactional(stage, "ends"), transactional(stage, "open")
    log.sentinel()
    log.writes(producer, (b"k1", b"a"), (b"k2", b"b"))
    producer.ends(commit=True)
    log.writes(producer, (b"k1", b"aborted"), (b"k3", b"aborted too"))
    producer.ends(commit=False)
    log.writes(producer, (b"k1", b"c"))
    producer.ends(commit=True)
    log.sentinel()
    # The segment in which the stable offset lies is left alone as a whole.
    log.roll()
    log.writes(opener, (b"k1", b"open 1"), (b"k1", b"open 2"))
    log.plain((b"k2", b"d"))
    markers = stage.see.markers(log.at)
    stage.require("markers before", len(markers), 3)
    log.cleaned()
    stage.expect("the records that are left", log.data(), ["b", "c", "open 1", "open 2", "d"])
    stage.expect("what is visible", log.committed(), ["b", "c"])
    stage.expect("the markers", stage.see.markers(log.at), markers)
    opener.ends(commit=True)
    log.sentinel()
    log.cleaned()
    stage.expect("the records that are left after the commit", log.data(), ["open 2", "d"])
    stage.expect("what is visible after the commit", log.committed(), ["open 2", "d"])


@requirement("ISO-17")
@needs(HASTY)
@generations(*BOTH)
def test_markers_outlive_their_records(stage: Stage) -> None:
    """A marker stays until all records of its transaction are gone and delete.retention.ms has passed, and goes then."""
    kept, dropped = CompactedLog(stage), CompactedLog(stage, delete_retention_ms=1)
    for log in (kept, dropped):
        producer = transactional(stage, f"ends-{log.at.topic}")
        log.sentinel()
        log.writes(producer, (b"k", b"aborted"))
        producer.ends(commit=False)
        # The last batch of a producer is kept for its sequence, empty if need be; this one's is not looked at.
        log.writes(producer, (b"other", b"stays"))
        producer.ends(commit=True)
        log.sentinel()
    for log in (kept, dropped):
        log.cleaned()
        stage.expect(f"{log.at}: the records after one pass", log.data(), ["stays"])
        stage.expect(f"{log.at}: the markers after one pass", kinds(stage, log.at), ("abort", "commit"))
    # KIP-534: one pass removes the records, the next sees that none is left and begins the time, a later one ends it.
    for log in (kept, dropped):
        for _ in range(2):
            log.sentinel()
            log.cleaned()
        stage.expect(f"{log.at}: what is visible", log.committed(), ["stays"])
    stage.expect("before delete.retention.ms: the markers", kinds(stage, kept.at), ("abort", "commit"))
    stage.expect("after delete.retention.ms: the markers", kinds(stage, dropped.at), ("commit",))


@requirement("ISO-18")
@needs(HASTY)
@generations(*BOTH)
def test_keys_that_look_like_markers(stage: Stage) -> None:
    """Records whose keys have the bytes of markers' keys neither remove markers nor are removed for them."""
    log = CompactedLog(stage)
    producer = transactional(stage, "ends")
    abort, commit = b"\x00\x00\x00\x00", b"\x00\x00\x00\x01"
    log.sentinel()
    log.plain((abort, b"old"), (commit, b"old too"))
    log.writes(producer, (b"k1", b"a"), (commit, b"b"))
    producer.ends(commit=True)
    log.writes(producer, (b"k2", b"aborted"), (abort, b"aborted too"))
    producer.ends(commit=False)
    log.plain((abort, b"new"))
    log.sentinel()
    markers = stage.see.markers(log.at)
    log.cleaned()
    stage.expect("the records that are left", log.data(), ["a", "b", "new"])
    stage.expect("what is visible", log.committed(), ["a", "b", "new"])
    stage.expect("the markers", stage.see.markers(log.at), markers)
    stage.expect("the stable offset", stage.see.stable(log.at), stage.see.end(log.at))


@requirement("ISO-19")
@needs(HASTY)
@generations(*BOTH)
def test_a_segment_that_takes_several_passes(stage: Stage) -> None:
    """Aborted records stay hidden when the cleaner needs several passes for the segment that they are in."""
    log = CompactedLog(stage)
    producer = transactional(stage, "ends")
    log.sentinel()
    for batch in range(20):
        log.plain(*pairs([f"{batch}-{number}" for number in range(100)], "plain"))
    log.writes(producer, *pairs([f"aborted-{number}" for number in range(50)], "aborted"))
    producer.ends(commit=False)
    log.sentinel()
    stage.require("visible records before", len(log.committed()), 2000)
    log.cleaned()
    visible = log.committed()
    stage.expect("visible records", len(visible), 2000)
    stage.expect("aborted ones among them", [each for each in visible if each.startswith("aborted")][:5], [])


@requirement("ISO-20")
@needs(HASTY)
@generations(*BOTH)
def test_transactions_over_several_segments(stage: Stage) -> None:
    """Transactions that span segments are cleaned alike in all of them."""
    log = CompactedLog(stage)
    aborts, commits = transactional(stage, "aborts"), transactional(stage, "commits")
    log.sentinel()
    log.writes(aborts, (b"k1", b"aborted 1"), (b"k2", b"aborted 2"))
    log.writes(commits, (b"k3", b"a"), (b"k4", b"b"))
    log.roll()
    log.writes(aborts, (b"k3", b"aborted 3"))
    log.writes(commits, (b"k3", b"c"))
    log.roll()
    log.writes(aborts, (b"k4", b"aborted 4"))
    aborts.ends(commit=False)
    log.writes(commits, (b"k5", b"d"))
    commits.ends(commit=True)
    log.sentinel()
    log.cleaned()
    stage.expect("the records that are left", log.data(), ["b", "c", "d"])
    stage.expect("what is visible", log.committed(), ["b", "c", "d"])
    stage.expect("the stable offset", stage.see.stable(log.at), stage.see.end(log.at))


def kinds(stage: Stage, at: TopicPartition) -> tuple[str, ...]:
    """The kinds of all markers in order."""
    return tuple(kind for kind, _, _ in stage.see.markers(at))
