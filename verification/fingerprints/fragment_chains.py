"""Aggregates the log into fragments, and finds the next rows of each fragment's producer in its partition.

A **fragment** is the part of the log that belongs to one operation, by one producer, in one chunk of offsets of a
partition. A row that is not surely a record of this run is a fragment of its own: a control record, a foreign value, a
record of another run. Without chunks, a second copy written much later would make one fragment of everything between
the copies. Columns of a step:

    FRAGMENT, control, n, first, last      key, number of records, lowest and highest offset
    epoch_max, sequence_max                of their producer
    until                                  offset of the control record that decided it; null without one

A fragment is **stale** when it has an epoch below an earlier one, **unjoined** when its numbers may not follow
(`numbering`). It is **odd** when the aggregate cannot tell its outcome or its neighbour. There are three cases: another
record of its producer lies between its records, another operation follows a transaction without a control record in
between, or an epoch went back. For every other fragment, the next control record decides all records alike.

Workers aggregate (`aggregate`), Spark brings together the fragments of one producer, and workers look up the neighbours
of each (`neighbours`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from verification.checks.places import PARTITION
from verification.fingerprints.workers.aggregate import STRETCHES
from verification.fingerprints.workers.fragments import BLOCK_BITS, CHUNK_BITS
from verification.fingerprints.workers.neighbours import NAMED, STEPS, classified_neighbours
from verification.fingerprints.workers.packed import KINDS, PACKED, PackKind, unpacked
from verification.fingerprints.workers.row_selection import Pick, pick

PRODUCER = (*PARTITION, "producer_id")
FRAGMENT = (*PRODUCER, "transactional", "process", "operation", "chunk")
OPERATION = ("run", "process", "operation")
#: A fragment, and one number for it.
KEYED = (*FRAGMENT, "key")

#: Whether a row is surely a record of this run, of an operation that it names.
SURE = "coalesce(valid and identity_run = run and process is not null and operation is not null, false)"
_DATA = f"control is null and {SURE}"
_KEYS = {
    "process": f"case when {_DATA} then process end",
    "operation": f"case when {_DATA} then operation end",
    "chunk": f"case when {_DATA} then shiftright(offset, {CHUNK_BITS}) else offset end",
}


def fragment_key() -> Column:
    """One number for the fragment of a row of the log: equal to `xxhash64` over FRAGMENT of an aggregate."""
    return F.expr(f"xxhash64({', '.join(_KEYS.get(name, name) for name in FRAGMENT)})")


def keyed(rows: DataFrame) -> DataFrame:
    """The fragments (KEYED) of some rows of the log."""
    names = [f"{_KEYS.get(name, name)} as {name}" for name in FRAGMENT]
    return rows.select(*[F.expr(name) for name in names], fragment_key().alias("key"))


def place_block(offset: str = "offset") -> str:
    """The block of an offset, as SQL."""
    return f"shiftright({offset}, {BLOCK_BITS})"


#: Packs of steps per task, because selecting takes less time than starting a task (`scan.TASK_ROWS`), and the least
#: number of tasks, for two cores.
BUCKETS_PER_TASK = 4
TASKS_MIN = 2


def picked(packed: DataFrame, wanted: Pick, schema: pa.Schema) -> DataFrame:
    """The wanted rows of some packs, as fragments in the columns of a schema, and `key`."""
    found = packed.mapInArrow(partial(pick, wanted=wanted, columns=tuple(schema.names)), from_arrow_schema(schema))
    return found.withColumn("key", F.xxhash64(*FRAGMENT))


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of some runs, packed by producer, and their number of `rows` of the log.

    Two groups are named (KEYED): the steps that raised the epoch of a producer whose epoch went back later, and the
    unjoined ones.
    """

    packed: DataFrame
    rows: int
    raising: DataFrame
    unjoined: DataFrame

    def where(self, wanted: Pick) -> DataFrame:
        """The wanted steps, in the columns above and `key`."""
        return picked(self.packed, wanted, STEPS)


@dataclass(frozen=True, slots=True, kw_only=True)
class FragmentChains:
    """The results of the workers about fragments: steps, packs of the steps' counts per operation, and packs of copies.

    `stretches` are those of the log's writers.
    """

    steps: Steps
    stretches: DataFrame
    operations: DataFrame
    blocks: DataFrame


def few(buckets: int) -> int:
    """The number of tasks for packs in this many buckets, where a task is short."""
    return max(TASKS_MIN, buckets // BUCKETS_PER_TASK)


def of_kind(packs: DataFrame, kind: PackKind) -> DataFrame:
    """The packs of one kind (`packed.KINDS`)."""
    return packs.where(f"kind = {kind}").select(*PACKED.names)


def _named(packs: DataFrame) -> DataFrame:
    """The steps that some packs name (KEYED)."""
    named = packs.coalesce(1).mapInArrow(unpacked, from_arrow_schema(NAMED))
    return named.withColumn("key", F.xxhash64(*FRAGMENT)).select(*KEYED)


def chain_fragments(aggregated: DataFrame, buckets: int) -> FragmentChains:
    """The chains of the fragments of an aggregated log in `buckets` buckets, and its stretches."""
    looked = partial(classified_neighbours, buckets=buckets)
    found = aggregated.repartition(buckets, "bucket").mapInArrow(looked, from_arrow_schema(KINDS)).localCheckpoint()
    (held,) = found.agg(F.expr("coalesce(sum(rows), 0L) as n")).toArrow().to_pylist()
    steps = Steps(
        # In a dataframe of their own, because they are queried often.
        packed=of_kind(found, PackKind.STEPS).coalesce(few(buckets)).localCheckpoint(),
        rows=int(held["n"]),
        raising=_named(of_kind(found, PackKind.RAISING)),
        unjoined=_named(of_kind(found, PackKind.UNJOINED)),
    )
    return FragmentChains(
        steps=steps,
        stretches=of_kind(found, PackKind.STRETCHES).coalesce(1).mapInArrow(unpacked, from_arrow_schema(STRETCHES)),
        operations=of_kind(found, PackKind.OPERATIONS),
        blocks=of_kind(found, PackKind.BLOCKS),
    )
