"""broken-sequence: walks each producer's part of a partition as its leader would have appended it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from verification.evidence.row_types import Row
from verification.reference.run_index import RunIndex, violation
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.violations import RawViolation

_TURN = 1 << 31


@dataclass(slots=True)
class _Known:
    """A leader's knowledge of a producer: its epoch, and the last number in that epoch (None before the first).

    `unsure` says that earlier records of this epoch may have been deleted before the log's first one.
    """

    epoch: int
    last: int | None
    unsure: bool


def _next(known: _Known | None, epoch: int) -> int | None:
    """The number that must come next; None where any number may."""
    if known is None or epoch < known.epoch:
        return None
    if epoch > known.epoch:
        return 0
    if known.last is None:
        return None if known.unsure else 0
    return (known.last + 1) % _TURN if known.last >= 0 else None


def _after(known: _Known | None, row: Row, whole: bool) -> _Known | None:
    """The leader's knowledge after a row."""
    epoch, control = row["producer_epoch"], row.get("control")
    if known is not None and epoch < known.epoch:
        return known
    number = -1 if row["sequence"] is None else int(row["sequence"])
    if control is None:
        return _Known(epoch=epoch, last=number, unsure=False)
    if known is None:
        return _Known(epoch=epoch, last=None, unsure=not whole)
    return known if epoch == known.epoch else _Known(epoch=epoch, last=None, unsure=False)


def broken(index: RunIndex) -> Iterator[RawViolation]:
    """broken-sequence."""
    if index.run.get("forgetful"):
        return
    known: dict[tuple[int, int, int], _Known | None] = defaultdict(lambda: None)
    for place, spot in sorted(index.spots.items()):
        row = spot.row
        if row is None or row["producer_id"] < 0 or row.get("control") not in (None, "commit", "abort"):
            continue
        producer = (*place[:2], row["producer_id"])
        end = index.ends.get(place[:2])
        due = _next(known[producer], row["producer_epoch"]) if row.get("control") is None else None
        if due is not None and row["sequence"] is not None and 0 <= row["sequence"] != due:
            yield violation(Anomaly.BROKEN_SEQUENCE, row, place)
        known[producer] = _after(known[producer], row, end is not None and end["start"] == 0)
