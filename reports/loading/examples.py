"""Describe a violation: its record, transaction, place, producer, the answer to the client, and the fault meanwhile.

A violation has an identity (process, operation, index) and a place (topic, partition, offset). The history adds the
answer to the client, the producer id and epoch, and the fault windows that the operation overlapped. Nothing else is
inferred: "during step 0" says when, not why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from reports.loading.availability import fault_windows_of
from reports.loading.broker_log import BrokerLogQuery
from reports.loading.timeline_builder import NS_PER_S, origin_ns
from reports.model.clock import instant, later
from reports.model.findings import Example, OperationRow, PlaceRow, WitnessRows
from reports.model.wording import in_plain_words
from verification.vocabulary import verdict as verdicts
from verification.vocabulary.history import FaultRecord, History, Operation, Told
from verification.vocabulary.verdict import Violation

#: Offsets named per partition.
OFFSETS_MAX = 5
#: The end of the reader names of final captures.
_CAPTURE = " capture"

Operations = Mapping[tuple[int, int], Operation]


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The history, indexed; empty when there is no history.

    `run` is the prefix of the run's topics, which are shown without it. `anchor` is the wall clock at `anchor_ns`, None
    where the history has none.
    """

    operations: Operations
    faults: tuple[FaultRecord, ...]
    run: str = ""
    origin_ns: int = 0
    anchor: datetime | None = None
    anchor_ns: int = 0

    def wall_clock(self, at_ns: int) -> datetime | None:
        """A time of the history as date and time; None without an anchor or outside the calendar."""
        return None if self.anchor is None else later(self.anchor, at_ns - self.anchor_ns)


def context(history: History | None) -> Context:
    """Index a history by (process, operation)."""
    if history is None:
        return Context(operations={}, faults=())
    operations = {(each.process, each.operation): each for each in history.of(Operation)}
    return Context(
        operations=operations,
        faults=history.of(FaultRecord),
        run=history.run,
        origin_ns=origin_ns(history),
        anchor=instant(history.wall_clock_anchor),
        anchor_ns=history.anchor_ns,
    )


def witness(violation: Violation, known: Context, entries: Iterable[Mapping[str, Any]] = ()) -> Example:
    """The violation with facts of the history; one of a whole transaction has the places of `entries` that prove it."""
    operation = _of(violation, known)
    return Example(
        record=_record(violation),
        transaction=_transaction(operation),
        place=_place(violation, known) or _places(violation, known, entries),
        producer=_producer(operation),
        told=_told(operation),
        observer=violation.observer or "",
        when="" if operation is None else _when(operation, known.faults),
        fault="" if operation is None else _under(operation, known.faults),
        detail=in_plain_words(violation.detail),
        at_s=None if operation is None else _at_s(operation.invoked_ns, known),
        circumstances=violation.circumstances,
    )


def minimal(shown: verdicts.Witness | None, known: Context) -> WitnessRows | None:
    """The witness of a finding for display, with times from the start of the scenario."""
    if shown is None:
        return None
    places = tuple(
        PlaceRow(
            place=_place(each, known),
            holds=f"{each.holds} (outcome: {each.outcome})" if each.outcome else each.holds,
            writer=_record(each),
            producer=_producer(each),
            given_to=", ".join(map(_reader, each.given_to)) or ("no reader" if each.holds == "record" else ""),
        )
        for each in shown.places
    )
    return WitnessRows(places=places, operations=tuple(_operation(each, known) for each in shown.operations))


def broker_log_query(violation: Violation, shown: verdicts.Witness | None, known: Context) -> BrokerLogQuery | None:
    """The search in broker logs for a violation; None where its operation or the wall clock is unknown.

    `shown` is the witness of this violation, None where the witness is of another one.
    """
    operation = _of(violation, known)
    if operation is None:
        return None
    began, origin = known.wall_clock(operation.invoked_ns), known.wall_clock(known.origin_ns)
    if began is None or origin is None:
        return None
    places = [(violation.topic, violation.partition)]
    places += [(each.topic, each.partition) for each in shown.places] if shown else []
    named = (f"{topic}-{partition}" for topic, partition in places if None not in (topic, partition))
    return BrokerLogQuery(
        transaction=operation.transactional_id or "",
        partitions=tuple(dict.fromkeys(named)),
        began=began,
        ended=None if operation.completed_ns is None else known.wall_clock(operation.completed_ns),
        origin=origin,
    )


def _of(violation: Violation, known: Context) -> Operation | None:
    """The operation of a violation; None where the history has none."""
    if violation.process is None or violation.operation is None:
        return None
    return known.operations.get((violation.process, violation.operation))


