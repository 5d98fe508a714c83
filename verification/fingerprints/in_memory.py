"""Small runs, each held in memory by one worker, which says whether everything in it agrees.

Looking at a run record by record (`checks.places`) takes seconds however few the records are: most of it is planning and
compiling. Nearly all runs are in order, and a worker that holds a whole run in memory can tell so by the same folds as of
large ones (`accord`), with what live observers were given. Nothing is ever found this way: a run is acquitted without
another look at its records, or judged as if this had not been.
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
#: What a task says of each run: its first disagreement, or what broke; both are null where everything agrees.
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
    """What a worker needs to know of a run to hold it in memory: its small rows, and where the files of the others lie.

    `acks` are the files of processes with plain operations, `observers` those of what live observers were given, with
    whether they read committed records only.
    """

    run: str
    rows: Rows
    captures: Mapping[str, tuple[str, ...]]
    acks: Mapping[int, str]
    observers: tuple[tuple[str, bool], ...]


def small_run(run: RunEvidence, rows: Rows, captures: Mapping[str, tuple[str, ...]]) -> SmallRun:
    """The case of a run whose files lie on this machine; `rows` are its small ones (`rows.small_rows`)."""
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
    """Of each operation when another process had taken its transactional id before it decided (`checks.operations`)."""
    inits: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row in operations:
        if row["action"] == Action.INIT and row["outcome"] == Outcome.OK and row["completed_ns"] is not None:
            inits[row["transactional_id"]].append((row["completed_ns"], row["process"]))
    for every in inits.values():
        every.sort()
    for row in operations:
        every = inits.get(row["transactional_id"], []) if row["decided_ns"] is not None else []
        # An initialisation that was completed at the very moment came after the decision.
        before = bisect_left(every, (row["decided_ns"], -1)) if every else 0
        since, owner = every[before - 1] if before else (None, row["process"])
        yield since if owner != row["process"] else None


def told_of(operations: Sequence[Row]) -> pa.RecordBatch:
    """What was told of operations, in the columns that are counted (`suspects.TOLD`)."""
    rows = [
        {**row, "size": row["records"], "superseded_ns": since}
        for row, since in zip(operations, _superseded(operations), strict=True)
    ]
    return pa.RecordBatch.from_pylist([{name: row[name] for name in _TOLD.names} for row in rows], _TOLD)


def acks_of(rows: Iterable[Row]) -> pa.RecordBatch:
    """What was acknowledged, of rows with at least these columns."""
    return pa.RecordBatch.from_pylist([{name: row[name] for name in _ACKS.names} for row in rows], _ACKS)


def decided_of(operations: Sequence[Row]) -> dict[tuple[int, int], int]:
    """When operations that a transaction binds decided, by process and operation."""
    bound = (row for row in operations if row["told"] is not None and row["decided_ns"] is not None)
    return {(row["process"], row["operation"]): row["decided_ns"] for row in bound}


def _acks(case: SmallRun) -> pa.RecordBatch:
    said = (each for process, path in case.acks.items() for each in of_file(case.run, process, path))
    return one_batch([each.select(_ACKS.names) for each in said], _ACKS)


def _capture(case: SmallRun, name: str) -> pa.RecordBatch:
    columns = LOGGED if name == "log" else GIVEN
    schema = pa.schema([(column, pa.type_for_alias(TYPES[column])) for column in columns])
    return one_batch([each for path in case.captures[name] for each in scan.batches_of(path, columns)], schema)


def held(case: SmallRun) -> RunInMemory:
    """A run in memory."""
    operations = case.rows["operations"]
    return RunInMemory(
        run=case.run,
        order_claimed=case.rows["runs"][0]["order_claimed"],
        captures={name: _capture(case, name) for name in case.captures},
        told=told_of(operations),
        acks=_acks(case),
        copying=copying_of(case.rows["runs"], case.rows["group_offsets"]),
        polled=[polled(records_of(path), committed_reader=committed) for path, committed in case.observers],
        decided_ns=decided_of(operations),
    )


def _said(case: SmallRun) -> dict[str, Any]:
    try:
        return {"run": case.run, "disagreement": disagreement(held(case)), "broke": None}
    except Exception as error:  # noqa: BLE001 - whatever is wrong with this run, it is not wrong with the others
        return {"run": case.run, "disagreement": None, "broke": repr(error)}


def work(batches: Iterable[pa.RecordBatch], cases: Sequence[SmallRun]) -> Iterator[pa.RecordBatch]:
    """The worker's side: numbers of cases → what is said of each."""
    for batch in batches:
        for number in batch.column("id").to_pylist():
            yield pa.RecordBatch.from_pylist([_said(cases[number])], _SAID)


def agreeing(spark: SparkSession, cases: Sequence[SmallRun]) -> frozenset[str]:
    """The runs among some in which everything agrees."""
    from pyspark.sql.pandas.types import from_arrow_schema

    numbers = spark.range(len(cases))
    said = numbers.mapInArrow(partial(work, cases=cases), from_arrow_schema(_SAID)).toArrow().to_pylist()
    for row in said:
        if row["broke"] is not None:
            LOG.warning("%s could not be held in memory (%s); looking at every record", row["run"], row["broke"])
        elif row["disagreement"] is not None:
            LOG.debug("%s is looked at record by record because of %s", row["run"], row["disagreement"])
    return frozenset(row["run"] for row in said if row["disagreement"] is None and row["broke"] is None)
