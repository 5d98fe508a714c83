"""Mutators of copiers, whose outputs and committed input offsets must agree."""

from __future__ import annotations

from benchmarks.judge_mutants.base import Base, CleanRecord, by_partition, place_of
from benchmarks.judge_mutants.mutant import Breaks, Draft, mutator
from benchmarks.judge_mutants.sequences import unfollowed
from verification.evidence.row_types import Row
from verification.vocabulary.anomalies import Anomaly


def _source(base: Base, draft: Draft) -> tuple[Row, list[int], list[int]]:
    """A committed offset, the inputs of its partition that were copied, and those that were not."""
    group = draft.pick(base.rows["group_offsets"])
    copied = sorted(
        {each.row["source_offset"] for each in base.copies() if each.row["source_partition"] == group["partition"]}
    )
    partition = (group["topic_index"], group["partition"])
    left = [each.place[2] for each in base.partitions[partition] if each.visible and each.place[2] not in set(copied)]
    return group, copied, left


def _offset_behind(base: Base, draft: Draft) -> Breaks:
    """A committed offset is lower; harmless as long as it covers every input that was copied."""
    group, copied, _ = _source(base, draft)
    offset = draft.pick((*copied, *range(copied[-1] + 1, group["offset"])))
    draft.change("group_offsets", lambda row: row is group, offset=offset)
    return {Anomaly.OUTPUT_WITHOUT_OFFSET} if offset <= copied[-1] else ()


def _offset_gone(base: Base, draft: Draft) -> Breaks:
    """The cluster has no committed offset of a partition whose inputs were copied."""
    group, _, _ = _source(base, draft)
    if draft.random.random() < 0.5:
        draft.drop("group_offsets", lambda row: row is group)
    else:
        draft.change("group_offsets", lambda row: row is group, offset=-1)
    return {Anomaly.OUTPUT_WITHOUT_OFFSET}


def _offset_ahead(base: Base, draft: Draft) -> Breaks:
    """A committed offset is higher; harmless as long as it covers no input that was not copied."""
    group, _, left = _source(base, draft)
    offset = draft.pick([*left[:1], *[each + 1 for each in left]])
    draft.change("group_offsets", lambda row: row is group, offset=offset)
    return {Anomaly.OFFSET_WITHOUT_OUTPUT} if offset > min(left) else ()


def _other_source(base: Base, draft: Draft) -> Breaks:
    """An output names another input as its source, which was copied as well."""
    copies = base.copies()
    record = draft.pick(copies)
    topic = record.row["intended_topic_index"]
    here = [each.row for each in copies if each.row["intended_topic_index"] == topic]
    others = [
        row
        for row in here
        if (row["source_partition"], row["source_offset"])
        != (record.row["source_partition"], record.row["source_offset"])
    ]
    other = draft.pick(others)
    names = ("source_partition", "source_offset")
    draft.contents(record.place, **{name: other[name] for name in names})
    return {Anomaly.DUPLICATE, Anomaly.OFFSET_WITHOUT_OUTPUT}


def _at_least_once(base: Base, draft: Draft) -> Breaks:
    """A run claims at-least-once: a committed offset may be lower and an output there again, but none may be missing."""
    draft.change("runs", lambda _: True, at_least_once=True)
    return {*draft.pick((_offset_behind, _other_source))(base, draft)} & {Anomaly.OFFSET_WITHOUT_OUTPUT}


def _copied_in_vain(base: Base, draft: Draft) -> Breaks:
    """The copies of an aborted transaction are gone: another transaction had copied the same inputs again."""
    keys = [key for key, records in base.of.items() if records[0].row["source_offset"] >= 0 and not records[0].visible]
    draft.vanish(each.place for each in base.of[draft.pick(keys)])
    return unfollowed(draft)


def _aborted_input(base: Base, draft: Draft) -> Breaks:
    """An operation that wrote inputs was a transaction and is aborted, though its inputs were copied."""
    copied = {(row["source_partition"], row["source_offset"]) for row in (each.row for each in base.copies())}
    keys = [key for key, records in base.of.items() if copied & _inputs(base, records)]
    key = draft.pick(keys)
    records = base.of[key]
    producer = {"producer_id": 1 + max(row["producer_id"] for row in base.rows["log"]), "producer_epoch": 0}
    places = {each.place for each in records}
    # Without numbers in the input topic: the records of another producer would leave a gap in them.
    draft.change("log", lambda row: row["topic_index"] in base.inputs, producer_id=-1, sequence=-1)
    draft.change("log", lambda row: place_of(row) in places, transactional=True, **producer)
    marker = next(row for row in base.rows["log"] if row["control"] is not None)
    for mine in by_partition(records):
        draft.append(mine[0].partition, marker, visible=False, control="abort", **producer)
    draft.hide(places)
    draft.tell(key, told="aborted", plain=False)
    return {Anomaly.ABORTED_READ}


def _inputs(base: Base, records: list[CleanRecord]) -> set[tuple[int, int]]:
    """Partition and offset of those records that are inputs."""
    return {each.place[1:] for each in records if each.place[0] in base.inputs}


MUTATORS = tuple(
    mutator(make)
    for make in (
        _offset_behind,
        _offset_gone,
        _offset_ahead,
        _other_source,
        _at_least_once,
        _copied_in_vain,
        _aborted_input,
    )
)
