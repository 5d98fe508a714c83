"""ISO: the records and offsets that Fetch and ListOffsets return, during transactions and after their decision."""

from __future__ import annotations

import random
import struct
import time
from functools import partial

from runner.protocol.toolkit.case import BOTH, HASTY, THREE, needs, requirement, versions
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.fetching import COMMITTED, UNCOMMITTED, aborted_in, delete_records, fetch, list_offset
from runner.protocol.toolkit.producer import ScriptedProducer, transactional
from verification.scripts.script import Relation
from wire.codes import ErrorCode as Code
from wire.records import TRANSACTIONAL, Marker
from wire.transaction_versions import TransactionVersion
from wire.values import EARLIEST, LATEST

HOUR_MS = 3_600_000


def plain(case: CaseContext) -> ScriptedProducer:
    """An idempotent producer, whose records are decided as soon as they are written."""
    return ScriptedProducer(case, None).ready()


@requirement("ISO-01")
@versions(*BOTH)
def test_the_stable_offset_stands_at_the_earliest_open_transaction(case: CaseContext) -> None:
    """The last stable offset is the first offset of the earliest undecided transaction, else the high watermark."""
    (at,) = case.topic()
    early, late = transactional(case, "early"), transactional(case, "late")
    plain(case).writes(at)

    def claim(when: str, stable: int, end: int) -> None:
        found = fetch(case, at, COMMITTED)
        case.expect(f"{when}: Fetch's stable offset and high watermark", [found.stable, found.end], [stable, end])
        case.expect(f"{when}: ListOffsets' stable offset", list_offset(case, at, COMMITTED, LATEST)[0], stable)

    claim("nothing is open", 1, 1)
    early.writes(at)
    late.writes(at)
    early.writes(at)
    claim("two are open from 1 and 2", 1, 4)
    late.ends(commit=True)
    claim("the later one is decided", 1, 5)
    late.writes(at)
    early.ends(commit=False)
    claim("the earlier one is decided, another is open from 5", 5, 7)
    late.ends(commit=True)
    claim("all are decided", 8, 8)


@requirement("ISO-02", "ISO-23")
@versions(*BOTH)
def test_undecided_records_are_not_given(case: CaseContext) -> None:
    """A Fetch ends at the last stable offset under read_committed and at the high watermark otherwise."""
    (at,) = case.topic()
    producer, other = transactional(case, "open"), plain(case)
    other.writes(at)
    producer.writes(at, values=["b", "c"])
    other.writes(at, values=["d"])
    # The connection on which the transaction's own records were sent.
    connection = case.connection(case.leader(at))
    for offset in (0, 1, 3):
        found = fetch(case, at, COMMITTED, offset=offset, connection=connection)
        case.expect(f"read_committed from {offset}", [found.code, found.values()], [0, ["a"] if offset == 0 else []])
        found = fetch(case, at, UNCOMMITTED, offset=offset, connection=connection)
        case.expect(
            f"read_uncommitted from {offset}",
            found.values(),
            {0: ["a", "b", "c", "d"], 1: ["b", "c", "d"], 3: ["d"]}[offset],
        )
        case.expect("its last batch lies below the high watermark", found.batches[-1].last_offset, found.end - 1)
    producer.ends(commit=True)
    case.expect("read_committed after the commit", fetch(case, at, COMMITTED).values(), ["a", "b", "c", "d"])


@requirement("ISO-03")
@versions(*BOTH)
def test_the_aborted_list_is_exact(case: CaseContext) -> None:
    """From every offset the list has exactly the aborted transactions that overlap the returned records."""
    (at,) = case.topic()
    producers = [transactional(case, name) for name in "abc"]
    chance = random.Random("the aborted list")
    for _ in range(4):
        for producer in chance.sample(producers, 3):
            producer.writes(at)
        for producer in chance.sample(producers, 3):
            producer.ends(commit=chance.random() < 0.3)
    batches = case.inspect.batches(at)
    truth = aborted_in(batches)
    case.require("aborted transactions in the log", len(truth), 5, Relation.AT_LEAST)
    for batch in batches:
        start = batch.base_offset
        found = fetch(case, at, COMMITTED, offset=start)
        expected = sorted([producer, first] for producer, first, last in truth if last >= start)
        case.expect(f"the list from {start}", [list(each) for each in found.aborted or []], expected)
    case.expect("the list at read_uncommitted", fetch(case, at, UNCOMMITTED).aborted, None)


