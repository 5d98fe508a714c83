"""SHARE: the records of transactions that a share group hands out, read by the release's own share consumer."""

from __future__ import annotations

from runner.protocol.toolkit import replicas
from runner.protocol.toolkit.case import THREE, needs, requirement
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.producer import plain, transactional
from runner.protocol.toolkit.share_groups import (
    ISOLATION,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    Delivered,
    configure,
    need_share_groups,
    new_group,
    share_reader,
)
from wire.values import TopicPartition


def values(read: list[Delivered]) -> list[str]:
    """The values of records."""
    return [each.value for each in read]


def decided(case: CaseContext) -> TopicPartition:
    """A partition with a committed record "a" at 0, an aborted "b" at 2 and a committed "c" at 4, each before its marker."""
    need_share_groups(case)
    (at,) = case.topic()
    producer = transactional(case)
    for value, commit in (("a", True), ("b", False), ("c", True)):
        producer.writes(at, values=[value]).ends(commit=commit)
    return at


@requirement("SHARE-01")
def test_read_committed_hands_out_committed_records_below_the_stable_offset(case: CaseContext) -> None:
    """No aborted record, and nothing from an open transaction on; by default a group gets all of it at once."""
    at = decided(case)
    open_one = transactional(case, "open").writes(at, values=["d"])
    plain(case, at, "e")
    with share_reader(case, new_group(case, "default"), at) as reader:
        case.expect("by default", values(reader.reads_to("e")), ["a", "b", "c", "d", "e"])
    with share_reader(case, new_group(case, "committed", isolation=READ_COMMITTED), at) as reader:
        case.expect("read_committed", values(reader.reads_to("c")), ["a", "c"])
        case.expect("read_committed, while a transaction is open", reader.given_meanwhile(), [])
        open_one.ends(commit=True)
        case.expect("read_committed, after its commit", values(reader.reads_to("e")), ["d", "e"])


@requirement("SHARE-01")
@needs(THREE)
def test_a_new_leader_hands_out_committed_records_only(case: CaseContext) -> None:
    """It learns from the log alone what was aborted before it led, what is open, and what is aborted after that."""
    need_share_groups(case)
    first, second, third = case.brokers
    (at,) = replicas.placed(case, [first, second, third])
    producer = transactional(case)
    for value, commit in (("a", True), ("b", False), ("c", True)):
        producer.writes(at, values=[value]).ends(commit=commit)
    open_one = transactional(case, "open").writes(at, values=["d"])
    plain(case, at, "e")
    group = new_group(case, "committed", isolation=READ_COMMITTED)
    with share_reader(case, group, at) as reader:
        one, other = reader.first(2)
        case.require("what the first leader hands out", values([one, other]), ["a", "c"])
        reader.accepts(one)
        reader.releases(other)
        replicas.lead(case, at, second)
        case.expect("from the new leader", values(reader.reads_to("c")), ["c"])
        case.expect("from the new leader, while a transaction is open", reader.given_meanwhile(), [])
        open_one.ends(commit=False)
        case.expect("from the new leader, after its abort", values(reader.reads_to("e")), ["e"])


@requirement("SHARE-02")
def test_no_marker_is_handed_out_and_none_is_in_the_way(case: CaseContext) -> None:
    """Readers of both levels get the offsets of data only, and the next reader of their group only what is new."""
    at = decided(case)
    plain(case, at, "d")
    shown = {READ_UNCOMMITTED: [0, 2, 4, 6], READ_COMMITTED: [0, 4, 6]}
    groups = {level: new_group(case, level, isolation=level) for level in shown}
    for level, group in groups.items():
        with share_reader(case, group, at) as reader:
            case.expect(f"{level}: the offsets", [each.offset for each in reader.reads_to("d")], shown[level])
    transactional(case, "later").writes(at, values=["e"]).ends(commit=True)
    plain(case, at, "z")
    for level, group in groups.items():
        with share_reader(case, group, at) as reader:
            case.expect(f"{level}: the next reader's", [each.offset for each in reader.reads_to("z")], [7, 9])


@requirement("SHARE-03")
def test_a_record_that_was_not_acknowledged_is_delivered_again(case: CaseContext) -> None:
    """A reader that leaves without acknowledging a record may have processed it; the next one is given it, counted."""
    need_share_groups(case)
    (at,) = case.topic()
    plain(case, at, "a")
    group = new_group(case, "group")
    with share_reader(case, group, at) as reader:
        (first,) = reader.first(1)
        case.expect("the first delivery", [first.value, first.count], ["a", 1])
    with share_reader(case, group, at) as reader:
        (again,) = reader.first(1)
        case.expect("the next one", [again.offset, again.value, again.count], [first.offset, "a", 2])
        reader.accepts(again)
        plain(case, at, "z")
        case.expect("after it was acknowledged", values(reader.reads_to("z")), ["z"])


@requirement("SHARE-04")
def test_a_live_group_that_becomes_read_committed_withholds_what_was_aborted(case: CaseContext) -> None:
    """An aborted record that was handed out before, and is given back after the change, is not delivered again."""
    at = decided(case)
    group = new_group(case, "group", isolation=READ_UNCOMMITTED)
    with share_reader(case, group, at) as reader:
        one, aborted, other = reader.first(3)
        case.require("what is handed out", values([one, aborted, other]), ["a", "b", "c"])
        reader.accepts(one)
        configure(case, group, ISOLATION, READ_COMMITTED)
        reader.releases(aborted, other)
        plain(case, at, "z")
        case.expect("after the change", values(reader.reads_to("z")), ["c", "z"])
