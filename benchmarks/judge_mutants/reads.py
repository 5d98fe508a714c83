"""Mutators of reads: readers received too little, too much, too early, again, or something else."""

from __future__ import annotations

from benchmarks.judge_mutants.base import Base, CleanRecord, place_of
from benchmarks.judge_mutants.mutant import MS, Breaks, Draft, mutator
from benchmarks.judge_mutants.outcomes import superseded
from benchmarks.judge_mutants.writes import FOREIGN, uncopied
from verification.evidence.columns import IDENTITY
from verification.evidence.row_types import Row
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.identity import NO_SOURCE
from verification.vocabulary.violations import Partition


def _unseen(base: Base, record: CleanRecord) -> Breaks:
    """The anomaly if one visible record is no longer visible."""
    alone = base.told(record) is None or len(base.of[record.key]) == 1
    return {Anomaly.HIDDEN_COMMITTED if alone else Anomaly.TORN_TRANSACTION}


def _hidden(base: Base, draft: Draft) -> Breaks:
    """No read_committed reader receives a committed record."""
    record = draft.pick([each for each in base.records if each.visible])
    draft.hide([record.place])
    return _unseen(base, record)


def _hidden_at_last(base: Base, draft: Draft) -> Breaks:
    """At quiescence a committed record is no longer delivered, though a live observer once received it."""
    record = draft.pick([each for each in base.records if each.visible])
    draft.vanish([record.place], ["committed"])
    return _unseen(base, record)


def _skipped(base: Base, draft: Draft) -> Breaks:
    """A live observer does not receive a record that it must see, but receives a later one of the partition."""
    _, rows = base.seen(draft.random, committed=draft.random.random() < 0.5)
    gone = draft.pick(rows[:-1])
    draft.drop("observations", lambda row: row is gone)
    return {Anomaly.POLL_SKIP}


def _ended_early(base: Base, draft: Draft) -> Breaks:
    """A live observer stops before the end of a partition."""
    _, rows = base.seen(draft.random, committed=draft.random.random() < 0.5)
    left = rows[draft.random.randrange(len(rows)) :]
    draft.drop("observations", lambda row: any(row is each for each in left))
    return ()


def _unread(base: Base, draft: Draft) -> Breaks:
    """The read_uncommitted capture lacks a record."""
    draft.vanish([draft.pick(base.records).place], ["uncommitted"])
    return {Anomaly.POLL_SKIP}


def _given_again(base: Base, draft: Draft) -> Breaks:
    """A live observer receives a record again, in a later poll."""
    _, rows = base.seen(draft.random, committed=draft.random.random() < 0.5)
    last = max(row["poll"] for row in base.rows["observations"])
    late_ns = max(row["received_ns"] for row in base.rows["observations"])
    draft.add("observations", draft.pick(rows), poll=last + 1, position=0, received_ns=late_ns + MS)
    return {Anomaly.NONMONOTONIC_POLL}


def _captured_twice(base: Base, draft: Draft) -> Breaks:
    """A capture has one offset twice."""
    frame = draft.pick(("committed", "uncommitted"))
    draft.add(frame, draft.pick(base.rows[frame]))
    return {Anomaly.NONMONOTONIC_POLL}


def _turned_round(base: Base, draft: Draft) -> Breaks:
    """A live observer receives two records of a partition in the wrong order."""
    _, rows = base.seen(draft.random, committed=draft.random.random() < 0.5)
    number = draft.random.randrange(len(rows) - 1)
    first, second = rows[number], rows[number + 1]
    turns = {id(first): second, id(second): first}
    names = ("poll", "position")
    draft.rows["observations"] = [
        {**row, **{name: turns[id(row)][name] for name in names}} if id(row) in turns else row
        for row in draft.rows["observations"]
    ]
    return {Anomaly.NONMONOTONIC_POLL}


