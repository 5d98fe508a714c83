"""Mutators of writes: records that are missing, duplicated, foreign, misplaced, or out of order."""

from __future__ import annotations

from typing import Any

from benchmarks.judge_mutants.base import Base, CleanRecord, place_of
from benchmarks.judge_mutants.mutant import PLACED, Breaks, Draft, mutator
from benchmarks.judge_mutants.sequences import unfollowed
from verification.evidence.columns import IDENTITY
from verification.evidence.row_types import Row
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.identity import NO_SOURCE
from verification.vocabulary.violations import OperationKey, Partition

FOREIGN: Row = {**dict.fromkeys(IDENTITY), "valid": False}
#: Columns of a record by a producer without idempotence.
NO_PRODUCER: Row = {"producer_id": -1, "producer_epoch": -1, "sequence": -1, "transactional": False}


def uncopied(records: list[CleanRecord]) -> set[Anomaly]:
    """The further anomalies if these records are no longer committed.

    The group's offset covers the inputs of all copies, so an input is left without its output.
    """
    copies = any(each.row["source_offset"] != NO_SOURCE and each.visible for each in records)
    return {Anomaly.OFFSET_WITHOUT_OUTPUT} if copies else set()


def several(base: Base, told: str) -> list[OperationKey]:
    """Visible transactions of more than one record."""
    return [key for key in base.transactions(told, visible=True) if len(base.of[key]) > 1]


def part(base: Base, key: OperationKey, draft: Draft) -> list[CleanRecord]:
    """Some but not all records of an operation, at random."""
    records = base.of[key]
    return draft.random.sample(records, draft.random.randint(1, len(records) - 1))


def _lost_record(base: Base, draft: Draft) -> Breaks:
    """An acknowledged record outside a transaction is gone, from the log and from all readers."""
    draft.vanish([draft.pick(base.promised()).place])
    return {Anomaly.LOST_WRITE}


def _lost_transaction(base: Base, draft: Draft) -> Breaks:
    """All records of a transaction that was told committed are gone; its control records remain."""
    keys = base.transactions("committed", visible=True)
    records = base.of[draft.pick(keys)]
    draft.vanish(each.place for each in records)
    return {Anomaly.LOST_WRITE, *uncopied(records)}


def _torn_transaction(base: Base, draft: Draft) -> Breaks:
    """Some records of a transaction that was told committed are gone."""
    keys = several(base, "committed")
    gone = part(base, draft.pick(keys), draft)
    draft.vanish(each.place for each in gone)
    return {Anomaly.TORN_TRANSACTION, *uncopied(gone)}


def _gone_aborted(base: Base, draft: Draft) -> Breaks:
    """Records of an aborted transaction are gone. No reader needs them, but the records after them show the gap."""
    keys = base.transactions("aborted", visible=False)
    draft.vanish(each.place for each in part(base, draft.pick(keys), draft))
    return unfollowed(draft)


def _unacknowledged(base: Base, draft: Draft) -> Breaks:
    """The acknowledgement of a record is lost: a record that was not promised may be there."""
    chosen = draft.pick(base.rows["acks"])
    if draft.random.random() < 0.5:
        draft.drop("acks", lambda row: row is chosen)
    else:
        draft.change("acks", lambda row: row is chosen, outcome="info", offset=-1)
    return ()


def _promised_more(base: Base, draft: Draft) -> Breaks:
    """One more record was promised than was written, by a commit or by an acknowledgement."""
    keys = base.transactions("committed", visible=True)
    if keys and draft.random.random() < 0.5:
        draft.tell(draft.pick(keys), records=lambda row: row["records"] + 1)
        return {Anomaly.TORN_TRANSACTION}
    record = draft.pick(base.promised())
    draft.tell(record.key, records=lambda row: row["records"] + 1)
    (ack,) = [
        row
        for row in base.rows["acks"]
        if (row["process"], row["operation"], row["index"]) == (*record.key, record.index)
    ]
    draft.add(
        "acks", ack, index=base.operations[record.key]["records"], offset=base.ends[record.partition]["high_watermark"]
    )
    return {Anomaly.LOST_WRITE}


