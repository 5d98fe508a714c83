"""Finds the operations whose log, answers and deliveries disagree.

Everything is counted into one row per operation: the fragments of the log with their outcomes, the two captures, the
acknowledgements of records outside transactions, and the history. An operation is suspect if any of these disagree. The
docstring of `verification.fingerprints` lists the disagreement that each anomaly causes.

Each source yields partial rows (`OPERATIONS`), packed by operation. Spark brings together the rows of one operation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from verification.fingerprints.workers import packed as packs
from verification.fingerprints.workers.columns import NULL, Flags, NumpyColumns, record_batch
from verification.fingerprints.workers.groups import Groups
from verification.fingerprints.workers.hashing import HALF, Numbers, hash_int
from verification.fingerprints.workers.packed import PACKED, packed_rows, unpack
from verification.vocabulary.history import Outcome, Told

OPERATION_KEYS = ("run", "process", "operation")
_COUNTED = ("n", "content", "content_sum")
#: Column of a row → how rows of one operation are merged. `read_*` compares the log with the uncommitted capture,
#: `given_*` its committed part with the committed capture. `kept_*` are the indexes of that part, `acked_*` the
#: acknowledged ones.
_SUMS: dict[str, np.ufunc] = {
    **{
        f"{of}_{name}": np.bitwise_xor if name == "content" else np.add for of in ("read", "given") for name in _COUNTED
    },
    **{f"{of}_{name}": how for of in ("kept", "acked") for name, how in (("indexes", np.bitwise_xor), ("sum", np.add))},
    **dict.fromkeys(("found", "kept", "acked"), np.add),
    **dict.fromkeys(("index_max", "wrong", "known", "told", "plain", "size", "superseded"), np.maximum),
}
#: The values of a row whose dataframe lacks the column; none is null.
_NOTHING = {"index_max": -1}
OPERATIONS = pa.schema(
    [("run", pa.string()), ("process", pa.int32()), ("operation", pa.int64()), *[(name, pa.int64()) for name in _SUMS]]
)
#: Operations in which anything disagrees.
SUSPECTS = pa.schema([OPERATIONS.field(name) for name in OPERATION_KEYS])
#: Told, as numbers.
_TOLD: dict[str, int] = {Told.COMMITTED: 1, Told.UNKNOWN: 2, Told.ABORTED: 3}


def _rows(groups: Groups, rows: NumpyColumns, counted: Mapping[str, Numbers]) -> pa.RecordBatch:
    """Partial rows of some operations; `counted` has a value for each group."""
    length = len(groups.starts)
    empty = {name: np.full(length, _NOTHING.get(name, 0), dtype=np.int64) for name in _SUMS}
    keys = dict(zip(OPERATION_KEYS, groups.keys, strict=True))
    # Bits that look like null are bits.
    held = record_batch(SUSPECTS, keys, {"run": rows.encoded("run").dictionary})
    values = [pa.array(each.astype(np.int64)) for each in (empty | dict(counted)).values()]
    return pa.RecordBatch.from_arrays([*held.columns, *values], schema=OPERATIONS)


def packed(counted: Sequence[pa.RecordBatch], buckets: int) -> Iterator[tuple[int, bytes]]:
    """Partial rows in `buckets` buckets by operation."""
    yield from packs.packed(counted, ("process", "operation"), buckets)


def of_log(rows: NumpyColumns, steps: Mapping[str, Numbers], committed: Flags) -> Iterator[pa.RecordBatch]:
    """The counts of fragments; `steps` are the columns of `neighbours.STEPS`, whose texts are those of `rows`."""
    named = np.flatnonzero(steps["process"] != NULL)
    if not len(named):
        return
    groups = Groups([steps[name][named] for name in OPERATION_KEYS])
    kept = committed[named]
    values = {f"read_{name}": steps[name] for name in _COUNTED} | {"found": steps["n"], "index_max": steps["index_max"]}
    counted = {name: groups.reduce(_SUMS[name], column[named]) for name, column in values.items()}
    values = {f"given_{name}": steps[name] for name in _COUNTED}
    values |= {"kept_indexes": steps["indexes"], "kept_sum": steps["indexes_sum"], "kept": steps["n"]}
    counted |= {name: groups.reduce(_SUMS[name], np.where(kept, column[named], 0)) for name, column in values.items()}
    counted["wrong"] = groups.reduce(np.maximum, steps["wrong"][named])
    yield _rows(groups, rows, counted)


def of_capture(rows: NumpyColumns, content: Numbers, of: str) -> Iterator[pa.RecordBatch]:
    """The counts of a capture, to be subtracted from the log's.

    `content` are the hashes of the rows (`aggregate.content_of`).
    """
    kept = np.flatnonzero(rows.sure)
    if not len(kept):
        return
    groups = Groups([rows[name][kept] for name in OPERATION_KEYS])
    number = groups.counts()
    counted = {
        "found": number,
        f"{of}_n": -number,
        f"{of}_content": groups.reduce(np.bitwise_xor, content[kept]),
        f"{of}_content_sum": -groups.reduce(np.add, content[kept] & HALF),
    }
    yield _rows(groups, rows, counted)


def _acked(rows: NumpyColumns) -> Iterator[pa.RecordBatch]:
    told = {text: number for number, text in enumerate(rows.values("outcome"))}
    kept = np.flatnonzero(rows["outcome"] == told.get(Outcome.OK, -1))
    if len(kept):
        groups = Groups([rows[name][kept] for name in OPERATION_KEYS])
        hashes = hash_int(rows["index"][kept]).view(np.int64)
        counted = {"acked": groups.counts(), "acked_indexes": groups.reduce(np.bitwise_xor, hashes)}
        yield _rows(groups, rows, counted | {"acked_sum": groups.reduce(np.add, hashes & HALF)})


#: The columns of the history that are read, from `checks.operations`.
TOLD = (*OPERATION_KEYS, "told", "plain", "size", "superseded_ns")


def _told(rows: NumpyColumns) -> Iterator[pa.RecordBatch]:
    groups = Groups([rows[name] for name in OPERATION_KEYS])
    # A null is no name, so the list ends with an entry for it.
    numbers = np.array([_TOLD.get(text or "", 0) for text in rows.values("told")] + [0], dtype=np.int64)
    values = {
        "known": np.ones(len(rows), dtype=np.int64),
        "told": numbers[np.where(rows["told"] == NULL, len(numbers) - 1, rows["told"])],
        "plain": (rows["plain"] == 1).astype(np.int64),
        "size": np.maximum(rows["size"], 0),
        "superseded": (rows["superseded_ns"] != NULL).astype(np.int64),
    }
    yield _rows(groups, rows, {name: groups.reduce(np.maximum, each) for name, each in values.items()})


def of_acks(batches: Iterable[pa.RecordBatch], buckets: int) -> Iterator[pa.RecordBatch]:
    """The counts of acknowledgements (`sources.schema.ACKS`), packed."""
    counted = [each for batch in batches if batch.num_rows for each in _acked(NumpyColumns(batch))]
    yield from packed_rows(PACKED, packed(counted, buckets))


def of_history(batches: Iterable[pa.RecordBatch], buckets: int) -> Iterator[pa.RecordBatch]:
    """The answers to clients (`TOLD`), packed."""
    counted = [each for batch in batches if batch.num_rows for each in _told(NumpyColumns(batch))]
    yield from packed_rows(PACKED, packed(counted, buckets))


def _whole(of: Mapping[str, Numbers]) -> Flags:
    """Whether the kept indexes are all of 0 to size - 1: by number, XOR and sum of their hashes."""
    # Only for sizes that equal the number of kept records: a history may claim any size.
    size = np.where(of["kept"] == of["size"], of["size"], 0)
    largest = int(size.max(initial=0))
    hashes = hash_int(np.arange(largest, dtype=np.int64)).view(np.int64)
    xor = np.insert(np.bitwise_xor.accumulate(hashes), 0, 0)[size]
    total = np.insert(np.cumsum(hashes & HALF), 0, 0)[size]
    found: Flags = (of["kept"] == of["size"]) & (of["kept_indexes"] == xor) & (of["kept_sum"] == total)
    return found


def _suspect(of: Mapping[str, Numbers]) -> Flags:
    """The rule, over one row per operation."""
    committed, unknown, aborted = (of["told"] == _TOLD[told] for told in (Told.COMMITTED, Told.UNKNOWN, Told.ABORTED))
    found, kept, sized, plain = of["found"] > 0, of["kept"] > 0, of["size"] > 0, of["plain"] == 1
    acknowledged = (of["kept"] == of["acked"]) & (of["kept_indexes"] == of["acked_indexes"])
    acknowledged &= of["kept_sum"] == of["acked_sum"]
    broken = sized & ~_whole(of)
    differs = np.zeros(len(found), dtype=bool)
    for name in (f"{side}_{each}" for side in ("read", "given") for each in _COUNTED):
        differs |= of[name] != 0
    suspicious: Flags = (
        differs
        | (of["wrong"] == 1)
        | ((of["known"] == 0) & found)
        | (found & sized & (of["index_max"] >= of["size"]))
        | ((of["superseded"] == 1) & kept)
        | (aborted & kept)
        | ((committed | unknown) & ~sized & found)
        | (committed & broken)
        | (unknown & kept & broken)
        | (plain & ~acknowledged)
        | ((of["told"] == 0) & ~plain & found)
    )
    return suspicious


def suspicious(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """All partial rows of some operations, packed → the suspect operations (`SUSPECTS`)."""
    batch = unpack(batches)
    if batch is None:
        return
    rows = NumpyColumns(batch)
    groups = Groups([rows[name] for name in OPERATION_KEYS])
    counted = {name: groups.reduce(how, rows[name]) for name, how in _SUMS.items()}
    # If hashes agree by chance, one operation may come in two rows. Both are suspect then, so nothing is missed.
    chosen = np.flatnonzero(_suspect(counted))
    keys = {name: key[chosen] for name, key in zip(OPERATION_KEYS, groups.keys, strict=True)}
    yield record_batch(SUSPECTS, keys, {"run": rows.encoded("run").dictionary})
