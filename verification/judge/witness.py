"""Picks the minimal witness of a finding: the fewest records and operations that prove its first example.

A count is no proof. A witness names the places that contradict each other. It shows the log's record at each place, the
control record that decided it, and the readers that received it. It also shows the clients' operations with their
answers. It is taken from the places around the example (`finding_files.surroundings`) by one rule per question, so that
the same evidence gives the same witness:

* the place of the example itself, even if the log holds nothing there;
* other copies of the same record, or of the same input;
* of a torn transaction, one visible record and one that is not visible;
* where an order or a numbering is broken, the neighbour that contradicts it; for a wrong step, the step before it;
* where outputs do not count on, the output of the key before it;
* for every record in a transaction, the next control record of its producer in the partition;
* the operations of all these, and for a zombie the initialisation that superseded it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from verification.checks import states, transaction_log
from verification.evidence.run_evidence import RunEvidence
from verification.vocabulary.anomalies import DEFINITIONS, Anomaly
from verification.vocabulary.history import Action, Operation, Outcome
from verification.vocabulary.transaction_log import TOPIC_INDEX
from verification.vocabulary.verdict import Witness, WitnessOperation, WitnessPlace
from verification.vocabulary.violations import OperationKey, Place, RawViolation

Row = Mapping[str, Any]
#: A witness must fit on a screen.
PLACES_MAX = 8
#: Anomalies that an earlier record contradicts; anomalies that a later record contradicts.
_AFTER = frozenset({Anomaly.REORDERED_WRITE, Anomaly.ILLEGAL_TRANSITION})
_BEFORE = frozenset({Anomaly.POLL_SKIP, Anomaly.NONMONOTONIC_POLL})
NOTHING: Row = {}


def place_of(row: Row) -> Place:
    """The place of a row."""
    return (row["topic_index"], row["partition"], row["offset"])


def _same_operation(violation: RawViolation, rows: Iterable[Row]) -> Iterator[Row]:
    mine = [row for row in rows if violation.operation_key == (row.get("process"), row.get("operation"))]
    if violation.index is not None:
        yield from [row for row in mine if row.get("index") == violation.index][:2]
    elif violation.anomaly is Anomaly.TORN_TRANSACTION:
        for visible in (True, False):
            yield from [row for row in mine if bool(row.get("committed")) is visible][:1]
    else:
        yield from mine[:1]


def _same_input(violation: RawViolation, rows: Iterable[Row]) -> Iterator[Row]:
    """The other copies of an input that was copied twice into one topic."""
    every = list(rows)
    own = next((row for row in every if place_of(row) == violation.place), NOTHING)
    source = own.get("source_offset")
    if violation.anomaly is Anomaly.DUPLICATE and source is not None and source >= 0:
        names = ("topic_index", "source_partition", "source_offset")
        yield from [row for row in every if all(row.get(name) == own.get(name) for name in names)][:2]


def _neighbour(violation: RawViolation, rows: Iterable[Row]) -> Iterator[Row]:
    place = violation.place
    if violation.anomaly not in _AFTER | _BEFORE | {Anomaly.BROKEN_SEQUENCE} or place is None:
        return
    data = [row for row in rows if place_of(row)[:2] == place[:2] and row.get("control") is None]
    if violation.anomaly in _AFTER:
        before = [row for row in data if place_of(row) < place and row.get("process") == violation.process]
        yield from sorted(before, key=lambda row: int(row.get("send_order") or 0))[-1:]
    elif violation.anomaly is Anomaly.BROKEN_SEQUENCE:
        producers = {row.get("producer_id") for row in data if place_of(row) == place}
        yield from [row for row in data if place_of(row) < place and row.get("producer_id") in producers][-1:]
    else:
        yield from [row for row in data if place_of(row) > place][:1]


def _decider(row: Row, rows: Iterable[Row]) -> Iterator[Row]:
    if not row.get("transactional") or row.get("control") is not None:
        return
    own = (*place_of(row)[:2], row.get("producer_id"))
    later = (
        each
        for each in rows
        if each.get("control") is not None
        and (*place_of(each)[:2], each.get("producer_id")) == own
        and place_of(each) > place_of(row)
    )
    yield from list(later)[:1]


def chosen(violation: RawViolation, rows: Iterable[Row], also: Iterable[Row] = ()) -> list[Row]:
    """The rows that belong to a violation's witness, and those of `also`, in order of place."""
    every = sorted(rows, key=place_of)
    picked: dict[Place, Row] = {}
    if violation.place is not None:
        topic_index, partition, offset = violation.place
        empty = {"topic_index": topic_index, "partition": partition, "offset": offset}
        picked[violation.place] = next((row for row in every if place_of(row) == violation.place), empty)
    by_rule = (_same_operation(violation, every), _same_input(violation, every), _neighbour(violation, every))
    for row in chain(*by_rule, also):
        picked.setdefault(place_of(row), row)
    for row in list(picked.values()):
        for each in _decider(row, every):
            picked.setdefault(place_of(each), each)
    return [row for _, row in sorted(picked.items())][:PLACES_MAX]