def _promised_less(base: Base, draft: Draft) -> Breaks:
    """An operation wrote one record more than the history says."""
    records = draft.pick([each for each in base.of.values() if base.operations[each[0].key]["records"] > 1])
    draft.tell(records[0].key, records=lambda row: row["records"] - 1)
    last = base.operations[records[0].key]["records"] - 1
    return {Anomaly.PHANTOM_RECORD} if any(each.index == last for each in records) else ()


def _written_twice(base: Base, draft: Draft) -> Breaks:
    """A retry without idempotence appended a visible record again, at the end of its partition."""
    record = draft.pick([each for each in base.records if each.visible])
    draft.append(record.partition, record.row, visible=True, **NO_PRODUCER)
    return {Anomaly.DUPLICATE}


def _written_twice_at_once(base: Base, draft: Draft) -> Breaks:
    """A record is duplicated right after itself, within its own transaction or batch, with the same number."""
    records = [each for each in base.records if each.partition[0] not in base.inputs]
    record = draft.pick(records)
    after = record.place[2] + 1
    draft.shift(record.partition, after)
    for frame in PLACED:
        for row in [row for row in base.rows[frame] if place_of(row) == record.place]:
            draft.add(frame, row, offset=after, **({"position": row["position"] + 0.5} if "position" in row else {}))
    renumber(draft)
    return {Anomaly.DUPLICATE} if record.visible else unfollowed(draft)


def renumber(draft: Draft) -> None:
    """Make positions within a poll whole numbers again."""
    turns: dict[tuple[Any, ...], int] = {}
    for row in sorted(draft.rows["observations"], key=lambda row: (row["poll"], row["position"])):
        poll = (row["observer_index"], row["poll"])
        turns[id(row), *poll] = turns.get(poll, 0)
        turns[poll] = turns.get(poll, 0) + 1
    draft.change(
        "observations", lambda _: True, position=lambda row: turns[id(row), row["observer_index"], row["poll"]]
    )


def _written_elsewhere(base: Base, draft: Draft) -> Breaks:
    """A visible record was written again, to a different partition than the one that it was sent to."""
    record = draft.pick([each for each in base.records if each.visible and each.partition[0] not in base.inputs])
    others = [each for each in base.partitions if each != record.partition and each[0] not in base.inputs]
    draft.append(draft.pick(others), record.row, visible=True, **NO_PRODUCER)
    return {Anomaly.DUPLICATE, Anomaly.PHANTOM_RECORD}


def _truncated(base: Base, draft: Draft) -> Breaks:
    """A partition lost its end, between two transactions; live observers had received it."""
    partition = draft.pick([each for each in base.partitions if each[0] not in base.inputs])
    cut = draft.pick(_between(base, partition))
    gone = [each for each in base.partitions[partition] if each.place[2] >= cut]
    lost = {each.place for each in gone}
    for frame in ("log", "committed", "uncommitted"):
        draft.drop(frame, lambda row: place_of(row)[:2] == partition and row["offset"] >= cut)
    draft.change(
        "ends",
        lambda row: (row["topic_index"], row["partition"]) == partition,
        high_watermark=cut,
        last_stable_offset=cut,
    )
    breaks = uncopied(gone)
    for each in gone:
        told = base.told(each)
        if told is None and (*each.key, each.index) in base.acked:
            breaks.add(Anomaly.LOST_WRITE)
        elif told == "committed" and each.visible:
            rest = any(other.place not in lost for other in base.of[each.key])
            breaks.add(Anomaly.TORN_TRANSACTION if rest else Anomaly.LOST_WRITE)
    read = any(place_of(row) in lost for row in base.rows["observations"])
    return breaks or ({Anomaly.INCONSISTENT_OFFSET} if read else ())


def _between(base: Base, partition: Partition) -> list[int]:
    """Offsets of a partition's records before which no transaction is open."""
    found, pending = [], set()
    for row in sorted((row for row in base.rows["log"] if place_of(row)[:2] == partition), key=place_of):
        if row["control"] is not None:
            pending.discard(row["producer_id"])
            continue
        if not pending:
            found.append(row["offset"])
        if row["transactional"]:
            pending.add(row["producer_id"])
    return found


def _foreign_value(base: Base, draft: Draft) -> Breaks:
    """A record holds a value that this suite did not write, or none at all; every reader receives that."""
    record = draft.pick(base.records)
    draft.contents(record.place, **FOREIGN)
    if draft.random.random() < 0.5:
        for frame in ("log", "committed", "uncommitted"):
            draft.change(frame, lambda row: place_of(row) == record.place, digest=0, identity_digest=0)
    draft.change("observations", lambda row: place_of(row) == record.place, identity_digest=None)
    return {Anomaly.PHANTOM_RECORD, *uncopied([record])}