def _polled_otherwise(_: Base, draft: Draft) -> Breaks:
    """The same records are delivered in the same order, divided into other polls."""
    factor = draft.random.randint(2, 9)
    draft.change("observations", lambda _: True, poll=lambda row: row["poll"] * factor + (row["position"] > 3))
    return ()


def _read_early(base: Base, draft: Draft) -> Breaks:
    """A live observer received a record earlier; a violation if it is committed and its commit had not been requested."""
    committed = draft.random.random() < 0.8
    _, rows = base.seen(draft.random, committed=committed)
    row = draft.pick(rows)
    operation = base.operations[row["process"], row["operation"]]
    at_ns = operation["decided_ns"]
    if at_ns is None:
        at_ns = operation["invoked_ns"]
    early_ns = draft.pick((-1, 0, 1, 1_000, MS, 100 * MS))
    draft.change("observations", lambda each: each is row, received_ns=at_ns - early_ns)
    early = committed and early_ns > 0 and operation["told"] is not None
    return {Anomaly.EARLY_READ} if early else ()


def _aborted_shown(base: Base, draft: Draft) -> Breaks:
    """A read_committed reader receives an aborted record: the capture, or a live observer."""
    records = [each for each in base.records if not each.visible]
    place = draft.pick(records).place
    (row,) = [row for row in base.rows["uncommitted"] if place_of(row) == place]
    if draft.random.random() < 0.5:
        draft.add("committed", row)
    else:
        draft.observe(draft.pick(base.observers(committed=True)), row)
    return {Anomaly.ABORTED_READ}


def _declared_committed(base: Base, draft: Draft) -> Breaks:
    """An observer that reads everything declares read_committed."""
    observer = draft.pick(base.observers(committed=False))
    _declare(draft, observer, committed=True)
    breaks = set()
    visible = {each.place for each in base.records if each.visible}
    for row in base.rows["observations"]:
        if row["observer_index"] == observer["observer_index"]:
            operation = base.operations[row["process"], row["operation"]]
            if place_of(row) not in visible:
                breaks.add(Anomaly.ABORTED_READ)
            elif operation["told"] is not None and row["received_ns"] < operation["decided_ns"]:
                breaks.add(Anomaly.EARLY_READ)
    return breaks


def _declared_uncommitted(base: Base, draft: Draft) -> Breaks:
    """An observer that does not receive aborted records declares read_uncommitted."""
    observer = draft.pick(base.observers(committed=True))
    _declare(draft, observer, committed=False)
    last: dict[Partition, int] = {}
    for row in base.rows["observations"]:
        if row["observer_index"] == observer["observer_index"]:
            partition = place_of(row)[:2]
            last[partition] = max(row["offset"], last.get(partition, -1))
    skipped = any(not each.visible and each.place[2] < last.get(each.partition, -1) for each in base.records)
    return {Anomaly.POLL_SKIP} if skipped else ()


def _declare(draft: Draft, observer: Row, *, committed: bool) -> None:
    for frame in ("observers", "observations"):
        draft.change(frame, lambda row: row["observer_index"] == observer["observer_index"], committed_reader=committed)


def _other_content_observed(base: Base, draft: Draft) -> Breaks:
    """A live observer received another record, or a foreign one, at an offset."""
    row = draft.pick(base.rows["observations"])
    other = draft.pick([each for each in base.rows["observations"] if place_of(each) != place_of(row)])
    content = {name: other[name] for name in (*IDENTITY, "valid", "identity_digest")}
    if draft.random.random() < 0.3:
        content = {**dict.fromkeys(IDENTITY), "valid": False, "identity_digest": None}
    draft.change("observations", lambda each: each is row, **content)
    return {Anomaly.INCONSISTENT_OFFSET}


def _other_content_captured(base: Base, draft: Draft) -> Breaks:
    """Two of the log and the captures have different bytes at an offset."""
    frame = draft.pick(("log", "committed", "uncommitted"))
    row = draft.pick([row for row in base.rows[frame] if row["digest"] is not None])
    draft.change(frame, lambda each: each is row, digest=draft.random.getrandbits(31))
    return {Anomaly.INCONSISTENT_OFFSET}


