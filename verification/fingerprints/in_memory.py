"""Small runs, each held in memory by one worker, which decides whether everything in the run agrees.

Checking a run record by record (`checks.places`) takes seconds even for few records, mostly for planning and compiling.
Nearly all runs are in order. A worker that holds a whole run can tell by the same aggregates as for large runs
(`agreement`), and by the records that live observers received. This never finds a violation: a run passes without
another look at its records, or is judged as usual.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from verification.evidence.columns import TYPES
from verification.evidence.row_types import Row, Rows
from verification.fingerprints.ack_sums import of_file
from verification.fingerprints.workers import scan
from verification.fingerprints.workers.aggregate import GIVEN, LOGGED
from verification.fingerprints.workers.agreement import RunInMemory, disagreement, one_batch
from verification.fingerprints.workers.blocks import copying_of
from verification.fingerprints.workers.observer_check import polled, records_of
from verification.fingerprints.workers.suspects import OPERATION_KEYS, TOLD
from verification.vocabulary.history import Action, Outcome

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from verification.evidence.run_evidence import RunEvidence

LOG = logging.getLogger(__name__)
#: The result of a task for each run: its first disagreement, or its error; both are null if everything agrees.
_SAID = pa.schema([("run", pa.string()), ("disagreement", pa.string()), ("broke", pa.string())])
_TYPES: dict[str, pa.DataType] = {
    **dict.fromkeys(("run", "told", "outcome"), pa.string()),
    **dict.fromkeys(("process", "index", "size"), pa.int32()),
    **dict.fromkeys(("operation", "superseded_ns"), pa.int64()),
    "plain": pa.bool_(),
}
_TOLD = pa.schema([(name, _TYPES[name]) for name in TOLD])
_ACKS = pa.schema([(name, _TYPES[name]) for name in (*OPERATION_KEYS, "index", "outcome")])


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallRun:
    """A small run as a worker needs it: its small rows, and the paths of its files.

    `acks` are the files of processes with plain operations. `observers` are the files of the records that live
    observers received, each with whether the observer reads committed records only.
    """

    run: str
    rows: Rows
    captures: Mapping[str, tuple[str, ...]]
    acks: Mapping[int, str]
    observers: tuple[tuple[str, bool], ...]


def small_run(run: RunEvidence, rows: Rows, captures: Mapping[str, tuple[str, ...]]) -> SmallRun:
    """The small run of some evidence whose files are on this machine; `rows` are its small rows (`rows.small_rows`)."""
    plain = {row["process"] for row in rows["operations"] if row["plain"]}
    kept = ("runs", "operations", "group_offsets")
    return SmallRun(
        run=run.run,
        rows={name: rows[name] for name in kept},
        captures=captures,
        acks={process: str(path.resolve()) for process, path in run.acks.items() if process in plain},
        observers=tuple(
            (str(run.observations[row["observer"]].resolve()), row["committed_reader"]) for row in rows["observers"]
        ),
    )


def _superseded(operations: Sequence[Row]) -> Iterator[int | None]:
    """For each operation the time at which another process had taken its transactional id, if before it decided.

    See `checks.operations`.
    """
    inits: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row in operations:
        if row["action"] == Action.INIT and row["outcome"] == Outcome.OK and row["completed_ns"] is not None:
            inits[row["transactional_id"]].append((row["completed_ns"], row["process"]))
    for every in inits.values():
        every.sort()
    for row in operations:
        every = inits.get(row["transactional_id"], []) if row["decided_ns"] is not None else []
        # An initialisation that completed at that very moment came after the decision.
        before = bisect_left(every, (row["decided_ns"], -1)) if every else 0
        since, owner = every[before - 1] if before else (None, row["process"])
        yield since if owner != row["process"] else None


def told_of(operations: Sequence[Row]) -> pa.RecordBatch:
    """The answers about operations, in the columns that are counted (`suspects.TOLD`)."""
    rows = [
        {**row, "size": row["records"], "superseded_ns": since}
        for row, since in zip(operations, _superseded(operations), strict=True)
    ]
    return pa.RecordBatch.from_pylist([{name: row[name] for name in _TOLD.names} for row in rows], _TOLD)


def acks_of(rows: Iterable[Row]) -> pa.RecordBatch:
    """The acknowledgements, from rows with at least these columns."""
    return pa.RecordBatch.from_pylist([{name: row[name] for name in _ACKS.names} for row in rows], _ACKS)


def decided_of(operations: Sequence[Row]) -> dict[tuple[int, int], int]:
    """The times at which operations in transactions decided, by process and operation."""
    bound = (row for row in operations if row["told"] is not None and row["decided_ns"] is not None)
    return {(row["process"], row["operation"]): row["decided_ns"] for row in bound}


def _acks(run: SmallRun) -> pa.RecordBatch:
    said = (each for process, path in run.acks.items() for each in of_file(run.run, process, path))
    return one_batch([each.select(_ACKS.names) for each in said], _ACKS)


def _capture(run: SmallRun, name: str) -> pa.RecordBatch:
    columns = LOGGED if name == "log" else GIVEN
    schema = pa.schema([(column, pa.type_for_alias(TYPES[column])) for column in columns])
    return one_batch([each for path in run.captures[name] for each in scan.batches_of(path, columns)], schema)


def read_into_memory(run: SmallRun) -> RunInMemory:
    """Read a run into memory."""
    operations = run.rows["operations"]
    return RunInMemory(
        run=run.run,
        order_claimed=run.rows["runs"][0]["order_claimed"],
        captures={name: _capture(run, name) for name in run.captures},
        told=told_of(operations),
        acks=_acks(run),
        copying=copying_of(run.rows["runs"], run.rows["group_offsets"]),
        polled=[polled(records_of(path), committed_reader=committed) for path, committed in run.observers],
        decided_ns=decided_of(operations),
    )


def _said(run: SmallRun) -> dict[str, Any]:
    try:
        return {"run": run.run, "disagreement": disagreement(read_into_memory(run)), "broke": None}
    except Exception as error:  # noqa: BLE001 - whatever is wrong with this run, it is not wrong with the others
        return {"run": run.run, "disagreement": None, "broke": repr(error)}


def work(batches: Iterable[pa.RecordBatch], runs: Sequence[SmallRun]) -> Iterator[pa.RecordBatch]:
    """The worker's side: numbers of runs → the result for each."""
    for batch in batches:
        for number in batch.column("id").to_pylist():
            yield pa.RecordBatch.from_pylist([_said(runs[number])], _SAID)


def agreeing(spark: SparkSession, runs: Sequence[SmallRun]) -> frozenset[str]:
    """The runs in which everything agrees."""
    from pyspark.sql.pandas.types import from_arrow_schema

    numbers = spark.range(len(runs))
    said = numbers.mapInArrow(partial(work, runs=runs), from_arrow_schema(_SAID)).toArrow().to_pylist()
    for row in said:
        if row["broke"] is not None:
            LOG.warning("%s could not be held in memory (%s); checking every record", row["run"], row["broke"])
        elif row["disagreement"] is not None:
            LOG.debug("%s is checked record by record because of %s", row["run"], row["disagreement"])
    return frozenset(row["run"] for row in said if row["disagreement"] is None and row["broke"] is None)