def _given_to(evidence: RunEvidence, row: Row) -> tuple[str, ...]:
    captures = tuple(f"{name} capture" for name in ("committed", "uncommitted") if row.get(name))
    mask = int(row.get("received") or 0)
    live = (each.name for number, each in enumerate(evidence.experiment.observers) if mask >> number & 1)
    return (*captures, *live)


def _place(evidence: RunEvidence, row: Row) -> WitnessPlace:
    holds = "nothing"
    if row.get("in_log") or (not evidence.experiment.has_log and row.get("committed")):
        control = row.get("control")
        holds = "record" if control is None else f"{control} marker"
    return WitnessPlace(
        topic=evidence.topic(row["topic_index"]) or "",
        partition=row["partition"],
        offset=row["offset"],
        holds=holds,
        outcome=row.get("outcome"),
        process=row.get("process"),
        operation=row.get("operation"),
        index=row.get("index"),
        producer_id=row.get("producer_id"),
        producer_epoch=row.get("producer_epoch"),
        given_to=_given_to(evidence, row),
    )


def _successor(evidence: RunEvidence, violation: RawViolation) -> OperationKey | None:
    """The initialisation that had superseded the producer of a zombie's record, if the times show one."""
    every = evidence.history.of(Operation)
    own = next((each for each in every if (each.process, each.operation) == violation.operation_key), None)
    if violation.anomaly is not Anomaly.ZOMBIE_WRITE or own is None or own.decided_ns is None:
        return None
    inits = [
        (each.completed_ns, (each.process, each.operation))
        for each in every
        if each.action is Action.INIT
        and each.outcome is Outcome.OK
        and each.transactional_id == own.transactional_id
        and each.process != own.process
        and each.completed_ns is not None
        and each.completed_ns < own.decided_ns
    ]
    return max(inits)[1] if inits else None


def _operations(evidence: RunEvidence, keys: Iterable[OperationKey]) -> Iterator[WitnessOperation]:
    wanted = set(keys)
    for each in evidence.history.of(Operation):
        if (each.process, each.operation) in wanted:
            bound = each.transactional_id is not None and each.action is not Action.INIT
            yield WitnessOperation(
                process=each.process,
                operation=each.operation,
                action=str(each.action),
                outcome=str(each.outcome),
                told=str(each.told) if bound else None,
                transactional_id=each.transactional_id,
                records=each.records,
                invoked_ns=each.invoked_ns,
                decided_ns=each.decided_ns,
                completed_ns=each.completed_ns,
                error_name=each.error_name,
            )


def _counted_before(evidence: RunEvidence, violation: RawViolation, rows: Iterable[Row]) -> Iterator[Row]:
    """The output of the key before one that does not count on: it may be far from the place of the violation."""
    counted = violation.anomaly is Anomaly.STATE_DIVERGENCE and states.before(evidence.counts, violation.place)
    if counted:
        near = next((row for row in rows if place_of(row) == place_of(counted)), NOTHING)
        # It was received by the reader of the committed capture, whose rows far away were not looked up.
        yield {**counted, "in_log": True, "outcome": "commit", "committed": 1, **near}


def witness(evidence: RunEvidence, violation: RawViolation, rows: Iterable[Row]) -> Witness:
    """The witness of a violation, from the places around it."""
    if violation.topic_index == TOPIC_INDEX:
        # No reader receives the transaction log, so it has no places. The witness shows the records of its own file.
        rows = [{**row, "in_log": True} for row in transaction_log.surroundings(evidence, [violation])]
    places = chosen(violation, rows, _counted_before(evidence, violation, rows))
    keys = {(row.get("process"), row.get("operation")) for row in places}
    keys |= {violation.operation_key or (None, None), _successor(evidence, violation) or (None, None)}
    known = [(process, operation) for process, operation in keys if process is not None and operation is not None]
    return Witness(
        why=DEFINITIONS[violation.anomaly].why_illegal,
        places=tuple(_place(evidence, row) for row in places),
        operations=tuple(_operations(evidence, known)),
    )