def _marker_as_data(base: Base, draft: Draft) -> Breaks:
    """A reader receives a record where the log has a control record."""
    markers = [row for row in base.rows["log"] if row["control"] is not None]
    return _ghost(base, draft, place_of(draft.pick(markers)))


def _ghost_read(base: Base, draft: Draft) -> Breaks:
    """A reader receives a record where the log holds nothing, in a hole or beyond its end."""
    partition = draft.pick(list(base.partitions))
    held = {each["offset"] for each in base.rows["log"] if place_of(each)[:2] == partition}
    end = base.ends[partition]["high_watermark"]
    holes = [offset for offset in range(end) if offset not in held]
    return _ghost(base, draft, (*partition, draft.pick([*holes[:50], end, end + 2])))


def _ghost(base: Base, draft: Draft, place: tuple[int, int, int]) -> Breaks:
    """A reader receives the content of a visible record at a place where it is not."""
    visible = [row for row in base.rows["committed"] if row["source_offset"] == NO_SOURCE]
    row = {**draft.pick(visible), "topic_index": place[0], "partition": place[1], "offset": place[2]}
    frame = draft.pick(("committed", "uncommitted", "observations"))
    if frame == "observations":
        draft.observe(draft.pick(base.observers()), row)
    else:
        draft.add(frame, row)
    return {Anomaly.INCONSISTENT_OFFSET}


def _gone_after_reading(base: Base, draft: Draft) -> Breaks:
    """A record that was not promised is gone from the log, though a live observer received it."""
    keys = [key for key in base.transactions("aborted", visible=False) if not superseded_or_unasked(base, key)]
    observed = {place_of(row) for row in base.rows["observations"]}
    places = [each.place for key in keys for each in base.of[key] if each.place in observed]
    draft.vanish([draft.pick(places)], ["log", "committed", "uncommitted"])
    return {Anomaly.INCONSISTENT_OFFSET}


def _only_not_in_the_log(base: Base, draft: Draft) -> Breaks:
    """The log does not hold a record that every reader received."""
    record = draft.pick(base.records)
    draft.vanish([record.place], ["log"])
    if not record.visible:
        return {Anomaly.INCONSISTENT_OFFSET}
    alone = base.told(record) is None or len(base.of[record.key]) == 1
    return {Anomaly.LOST_WRITE if alone else Anomaly.TORN_TRANSACTION, *uncopied([record])}


def _changed_after_reading(base: Base, draft: Draft) -> Breaks:
    """The log holds a foreign value where a live observer received one of our records."""
    row = draft.pick(base.rows["observations"])
    draft.contents(place_of(row), **FOREIGN)
    changed = {place_of(row)}
    draft.drop("observations", lambda each: place_of(each) in changed)
    draft.rows["observations"] += [each for each in base.rows["observations"] if place_of(each) in changed]
    record = next(each for each in base.records if each.place == place_of(row))
    return {Anomaly.PHANTOM_RECORD, *uncopied([record])}


def superseded_or_unasked(base: Base, key: tuple[int, int]) -> bool:
    """Whether the owner of the transactional id did not request the end of a transaction."""
    return base.operations[key]["decided_ns"] is None or superseded(base, key)


MUTATORS = tuple(
    mutator(make)
    for make in (
        _hidden,
        _hidden_at_last,
        _skipped,
        _ended_early,
        _unread,
        _given_again,
        _captured_twice,
        _turned_round,
        _polled_otherwise,
        _read_early,
        _aborted_shown,
        _declared_committed,
        _declared_uncommitted,
        _other_content_observed,
        _other_content_captured,
        _marker_as_data,
        _ghost_read,
        _gone_after_reading,
        _only_not_in_the_log,
        _changed_after_reading,
    )
)
