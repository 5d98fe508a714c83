"""Decides whether everything in a run that fits into memory agrees: the worker's side of `in_memory`.

It uses the same aggregates as for large runs, one run at a time. In a large run, suspects are read again. In a small run
it is enough to know that there is one. The records of live observers are checked too (`observer_check`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from verification.fingerprints.workers import blocks
from verification.fingerprints.workers.aggregate import aggregate_capture, aggregate_log
from verification.fingerprints.workers.blocks import CopyBlocks
from verification.fingerprints.workers.columns import NULL, NumpyColumns
from verification.fingerprints.workers.neighbours import classified_neighbours
from verification.fingerprints.workers.observer_check import Polled, as_the_log_has_it, readable
from verification.fingerprints.workers.packed import PackKind, unpack
from verification.fingerprints.workers.suspects import of_acks, of_history, suspicious

#: The aggregate that each capture is compared with (`suspects`).
_GIVEN = {"uncommitted": "read", "committed": "given"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInMemory:
    """One run in memory: its captures by name (columns of `aggregate`), its answers (`suspects.TOLD`) and acknowledgements.

    `acks` has at least the acknowledgements of plain operations. `decided_ns` is by process and operation, for
    operations in a transaction.
    """

    run: str
    order_claimed: bool
    captures: Mapping[str, pa.RecordBatch]
    told: pa.RecordBatch
    acks: pa.RecordBatch
    copying: CopyBlocks
    polled: Sequence[Polled] = ()
    decided_ns: dict[tuple[int, int], int] = field(default_factory=dict)


def _of_log(run: RunInMemory, kinds: dict[PackKind, list[pa.RecordBatch]]) -> str | None:
    claimed = frozenset({run.run}) if run.order_claimed else frozenset[str]()
    for batch in classified_neighbours(aggregate_log([run.captures["log"]], claimed, 1), 1):
        if batch.num_rows:
            kinds.setdefault(PackKind(batch.column("kind")[0].as_py()), []).append(batch)
    stretches = unpack(kinds.get(PackKind.STRETCHES, []))
    # The whole log is one batch, so each writer has one stretch.
    if stretches is not None and not NumpyColumns(stretches)["rising"].all():
        return "records that are out of their send order"
    if PackKind.RAISING in kinds:
        return "a producer's epoch that goes back"
    if PackKind.UNJOINED in kinds:
        return "a producer's numbers that do not follow"
    steps = unpack(kinds.get(PackKind.STEPS, []))
    if steps is not None:
        rows = NumpyColumns(steps)
        if ((rows["control"] == NULL) & (rows["process"] == NULL)).any():
            return "values that are not of this run"
    return None


def _of_captures(run: RunInMemory, kinds: dict[PackKind, list[pa.RecordBatch]]) -> str | None:
    for name, of in _GIVEN.items():
        batch = run.captures[name]
        if batch.num_rows and not NumpyColumns(batch).sure.all():
            return f"values that are not of this run in {name}"
        inputs = run.copying.inputs if of == "given" else ()
        for each in aggregate_capture([batch], of, 1, inputs):
            kinds.setdefault(PackKind(each.column("kind")[0].as_py()), []).append(each)
    return None


def _of_operations(run: RunInMemory, kinds: Mapping[PackKind, list[pa.RecordBatch]]) -> str | None:
    packs = [*kinds.get(PackKind.OPERATIONS, []), *of_history([run.told], 1), *of_acks([run.acks], 1)]
    suspects = sum(batch.num_rows for batch in suspicious(packs))
    return f"{suspects} operations" if suspects else None


def _of_copies(run: RunInMemory, kinds: Mapping[PackKind, list[pa.RecordBatch]]) -> str | None:
    found = sum(batch.num_rows for batch in blocks.suspect_blocks(kinds.get(PackKind.BLOCKS, []), run.copying))
    return f"{found} blocks of copied inputs" if found else None


def _of_observers(run: RunInMemory, _: Mapping[PackKind, list[pa.RecordBatch]]) -> str | None:
    if any(len(seen.offset) for seen in run.polled):
        if not run.captures["log"].num_rows:
            return "an observer of an empty log"
        log = readable(NumpyColumns(run.captures["log"]), run.decided_ns)
        if not all(as_the_log_has_it(seen, log) for seen in run.polled):
            return "the records that an observer received"
    return None


def disagreement(run: RunInMemory) -> str | None:
    """The first disagreement; None when every record is in order (`verification.fingerprints`)."""
    kinds: dict[PackKind, list[pa.RecordBatch]] = {}
    for look in (_of_log, _of_captures, _of_operations, _of_copies, _of_observers):
        found = look(run, kinds)
        if found is not None:
            return found
    return None


def one_batch(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """All rows of some batches; texts may have a dictionary each."""
    rows = pa.Table.from_batches(batches) if batches else schema.empty_table()
    whole = rows.unify_dictionaries().combine_chunks().to_batches()
    return whole[0] if whole else pa.RecordBatch.from_pylist([], rows.schema)