@requirement("ISO-04")
@versions(*BOTH)
def test_a_marker_is_one_control_record(case: CaseContext) -> None:
    """A marker is a control batch of one record with key version 0, and takes exactly one offset."""
    (at,) = case.topic()
    producer = transactional(case, "marks")
    for number, kind in enumerate((Marker.COMMIT, Marker.ABORT)):
        wrote = producer.now
        producer.writes(at, values=["a", "b"]).ends(commit=kind is Marker.COMMIT)
        data, control = case.inspect.batches(at)[2 * number : 2 * number + 2]
        # KIP-890: in TV2 the marker already has the epoch of the next transaction.
        epoch = wrote.epoch + (case.transaction_version is TransactionVersion.TV2)
        told = [control.producer_id, control.producer_epoch, control.base_sequence]
        case.expect(f"{kind.name}: its producer, epoch and sequence", told, [wrote.id, epoch, -1])
        case.expect(
            f"{kind.name}: it is transactional and control", [control.transactional, control.control], [True, True]
        )
        case.expect(f"{kind.name}: no other attribute", control.attributes & ~(TRANSACTIONAL | 0x20), 0)
        case.expect(
            f"{kind.name}: its offsets",
            [control.base_offset, control.next_offset],
            [data.last_offset + 1, data.last_offset + 2],
        )
        records = control.records()
        case.expect(f"{kind.name}: its keys", [each.key for each in records], [struct.pack(">hh", 0, kind)])
        version, _coordinator_epoch = struct.unpack(">hi", (records[0].value or b"")[:6])
        case.expect(f"{kind.name}: the version of its value", version, 0)
    case.expect("the end of the log", case.inspect.end(at), 6)


@requirement("ISO-06")
@versions(*BOTH)
def test_interleaved_transactions_are_told_apart(case: CaseContext) -> None:
    """Of interleaved transactions and plain records exactly the committed and plain ones are visible, in order."""
    (at,) = case.topic()
    producers = [transactional(case, name) for name in "abcd"]
    other = plain(case)
    chance = random.Random("interleaved")
    written: list[tuple[str, int]] = []
    aborted: set[int] = set()
    opened: dict[int, int] = {}
    for number in range(40):
        which = chance.randrange(5)
        if which == 4:
            other.writes(at, values=[str(number)])
            written.append((str(number), -1))
        elif which in opened and chance.random() < 0.4:
            commit = chance.random() < 0.5
            producers[which].ends(commit=commit)
            transaction = opened.pop(which)
            aborted |= set() if commit else {transaction}
        else:
            producers[which].writes(at, values=[str(number)])
            written.append((str(number), opened.setdefault(which, number)))
    for which, transaction in opened.items():
        producers[which].ends(commit=False)
        aborted.add(transaction)
    case.require("aborted transactions", len(aborted), 3, Relation.AT_LEAST)
    visible = [value for value, transaction in written if transaction not in aborted]
    case.expect("the log", case.inspect.values(at), [value for value, _ in written])
    case.expect("what is visible", case.inspect.committed(at), visible)


@requirement("ISO-07")
@versions(*BOTH)
def test_an_abort_does_not_reach_into_the_next_transaction(case: CaseContext) -> None:
    """Of one producer's aborted and committed transactions in one fetch only the committed records are visible."""
    (at,) = case.topic()
    producer = transactional(case, "both")
    producer.writes(at, values=["aborted"]).ends(commit=False)
    producer.writes(at, values=["committed"]).ends(commit=True)
    # An aborted transaction that wrote nothing: in TV2 a partition joins by the first record, so there is none.
    if case.transaction_version is TransactionVersion.TV1:
        case.set_up("a partition is added", lambda: producer.add(at))
        producer.ends(commit=False)
    producer.writes(at, values=["later"]).ends(commit=True)
    case.expect("what is visible", case.inspect.committed(at), ["committed", "later"])
    # KAFKA-10702: from 2.8 on a transaction without records is not listed. Before, it is listed with its marker at 4.
    empty = (
        [(producer.now.id, 4)] if case.transaction_version is TransactionVersion.TV1 and not case.since("2.8.0") else []
    )
    case.expect("the aborted list", fetch(case, at, COMMITTED).aborted, [(producer.now.id, 0), *empty])


@requirement("ISO-11")
@versions(*BOTH)
def test_list_offsets_ends_at_the_stable_offset(case: CaseContext) -> None:
    """Under read_committed ListOffsets gives the last stable offset as the latest, and finds no time beyond it."""
    (at,) = case.topic()
    producer, other = transactional(case, "open"), plain(case)
    began_ms = time.time_ns() // 1_000_000 - 10_000
    case.require_code("a record", other.produce(at, ["a"], timestamp_ms=began_ms))
    if case.transaction_version is TransactionVersion.TV1:
        case.set_up("the partition is added", lambda: producer.add(at))
    case.set_up("a transaction is open", lambda: producer.produce(at, ["b"], timestamp_ms=began_ms + 1000))
    case.require_code("a record behind it", other.produce(at, ["c"], timestamp_ms=began_ms + 2000))
    rows: list[tuple[str, int, tuple[int, int], tuple[int, int]]] = [
        ("the earliest offset", EARLIEST, (0, -1), (0, -1)),
        ("the latest offset", LATEST, (1, -1), (3, -1)),
        ("the time of the record before", began_ms, (0, began_ms), (0, began_ms)),
        ("the time of the open record", began_ms + 1000, (-1, -1), (1, began_ms + 1000)),
        ("the time of the record behind", began_ms + 2000, (-1, -1), (2, began_ms + 2000)),
    ]
    for what, timestamp, committed, uncommitted in rows:
        case.expect(f"{what}, read_committed", list_offset(case, at, COMMITTED, timestamp), list(committed))
        case.expect(f"{what}, read_uncommitted", list_offset(case, at, UNCOMMITTED, timestamp), list(uncommitted))
    producer.ends(commit=True)
    case.expect("the latest offset after the commit", list_offset(case, at, COMMITTED, LATEST)[0], 4)
    case.expect("the time of the record", list_offset(case, at, COMMITTED, began_ms + 1000)[0], 1)


