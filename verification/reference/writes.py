"""Wrong writes: promised records that are lost, partial, duplicated or out of order, and records that no client wrote."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from verification.evidence.row_types import Row
from verification.reference.run_index import RecordKey, RunIndex, record_key, violation
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.violations import OperationKey, Place, RawViolation


@dataclass(slots=True)
class Transaction:
    """The records of one transaction: which are promised, and which are found with which outcome."""

    size: int
    visible: set[int] = field(default_factory=set)
    waiting: set[int] = field(default_factory=set)
    any_open: bool = False


def transaction(index: RunIndex, key: OperationKey, operation: Row) -> Transaction:
    """The state of one transaction's records."""
    mine = index.by_operation[key]
    size = operation["records"] or max((row["count"] for _, _, row in mine), default=0)
    found = Transaction(size=size)
    for place, spot, row in mine:
        if spot.outcome == "commit" and spot.committed:
            found.visible.add(row["index"])
        if spot.outcome in ("commit", "open") and index.above_lso(place):
            found.waiting.add(row["index"])
        found.any_open |= spot.outcome == "open"
    return found


def lost(index: RunIndex) -> Iterator[RawViolation]:
    """lost-write."""
    promised: set[RecordKey] = set()
    for key, operation in index.operations.items():
        if operation["told"] == "committed":
            found = transaction(index, key, operation)
            if not (found.visible or found.any_open):
                promised |= {(*key, number) for number in range(operation["records"])}
    for ack in index.rows["acks"]:
        operation_of = index.operation(ack)
        if ack["outcome"] == "ok" and operation_of is not None and operation_of["plain"]:
            promised.add(record_key(ack))
    present = {record_key(row) for _, spot, row in index.records() if spot.outcome == "commit"}
    for process, operation_number, number in promised - present:
        record = {"process": process, "operation": operation_number, "index": number}
        yield violation(Anomaly.LOST_WRITE, record, index.acked.get((process, operation_number, number)))


def torn(index: RunIndex) -> Iterator[RawViolation]:
    """torn-transaction."""
    for key, operation in index.operations.items():
        if operation["told"] not in ("committed", "unknown"):
            continue
        found = transaction(index, key, operation)
        if not 0 < len(found.visible) < found.size:
            continue
        expected = set(range(operation["records"])) | {row["index"] for _, _, row in index.by_operation[key]}
        expected |= {row["index"] for row in index.rows["acks"] if (row["process"], row["operation"]) == key}
        places = [index.acked.get((*key, number)) for number in expected - found.visible]
        yield RawViolation(
            anomaly=Anomaly.TORN_TRANSACTION,
            process=key[0],
            operation=key[1],
            cause="lso" if len(found.visible | found.waiting) == found.size else None,
            places=tuple(sorted("" if place is None else ":".join(map(str, place)) for place in places)),
            harm=int(operation["told"] == "committed"),
        )


def hidden(index: RunIndex) -> Iterator[RawViolation]:
    """hidden-committed."""
    for place, spot, row in index.records():
        if spot.row is None or spot.outcome != "commit" or spot.committed:
            continue
        operation = index.operation(row)
        if operation is not None and operation["told"] is not None:
            key = (row["process"], row["operation"])
            if transaction(index, key, operation).visible:
                continue
        cause = "lso" if index.above_lso(place) else None
        yield violation(Anomaly.HIDDEN_COMMITTED, row, place, cause=cause, harm=index.unread(spot, row))


def duplicate(index: RunIndex) -> Iterator[RawViolation]:
    """duplicate, of written records and of copies."""
    groups: dict[tuple[Any, ...], list[tuple[Place, Row]]] = defaultdict(list)
    for place, spot, row in index.records():
        if spot.outcome != "commit":
            continue
        if row["source_offset"] == -1 and index.operation(row) is not None:
            groups["written", *record_key(row)].append((place, row))
        elif row["source_offset"] != -1 and index.run["fan_out"] is not None:
            source = (row["source_partition"], row["source_offset"], row["intended_topic_index"])
            groups["copied", *source].append((place, row))
    for (kind, *_), copies in groups.items():
        allowed = kind == "copied" and index.run["at_least_once"]
        for place, row in sorted(copies, key=lambda copy: copy[0])[1 : None if allowed else 2]:
            yield violation(Anomaly.DUPLICATE, row, place, cause="allowed" if allowed else None)


def reordered(index: RunIndex) -> Iterator[RawViolation]:
    """reordered-write."""
    if not (index.has_log and index.run["order_claimed"]):
        return
    highest: dict[tuple[Any, ...], int] = {}
    seen: set[tuple[Any, ...]] = set()
    for place, spot in sorted(index.spots.items()):
        row = index.genuine(spot)
        if spot.row is None or row is None or spot.outcome != "commit":
            continue
        if place[:2] != (row["intended_topic_index"], row["intended_partition"]):
            continue
        writer = (*place[:2], row["process"])
        copy = (*writer, row["send_order"])
        if copy not in seen and row["send_order"] < highest.get(writer, -1):
            yield violation(Anomaly.REORDERED_WRITE, row, place)
        seen.add(copy)
        highest[writer] = max(row["send_order"], highest.get(writer, -1))


def phantom(index: RunIndex) -> Iterator[RawViolation]:
    """phantom-record."""
    for place, spot in index.spots.items():
        row = spot.row
        if row is None or row.get("control") is not None:
            continue
        operation = index.operation(row) if row["valid"] else None
        wrong = not row["valid"] or row["identity_run"] != index.name or operation is None
        if not wrong and operation is not None:
            size = operation["records"] or row["count"]
            intended = (row["intended_topic_index"], row["intended_partition"])
            wrong = row["index"] >= size or intended != place[:2]
        if wrong:
            yield violation(Anomaly.PHANTOM_RECORD, row, place, harm=index.given(spot))
