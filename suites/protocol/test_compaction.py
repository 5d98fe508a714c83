"""ISO: the records and markers that the log cleaner may remove from a topic with transactions, and must keep."""

from __future__ import annotations

from runner.protocol.toolkit.case import BOTH, HASTY, needs, requirement, versions
from runner.protocol.toolkit.compaction import CompactedLog, pairs, transactional
from runner.protocol.toolkit.context import CaseContext
from wire.values import TopicPartition


@requirement("ISO-17")
@needs(HASTY)
@versions(*BOTH)
def test_cleaning_follows_the_transactions(case: CaseContext) -> None:
    """Aborted records are removed. The last committed record of a key and all beyond the stable offset stay."""
    log = CompactedLog(case)
    producer, opener = transactional(case, "ends"), transactional(case, "open")
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
    markers = case.inspect.markers(log.at)
    case.require("markers before", len(markers), 3)
    log.cleaned()
    case.expect("the records that are left", log.data(), ["b", "c", "open 1", "open 2", "d"])
    case.expect("what is visible", log.committed(), ["b", "c"])
    case.expect("the markers", case.inspect.markers(log.at), markers)
    opener.ends(commit=True)
    log.sentinel()
    log.cleaned()
    case.expect("the records that are left after the commit", log.data(), ["open 2", "d"])
    case.expect("what is visible after the commit", log.committed(), ["open 2", "d"])


@requirement("ISO-17")
@needs(HASTY)
@versions(*BOTH)
def test_markers_outlive_their_records(case: CaseContext) -> None:
    """A marker stays until all records of its transaction are gone and delete.retention.ms has passed, and goes then."""
    kept, dropped = CompactedLog(case), CompactedLog(case, delete_retention_ms=1)
    for log in (kept, dropped):
        producer = transactional(case, f"ends-{log.at.topic}")
        log.sentinel()
        log.writes(producer, (b"k", b"aborted"))
        producer.ends(commit=False)
        # The cleaner keeps the last batch of a producer for its sequence, empty if need be. The case does not check that.
        log.writes(producer, (b"other", b"stays"))
        producer.ends(commit=True)
        log.sentinel()
    for log in (kept, dropped):
        log.cleaned()
        case.expect(f"{log.at}: the records after one pass", log.data(), ["stays"])
        case.expect(f"{log.at}: the markers after one pass", kinds(case, log.at), ("abort", "commit"))
    # KIP-534: one pass removes the records. The next finds none left and starts the time, a later pass ends it.
    for log in (kept, dropped):
        for _ in range(2):
            log.sentinel()
            log.cleaned()
        case.expect(f"{log.at}: what is visible", log.committed(), ["stays"])
    case.expect("before delete.retention.ms: the markers", kinds(case, kept.at), ("abort", "commit"))
    case.expect("after delete.retention.ms: the markers", kinds(case, dropped.at), ("commit",))


@requirement("ISO-18")
@needs(HASTY)
@versions(*BOTH)
def test_keys_that_look_like_markers(case: CaseContext) -> None:
    """Records whose keys have the bytes of markers' keys neither remove markers nor are removed for them."""
    log = CompactedLog(case)
    producer = transactional(case, "ends")
    abort, commit = b"\x00\x00\x00\x00", b"\x00\x00\x00\x01"
    log.sentinel()
    log.plain((abort, b"old"), (commit, b"old too"))
    log.writes(producer, (b"k1", b"a"), (commit, b"b"))
    producer.ends(commit=True)
    log.writes(producer, (b"k2", b"aborted"), (abort, b"aborted too"))
    producer.ends(commit=False)
    log.plain((abort, b"new"))
    log.sentinel()
    markers = case.inspect.markers(log.at)
    log.cleaned()
    case.expect("the records that are left", log.data(), ["a", "b", "new"])
    case.expect("what is visible", log.committed(), ["a", "b", "new"])
    case.expect("the markers", case.inspect.markers(log.at), markers)
    case.expect("the stable offset", case.inspect.stable(log.at), case.inspect.end(log.at))


@requirement("ISO-19")
@needs(HASTY)
@versions(*BOTH)
def test_a_segment_that_takes_several_passes(case: CaseContext) -> None:
    """Aborted records stay hidden when the cleaner needs several passes for the segment that they are in."""
    log = CompactedLog(case)
    producer = transactional(case, "ends")
    log.sentinel()
    for batch in range(20):
        log.plain(*pairs([f"{batch}-{number}" for number in range(100)], "plain"))
    log.writes(producer, *pairs([f"aborted-{number}" for number in range(50)], "aborted"))
    producer.ends(commit=False)
    log.sentinel()
    case.require("visible records before", len(log.committed()), 2000)
    log.cleaned()
    visible = log.committed()
    case.expect("visible records", len(visible), 2000)
    case.expect("aborted ones among them", [each for each in visible if each.startswith("aborted")][:5], [])


@requirement("ISO-20")
@needs(HASTY)
@versions(*BOTH)
def test_transactions_over_several_segments(case: CaseContext) -> None:
    """Transactions that span segments are cleaned alike in all of them."""
    log = CompactedLog(case)
    aborts, commits = transactional(case, "aborts"), transactional(case, "commits")
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
    case.expect("the records that are left", log.data(), ["b", "c", "d"])
    case.expect("what is visible", log.committed(), ["b", "c", "d"])
    case.expect("the stable offset", case.inspect.stable(log.at), case.inspect.end(log.at))


def kinds(case: CaseContext, at: TopicPartition) -> tuple[str, ...]:
    """The kinds of all markers in order."""
    return tuple(kind for kind, _, _ in case.inspect.markers(at))