@requirement("ISO-15")
@versions(*BOTH)
def test_deleting_the_start_of_an_open_transaction(case: CaseContext) -> None:
    """When DeleteRecords goes beyond the start of an open transaction, the stable offset is the new start of the log."""
    (at,) = case.topic()
    producer, other = transactional(case, "open"), plain(case)
    other.writes(at, values=["a"])
    producer.writes(at, values=["b"]).writes(at, values=["c"])
    other.writes(at, values=["d"])
    case.require("the stable offset before", case.inspect.stable(at), 1)
    for start in (2, 3):
        case.require_code(f"records below {start} are deleted", delete_records(case, at, start))
        found = fetch(case, at, COMMITTED, offset=start)
        case.expect(f"start {start}: the stable offset", [found.code, found.stable], [0, start])
        case.expect(f"start {start}: what is visible", found.values(), [])
    case.expect("the code below the start", fetch(case, at, COMMITTED, offset=2).code, int(Code.OFFSET_OUT_OF_RANGE))
    producer.ends(commit=True)
    case.expect("the stable offset after the commit", case.inspect.stable(at), 5)
    case.expect("what is visible after the commit", case.inspect.committed(at), ["d"])


@requirement("ISO-16")
@needs(HASTY)
def test_retention_of_the_start_of_an_open_transaction(case: CaseContext) -> None:
    """When retention removes the start of an open transaction, the stable offset is the new start of the log."""
    (at,) = case.topic(segment_ms="30000", retention_ms="600000")
    producer = transactional(case, "open", timeout_ms=300_000)
    if case.transaction_version is TransactionVersion.TV1:
        case.set_up("the partition is added", lambda: producer.add(at))
    old_ms = time.time_ns() // 1_000_000 - HOUR_MS
    case.set_up("a transaction is open", lambda: producer.produce(at, ["a", "b"], timestamp_ms=old_ms))
    # Its timestamp is an hour later: it begins a new segment, and the first one is past its retention.
    case.require_code("a record in the next segment", plain(case).produce(at, ["c"]))
    # Brokers before 3.8 first check retention 30 s after their start.
    start = case.poll_until(lambda: case.inspect.start(at), bool, within_s=45)
    case.require("retention has removed the first segment", start, 2)
    found = fetch(case, at, COMMITTED, offset=2)
    case.expect("the stable offset", [found.code, found.stable, found.end], [0, 2, 3])
    case.expect("what is visible", found.values(), [])
    producer.ends(commit=True)
    case.expect("the stable offset after the commit", case.inspect.stable(at), 4)
    case.expect("what is visible after the commit", case.inspect.committed(at), ["c"])


@requirement("ISO-14")
@needs(THREE)
def test_followers_answer_like_the_leader(case: CaseContext) -> None:
    """A Fetch by a consumer from a follower ends at the same stable offset and has the same aborted list."""
    (at,) = case.topic()
    producer, opener = transactional(case, "ends"), transactional(case, "open")
    producer.writes(at, values=["a"]).ends(commit=False)
    producer.writes(at, values=["b"]).ends(commit=True)
    opener.writes(at, values=["c"])
    lead = fetch(case, at, COMMITTED)
    case.require("the leader's stable offset and end", [lead.stable, lead.end], [4, 5])
    followers = [each for each in case.brokers if each != case.leader(at)]
    case.require("followers", len(followers), 2)
    for broker in followers:
        # A follower learns the high watermark with its next fetch from the leader.
        found = case.poll_until(
            partial(fetch, case, at, COMMITTED, broker=broker),
            lambda seen: seen.end == lead.end,
            within_s=15,
        )
        case.expect(f"broker {broker}: code, stable offset, end", [found.code, found.stable, found.end], [0, 4, 5])
        case.expect(f"broker {broker}: what is returned", found.values(), lead.values())
        case.expect(f"broker {broker}: the aborted list", found.aborted, lead.aborted)
    opener.ends(commit=False)
