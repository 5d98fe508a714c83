"""What planted histories have in common: a busy, honest run, and how an expected violation is written down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.planted.histories import Plant, Planted
from verification.evidence.row_types import Row
from verification.vocabulary.history import Intent, Operation

#: (anomaly, process, operation, index, topic index, partition, offset, observer)
Found = tuple[str, Any, Any, Any, Any, Any, Any, Any]


Case = Callable[[str], tuple[Plant, set[Found]]]


A0, A1, B0, B1 = (0, 0), (0, 1), (1, 0), (1, 1)


ALL = (A0, A1, B0, B1)


def found(anomaly: str, row: Row | None, *, observer: str | None = None, place: bool = True, **over: Any) -> Found:
    """A violation about a record, at its place unless said otherwise."""
    names = ("process", "operation", "index", "topic_index", "partition", "offset")
    values = {name: None if row is None else row.get(name) for name in names}
    if not place:
        values |= {"topic_index": None, "partition": None, "offset": None}
    values |= over
    process, operation, index, topic_index, partition, offset = (values[name] for name in names)
    return (anomaly, process, operation, index, topic_index, partition, offset, observer)


def torn(operation: Operation) -> Found:
    """A torn transaction."""
    return ("torn-transaction", operation.process, operation.operation, None, None, None, None, None)


def busy(run: str, **options: Any) -> Planted:
    """A run in which much happens and nothing is wrong."""
    planted = Planted(run=run, **options)
    first, second = planted.client("tx-0"), planted.client("tx-1")
    idempotent = planted.client()
    for client in (first, second, first):
        planted.transaction(client, (*ALL, A0))
        planted.transaction(client, (A0, B1), intent=Intent.ABORT, decision="abort")
    planted.plain(idempotent, (A0, A0, B0))
    return planted
