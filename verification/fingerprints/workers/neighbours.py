"""Finds the neighbours of each fragment in its producer's part of a partition: the worker's side of `fragment_chains`.

A task receives all partial fragments of some producers. It merges the parts of each fragment, sorts fragments by
producer and offset, and looks up and down from each. It returns one pack of steps (columns as in `fragment_chains`),
packs of their counts per operation (`suspects`), and packs of copies (`blocks`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from verification.checks.numbering import NUMBER_MAX
from verification.fingerprints.workers import blocks, suspects
from verification.fingerprints.workers.aggregate import lowest, texts_of
from verification.fingerprints.workers.columns import NULL, Flags, NumpyColumns, record_batch
from verification.fingerprints.workers.fragments import FRAGMENT_KEYS, FRAGMENTS
from verification.fingerprints.workers.groups import Groups
from verification.fingerprints.workers.hashing import Numbers
from verification.fingerprints.workers.packed import KINDS, PackKind, pack, packed_rows, packs_of_kind, unpack
from verification.fingerprints.workers.producer_layout import COMMIT, OPEN, Producers, decided, outcomes

_PRODUCER = ("run", "topic_index", "partition", "producer_id")
_MERGED = {
    "n": np.add,
    "last": np.maximum,
    "content": np.bitwise_xor,
    "content_sum": np.add,
    "indexes": np.bitwise_xor,
    "indexes_sum": np.add,
    "index_max": np.maximum,
    "amiss": np.maximum,
    **{f"{name}_max": np.maximum for name in ("epoch", "sequence", "shift")},
}
_LOWEST = ("first", "epoch_min", "sequence_min", "shift_min")
_KEPT = (*FRAGMENT_KEYS, "n", "first", "last", "epoch_max", "sequence_max")
#: The columns of a step.
STEPS = pa.schema([*[FRAGMENTS.field(name) for name in _KEPT], ("until", pa.int64())])
#: The columns that name a step whose records are always read.
NAMED = pa.schema([FRAGMENTS.field(name) for name in FRAGMENT_KEYS if name != "control"])


def _merge(rows: NumpyColumns, groups: Groups) -> tuple[dict[str, Numbers], NDArray[np.intp]]:
    """One row per fragment, by producer and offset, and the new place of each group."""
    # If hashes agree by chance, one fragment may come in two rows. These cross, so they are odd.
    found = dict(zip(FRAGMENT_KEYS, groups.keys, strict=True))
    found |= {name: groups.reduce(how, rows[name]) for name, how in _MERGED.items()}
    found |= {name: lowest(groups, rows[name]) for name in _LOWEST}
    order = np.lexsort((found["first"], found["last"], *(found[name] for name in reversed(_PRODUCER))))
    went = np.empty(len(order), dtype=np.intp)
    went[order] = np.arange(len(order))
    return {name: column[order] for name, column in found.items()}, went


def _loose(rows: dict[str, Numbers], data: Flags) -> Flags:
    """Fragments whose numbers are not surely consecutive. Rows without numbers or send orders are never sure."""
    unstepped = (rows["shift_min"] == NULL) | (rows["shift_min"] < rows["shift_max"])
    spanned = rows["sequence_max"] - rows["sequence_min"] + 1
    irregular = (rows["sequence_min"] < 0) | (spanned != rows["n"]) | unstepped
    several = data & (rows["n"] > 1)
    found: Flags = several & ((rows["amiss"] == 1) | (rows["epoch_min"] < rows["epoch_max"]) | irregular)
    return found


def _unjoined(rows: dict[str, Numbers], own: Producers, data: Flags, odd: Flags) -> Flags:
    """Fragments that may not begin where the producer's latest fragment in its highest epoch so far ended."""
    loose = _loose(rows, data)
    epochs = np.where(data, rows["epoch_max"], NULL)
    best = own.highest_before(epochs)
    latest = own.latest_where(data & (rows["epoch_max"] >= np.where(best == NULL, NULL, best)))
    known = (latest >= own.start) & (latest < own.end)
    same_epoch = known & (own.at(latest, rows["epoch_max"]) == rows["epoch_min"])
    ended = own.at(latest, rows["sequence_max"])
    joined = (rows["sequence_min"] == 0) | same_epoch
    follows = ~same_epoch | (ended < 0) | (rows["sequence_min"] == ((ended + 1) & NUMBER_MAX))
    first_seen = own.highest_before(rows["epoch_max"]) == NULL
    broken = ~first_seen & ~(joined & follows)
    numbered = data & (rows["producer_id"] >= 0) & (rows["sequence_max"] >= 0)
    found: Flags = numbered & (odd | loose | (own.at(latest, loose.astype(np.int64)) == 1) | broken)
    return found


