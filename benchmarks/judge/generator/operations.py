"""Turns a block's rows into the operations of its clients, as a history has them.

Every client has a clock of its own that advances by a fifth of a second per operation. Times are only compared within
one transactional id. By this clock, 10^8 records take three hours. In a run of a day or more, producers' numbers would
not be judged, because brokers may have forgotten them (`verification.evidence.rows.FORGOTTEN_NS`).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.judge.generator.block import DATA, Rows, taken
from benchmarks.judge.generator.plan import APPENDERS, COPIERS, FEEDERS, LEAVER, RIVAL, WRITERS, Fate
from verification.vocabulary.history import Action, Intent, Operation, Outcome

#: Nanoseconds from an operation's number to the next one; clients use every other number.
TURN_NS = 100_000_000
_MILLISECOND_NS = 1_000_000
#: Milliseconds after an operation was invoked: a rival owns its id; it decides; its answer arrives; its client owns the
#: id again.
_OWNED, _DECIDED, _TOLD, _REGAINED = 40, 50, 60, 70


def transactional_id(process: int) -> str:
    """The transactional id of a client."""
    return f"t-{process}"


def _init(process: int, operation: int, of: int, at_ns: int) -> Operation:
    return Operation(
        process=process,
        operation=operation,
        action=Action.INIT,
        outcome=Outcome.OK,
        stage="done",
        invoked_ns=at_ns - _MILLISECOND_NS,
        completed_ns=at_ns,
        transactional_id=transactional_id(of),
    )


def initialised() -> Iterator[Operation]:
    """Every client takes its transactional id at the beginning."""
    for process in (*WRITERS, *FEEDERS, *COPIERS, LEAVER):
        yield _init(process, 0, process, _MILLISECOND_NS)


def operations(rows: Rows, superseded: frozenset[tuple[int, int]]) -> Iterator[Operation]:
    """The operations of a block; a rival takes and loses the id of each (slot, process) that is `superseded`."""
    data = taken(rows, (rows["control"] == DATA) & (rows["genuine"] == 1) & (rows["again"] == 0))
    _, first = np.unique(data["operation"] * 64 + data["process"], return_index=True)
    names = ("slot", "process", "operation", "count", "fate")
    for slot, process, number, count, fate in zip(*(data[name][first].tolist() for name in names), strict=True):
        began_ns = number * TURN_NS
        yield _operation(process, number, count, Fate(fate))
        if (slot, process) in superseded:
            yield _init(RIVAL + process, number, process, began_ns + _OWNED * _MILLISECOND_NS)
            yield _init(process, number + 1, process, began_ns + _REGAINED * _MILLISECOND_NS)


def _operation(process: int, number: int, count: int, fate: Fate) -> Operation:
    began_ns = number * TURN_NS
    plain = process in APPENDERS
    known = fate in (Fate.COMMITTED, Fate.ABORTED)
    return Operation(
        process=process,
        operation=number,
        action=Action.APPEND if plain else Action.COPY if process in COPIERS else Action.TRANSACTION,
        outcome=Outcome.OK if known else Outcome.INFO,
        stage="done" if known else "commit",
        invoked_ns=began_ns,
        decided_ns=None if plain else began_ns + _DECIDED * _MILLISECOND_NS,
        completed_ns=began_ns + _TOLD * _MILLISECOND_NS if known else None,
        intent=None if plain else Intent.ABORT if fate is Fate.ABORTED else Intent.COMMIT,
        transactional_id=None if plain else transactional_id(process),
        records=count,
    )
