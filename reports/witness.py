"""A violation, told so that a person can find it: which record, which transaction, where, by whom, under which fault.

A violation carries an identity (process, operation, index) and a place (topic, partition, offset). The history knows
the rest: what that operation was told, by which producer id and epoch it wrote, and which fault window it overlapped.
Nothing is inferred beyond that overlap; "under a fault" says when, not why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reports.finding import Witness
from reports.timeline import NS_PER_S, origin_ns
from verification.history import FaultRecord, History, Operation
from verification.verdict import Violation

Operations = Mapping[tuple[int, int], Operation]


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What the history says, ready to be asked; empty when there is no history."""

    operations: Operations
    faults: tuple[FaultRecord, ...]
    origin_ns: int = 0


def context(history: History | None) -> Context:
    """Index a history by (process, operation)."""
    if history is None:
        return Context(operations={}, faults=())
    operations = {(each.process, each.operation): each for each in history.of(Operation)}
    return Context(operations=operations, faults=history.of(FaultRecord), origin_ns=origin_ns(history))


def witness(violation: Violation, known: Context) -> Witness:
    """The violation with what the history adds."""
    operation = None
    if violation.process is not None and violation.operation is not None:
        operation = known.operations.get((violation.process, violation.operation))
    return Witness(
        record=_record(violation),
        transaction=_transaction(operation),
        place=_place(violation),
        producer=_producer(operation),
        told=_told(operation),
        observer=violation.observer or "",
        fault="" if operation is None else _under(operation, known.faults),
        detail=violation.detail,
        at_s=None if operation is None else round((operation.invoked_ns - known.origin_ns) / NS_PER_S, 3),
    )


def _record(violation: Violation) -> str:
    parts = (("process", violation.process), ("operation", violation.operation), ("record", violation.index))
    return ", ".join(f"{name} {value}" for name, value in parts if value is not None)


def _place(violation: Violation) -> str:
    if violation.topic is None:
        return ""
    partition = "" if violation.partition is None else f"-{violation.partition}"
    offset = "" if violation.offset is None else f"@{violation.offset}"
    return f"{violation.topic}{partition}{offset}"


def _transaction(operation: Operation | None) -> str:
    if operation is None or operation.transactional_id is None:
        return ""
    intent = "" if operation.intent is None else f", meant to {operation.intent}"
    return f"{operation.transactional_id}{intent}, {operation.records} records"


def _producer(operation: Operation | None) -> str:
    if operation is None or operation.producer_id is None:
        return ""
    epoch = "" if operation.producer_epoch is None else f", epoch {operation.producer_epoch}"
    return f"id {operation.producer_id}{epoch}"


def _told(operation: Operation | None) -> str:
    if operation is None:
        return ""
    told = f"{operation.outcome}" if operation.intent is None else f"{operation.told} ({operation.outcome})"
    return f"{told} {operation.error_name}" if operation.error_name else told


def _under(operation: Operation, faults: tuple[FaultRecord, ...]) -> str:
    """The faults whose window the operation overlapped, else how long before or after the nearest it ran."""
    end = operation.completed_ns
    during = [
        each
        for each in faults
        if (end is None or each.began_ns <= end) and (each.healed_ns is None or each.healed_ns >= operation.invoked_ns)
    ]
    if during:
        return "during " + "; ".join(f"step {each.step}: {each.description or each.fault}" for each in during)
    healed = [each for each in faults if each.healed_ns is not None and each.healed_ns < operation.invoked_ns]
    if healed:
        last = max(healed, key=lambda each: each.healed_ns or 0)
        after_s = (operation.invoked_ns - (last.healed_ns or 0)) / NS_PER_S
        return f"{after_s:.1f} s after step {last.step} was healed"
    return "before any fault" if faults else "no fault in this scenario"
