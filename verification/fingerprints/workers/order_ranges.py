"""Finds the stretches of a batch: the range of each writer in each partition, and whether send orders rise with offsets.

This is the worker's side of `sequence`, which explains why stretches prove order.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from verification.fingerprints.workers.columns import NULL, Flags, NumpyColumns
from verification.fingerprints.workers.groups import Groups
from verification.fingerprints.workers.hashing import Numbers

_WRITER = ("run", "topic_index", "partition", "process")


def _ordered(rows: NumpyColumns, claimed: Iterable[str]) -> Flags:
    """Records in their intended partition, of runs that claim order (`claimed`) or with a producer's number."""
    runs = set(claimed)
    claims = np.array([value in runs for value in rows.values("run")], dtype=bool)[rows["run"]]
    numbered = (rows["producer_id"] >= 0) & (rows["sequence"] >= 0)
    there = (rows["topic_index"] == rows["intended_topic_index"]) & (rows["partition"] == rows["intended_partition"])
    found: Flags = (rows["control"] == NULL) & rows.sure & there & (claims | numbered)
    return found


def stretches_of(rows: NumpyColumns, claimed: Iterable[str]) -> dict[str, Numbers] | None:
    """The stretches of a batch, in the columns of `aggregate.STRETCHES`; None if no record's order matters."""
    kept = np.flatnonzero(_ordered(rows, claimed))
    if not len(kept):
        return None
    # Rows in another order are first sorted by offset, because rising is checked from row to row.
    offset = rows["offset"][kept]
    keys = [rows[name][kept] for name in _WRITER]
    order = rows["send_order"][kept]
    groups = Groups(keys)
    rising = _rising(groups, offset, order)
    if not rising.all():
        turn = np.lexsort((offset, *keys))
        keys, offset, order = [key[turn] for key in keys], offset[turn], order[turn]
        groups = Groups(keys)
        rising = _rising(groups, offset, order)
    return dict(zip(_WRITER, groups.keys, strict=True)) | {
        "first": groups.reduce(np.minimum, offset),
        "last": groups.reduce(np.maximum, offset),
        "order_min": groups.reduce(np.minimum, order),
        "order_max": groups.reduce(np.maximum, order),
        "rising": rising.astype(np.int64),
    }


def _rising(groups: Groups, offset: Numbers, order: Numbers) -> Flags:
    """For each group, whether offsets and send orders rise from row to row."""
    within = np.ones(len(offset), dtype=bool)
    within[1:] = (offset[1:] > offset[:-1]) & (order[1:] > order[:-1])
    # The first row of a run of rows does not follow a row of its own. It follows the last row of the run before.
    within[groups.heads] = True
    rises = groups.runs(np.logical_and, within)
    for values in (offset, order):
        low, high = groups.runs(np.minimum, values), groups.runs(np.maximum, values)
        rises[1:] &= low[1:] > high[:-1]
    # The first run of a group was compared with the last one of another group.
    alone = groups.runs(np.logical_and, within)[groups.starts]
    rises[groups.starts] = alone
    found: Flags = np.logical_and.reduceat(rises, groups.starts)
    return found