def _look_around(rows: dict[str, Numbers], control: NumpyColumns) -> dict[str, Numbers]:
    """The columns that follow from the rows before and after."""
    own = Producers([rows[name] for name in _PRODUCER])
    data, produced, transactional = rows["control"] == NULL, rows["producer_id"] >= 0, rows["transactional"] == 1
    ending = decided(own, rows["control"], control.values("control"))
    outcome = outcomes(own, ending, rows["transactional"])
    next_first, previous = own.lowest_after(rows["first"]), own.before(rows["last"])
    crossed = ((next_first != NULL) & (next_first <= rows["last"])) | ((previous != NULL) & (previous >= rows["first"]))
    other = (own.after(rows["process"]) != rows["process"]) | (own.after(rows["operation"]) != rows["operation"])
    follows = (own.after(rows["n"]) != NULL) & (own.after(rows["control"]) == NULL) & other
    highest = own.highest_before(rows["epoch_max"])
    back = (highest != NULL) & (highest > rows["epoch_min"])
    stale = produced & ((rows["epoch_min"] < rows["epoch_max"]) | back)
    odd = data & (((transactional | produced) & crossed) | (transactional & follows) | stale)
    raises = produced & ((highest == NULL) | (rows["epoch_max"] > highest))
    flags = {
        "wrong": data & ((rows["amiss"] == 1) | odd | (outcome == OPEN)),
        # If the producer's epoch went back later.
        "raising": raises & own.any(stale),
        "unjoined": _unjoined(rows, own, data, odd),
    }
    return {
        "outcome": np.where(data, outcome, NULL),
        "until": own.at(ending.place, rows["last"]),
        **{name: flag.astype(np.int64) for name, flag in flags.items()},
    }


def classified_neighbours(batches: Iterable[pa.RecordBatch], buckets: int) -> Iterator[pa.RecordBatch]:
    """All partial fragments of some producers (`aggregate.aggregate_log`) → packs of several kinds (`packed.KINDS`).

    These are the steps, their counts per operation, and the copies; the last two in `buckets` buckets. Stretches are
    passed on.
    """
    fragments = []
    for batch in batches:
        fragments.append(packs_of_kind(batch, PackKind.FRAGMENTS))
        yield packs_of_kind(batch, PackKind.STRETCHES)
    whole = unpack(fragments)
    if whole is None:
        return
    held = NumpyColumns(whole)
    groups = Groups([held[name] for name in FRAGMENT_KEYS])
    rows, went = _merge(held, groups)
    rows |= _look_around(rows, held)
    committed = rows["outcome"] == COMMIT
    steps = record_batch(STEPS, rows, texts_of(held))
    counted = list(suspects.of_log(held, rows, committed))
    copies = list(blocks.of_copies(held, committed[went[groups.of_rows()]], texts_of(held)))
    yield from packed_rows(KINDS, [(0, pack(steps))], kind=PackKind.STEPS, rows=int(rows["n"].sum()))
    for kind, flag in ((PackKind.RAISING, "raising"), (PackKind.UNJOINED, "unjoined")):
        chosen = np.flatnonzero(rows[flag])
        if len(chosen):
            named = record_batch(NAMED, {name: rows[name][chosen] for name in NAMED.names}, texts_of(held))
            yield from packed_rows(KINDS, [(0, pack(named))], kind=kind)
    yield from packed_rows(KINDS, suspects.packed(counted, buckets), kind=PackKind.OPERATIONS)
    yield from packed_rows(KINDS, blocks.packed(copies, buckets), kind=PackKind.BLOCKS)