def _operation(each: verdicts.WitnessOperation, known: Context) -> OperationRow:
    count = f", {each.records} records" if each.records else ""
    told = f"{each.told} ({each.outcome})" if each.told else each.outcome
    return OperationRow(
        operation=f"process {each.process}, operation {each.operation}",
        action=each.action,
        transaction=f"{each.transactional_id}{count}" if each.transactional_id else "",
        told=f"{told} {each.error_name}" if each.error_name else told,
        invoked_s=_at_s(each.invoked_ns, known),
        decided_s=_at_s(each.decided_ns, known),
        completed_s=_at_s(each.completed_ns, known),
    )


def _at_s(at_ns: int | None, known: Context) -> float | None:
    """Seconds from the start of the scenario; None without a history."""
    return None if at_ns is None or not known.operations else round((at_ns - known.origin_ns) / NS_PER_S, 3)


def _record(of: Violation | verdicts.WitnessPlace) -> str:
    parts = (("process", of.process), ("operation", of.operation), ("record", of.index))
    return ", ".join(f"{name} {value}" for name, value in parts if value is not None)


def _reader(name: str) -> str:
    """The name of a reader: final captures by their isolation level, live observers by their name."""
    return f"read_{name}" if name.endswith(_CAPTURE) else f"live {name}"


def _place(of: Violation | verdicts.WitnessPlace, known: Context) -> str:
    if of.topic is None:
        return ""
    topic = of.topic.removeprefix(f"{known.run}-") if known.run else of.topic
    partition = "" if of.partition is None else f"-{of.partition}"
    offset = "" if of.offset is None else f"@{of.offset}"
    return f"{topic}{partition}{offset}"


def _places(of: Violation, known: Context, entries: Iterable[Mapping[str, Any]]) -> str:
    """The records of an operation that differ from the answer to its client: `orders-0@3, 5; orders-1@8`."""
    key = (of.process, of.operation)
    own = [each for each in entries if (each.get("process"), each.get("operation")) == key and "control" not in each]
    seen = [each for each in own if each.get("committed", 0) > 0]
    unseen = [each for each in own if each not in seen]
    told = own[0].get("told") if own else None
    wrong = unseen if told == Told.COMMITTED else seen if told == Told.ABORTED else min(seen, unseen, key=len)
    offsets: dict[str, list[str]] = {}
    for each in wrong:
        topic = str(each.get("topic", "?")).removeprefix(f"{known.run}-")
        offsets.setdefault(f"{topic}-{each.get('partition', '?')}", []).append(str(each.get("offset", "?")))
    return "; ".join(f"{partition}@{_cut(at)}" for partition, at in offsets.items())


def _cut(offsets: list[str]) -> str:
    rest = len(offsets) - OFFSETS_MAX
    return ", ".join(offsets[:OFFSETS_MAX]) + (f" and {rest} more" if rest > 0 else "")


def _transaction(operation: Operation | None) -> str:
    if operation is None or operation.transactional_id is None:
        return ""
    intent = "" if operation.intent is None else f", meant to {operation.intent}"
    return f"{operation.transactional_id}{intent}, {operation.records} records"


def _producer(of: Operation | verdicts.WitnessPlace | None) -> str:
    if of is None or of.producer_id in (None, -1):  # a record of a producer without idempotence has -1
        return ""
    epoch = "" if of.producer_epoch is None else f", epoch {of.producer_epoch}"
    return f"id {of.producer_id}{epoch}"


def _told(operation: Operation | None) -> str:
    if operation is None:
        return ""
    told = f"{operation.outcome}" if operation.intent is None else f"{operation.told} ({operation.outcome})"
    return f"{told} {operation.error_name}" if operation.error_name else told


def _under(operation: Operation, faults: tuple[FaultRecord, ...]) -> str:
    """The faults whose window the operation overlapped, in words; else the time since the last heal."""
    if during := fault_windows_of(operation, faults):
        return "during " + "; ".join(f"step {each.step}: {each.description or each.fault}" for each in during)
    return _when(operation, faults)


def _when(operation: Operation, faults: tuple[FaultRecord, ...]) -> str:
    """The same with step numbers only, for a table above the list of faults."""
    if during := fault_windows_of(operation, faults):
        return "during " + ", ".join(f"step {each.step}" for each in during)
    healed = [each for each in faults if each.healed_ns is not None and each.healed_ns < operation.invoked_ns]
    if healed:
        last = max(healed, key=lambda each: each.healed_ns or 0)
        after_s = (operation.invoked_ns - (last.healed_ns or 0)) / NS_PER_S
        return f"{after_s:.1f} s after step {last.step} was healed"
    return "before any fault" if faults else "no fault in this scenario"
