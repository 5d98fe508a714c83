"""Turns rows of evidence into a run in memory (`fingerprints.agreement`), without files and without pyspark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from verification.evidence.columns import TYPES
from verification.evidence.row_types import Row, Rows
from verification.fingerprints.in_memory import acks_of, decided_of, told_of
from verification.fingerprints.workers.aggregate import GIVEN, LOGGED
from verification.fingerprints.workers.agreement import RunInMemory
from verification.fingerprints.workers.blocks import copying_of
from verification.fingerprints.workers.columns import NULL
from verification.fingerprints.workers.observer_check import PolledRecord, polled


def _capture(rows: Iterable[Row], columns: tuple[str, ...]) -> pa.RecordBatch:
    schema = pa.schema([(name, pa.type_for_alias(TYPES[name])) for name in columns])
    return pa.RecordBatch.from_pylist([{name: row.get(name) for name in columns} for row in rows], schema)


def _records(rows: Iterable[Row]) -> Iterator[PolledRecord]:
    for row in sorted(rows, key=lambda row: (row["poll"], row["position"])):
        digest = NULL if row["identity_digest"] is None else row["identity_digest"]
        yield row["topic_index"], row["partition"], row["offset"], digest, row["received_ns"]


def run_in_memory(rows: Rows) -> RunInMemory:
    """One run, from all its rows by dataframe."""
    (run,) = rows["runs"]
    observed = {each["observer_index"]: each["committed_reader"] for each in rows["observers"]}
    return RunInMemory(
        run=run["run"],
        order_claimed=run["order_claimed"],
        captures={
            name: _capture(rows[name], LOGGED if name == "log" else GIVEN)
            for name in ("log", "uncommitted", "committed")
        },
        told=told_of(rows["operations"]),
        acks=acks_of(rows["acks"]),
        copying=copying_of(rows["runs"], rows["group_offsets"]),
        polled=[
            polled(
                _records(row for row in rows["observations"] if row["observer_index"] == index),
                committed_reader=committed,
            )
            for index, committed in observed.items()
        ],
        decided_ns=decided_of(rows["operations"]),
    )