def _foreign_record(base: Base, draft: Draft) -> Breaks:
    """Another program wrote a record, or a tombstone, to the end of a partition."""
    record = draft.pick(base.records)
    digest = draft.pick((0, 0xC0FFEE))
    foreign = {**FOREIGN, **NO_PRODUCER}
    made = draft.append(record.partition, record.row, visible=True, **foreign, digest=digest, identity_digest=digest)
    draft.change("observations", lambda row: place_of(row) == place_of(made), identity_digest=None)
    return {Anomaly.PHANTOM_RECORD}


def _of_another_run(base: Base, draft: Draft) -> Breaks:
    """A record carries the identity of another run."""
    record = draft.pick(base.records)
    draft.contents(record.place, identity_run="another")
    return {Anomaly.PHANTOM_RECORD, *uncopied([record])}


def _of_nobody(base: Base, draft: Draft) -> Breaks:
    """A record names an operation, a process or an index that no client sent."""
    record = draft.pick([each for each in base.records if each.row["source_offset"] == NO_SOURCE])
    size = max(base.operations[record.key]["records"], record.row["count"])
    changed = draft.pick(({"operation": 77_777}, {"process": 77}, {"index": size + draft.random.randint(0, 3)}))
    draft.contents(record.place, **changed)
    return {Anomaly.PHANTOM_RECORD}


def _forgotten_operation(base: Base, draft: Draft) -> Breaks:
    """The history has no line about an operation that wrote records."""
    gone = draft.pick([key for key in base.of if all(each.row["source_offset"] < 0 for each in base.of[key])])
    draft.drop("operations", lambda row: (row["process"], row["operation"]) == gone)
    return {Anomaly.PHANTOM_RECORD}


def _misrouted(base: Base, draft: Draft) -> Breaks:
    """A visible record is at the end of a different partition than the one that it was sent to."""
    record = draft.pick([each for each in base.records if each.visible and each.partition[0] not in base.inputs])
    others = [each for each in base.partitions if each != record.partition and each[0] not in base.inputs]
    draft.vanish([record.place])
    draft.append(draft.pick(others), record.row, visible=True, **NO_PRODUCER)
    return {Anomaly.PHANTOM_RECORD}


def _reordered(base: Base, draft: Draft) -> Breaks:
    """Two records of one process swapped places in their partition; harmless if aborted, or if no order is claimed."""
    groups: dict[tuple[Any, ...], list[CleanRecord]] = {}
    for each in base.records:
        # Records outside transactions may also swap places with those of another operation.
        own = each.key if base.told(each) is not None else each.key[0]
        groups.setdefault((own, each.visible, each.partition), []).append(each)
    first, second = draft.random.sample(draft.pick([each for each in groups.values() if len(each) > 1]), 2)
    content = {first.place: second, second.place: first}
    names = (*IDENTITY, "valid", "digest", "identity_digest")
    for frame in PLACED:
        kept = [name for name in names if frame != "observations" or name != "digest"]
        columns = {name: _of(content, name) for name in kept}
        draft.change(frame, lambda row: place_of(row) in content, **columns)
    offsets = {(*first.key, first.index): second.place[2], (*second.key, second.index): first.place[2]}
    draft.change(
        "acks",
        lambda row: (row["process"], row["operation"], row["index"]) in offsets and row["offset"] >= 0,
        offset=lambda row: offsets[row["process"], row["operation"], row["index"]],
    )
    return {Anomaly.REORDERED_WRITE} if first.visible and base.order_claimed else ()


def _of(content: dict[Any, CleanRecord], name: str) -> Any:
    return lambda row: content[place_of(row)].row[name]


MUTATORS = tuple(
    mutator(make)
    for make in (
        _lost_record,
        _lost_transaction,
        _torn_transaction,
        _gone_aborted,
        _unacknowledged,
        _promised_more,
        _promised_less,
        _written_twice,
        _written_twice_at_once,
        _written_elsewhere,
        _truncated,
        _foreign_value,
        _foreign_record,
        _of_another_run,
        _of_nobody,
        _forgotten_operation,
        _misrouted,
        _reordered,
    )
)
