"""Reads suspects in full: the rows of the evidence that the checks need to judge some operations exactly.

From the log these are the sought fragments. For a transaction they are all records of the same producer in the same
partition, up to the control record that decided it: then outcomes and neighbours are the same as from the whole log.
Rows that are not surely of this run are always read. If a reader received something sought at a place where the log's
own record is not sought, everything that the log may hold there is sought too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from verification.checks.places import GIVEN, LOGGED, PARTITION, PLACE
from verification.fingerprints.fragment_chains import KEYED, OPERATION, SURE, Steps, fragment_key, place_block
from verification.fingerprints.inputs import FingerprintInputs
from verification.fingerprints.workers.row_filter import By, RowFilter, sought
from verification.fingerprints.workers.row_selection import Reached, overlapping
from verification.spark.concurrent_jobs import side_by_side
from verification.spark.dataframes import Dataframes

_CAPTURES = ("committed", "uncommitted")
#: A block of offsets.
BLOCK = (*PARTITION, "block")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """The rows to read: whole operations (OPERATION), steps (KEYED), and deliveries to readers in blocks (BLOCK).

    `beside_markers` adds the deliveries next to the control records that are read.
    """

    operations: DataFrame
    steps: DataFrame
    blocks: DataFrame
    beside_markers: bool = False

    def and_more(self, operations: DataFrame, steps: DataFrame) -> Sought:
        """With further operations and steps."""
        return replace(
            self,
            operations=self.operations.unionByName(operations).distinct().localCheckpoint(),
            steps=self.steps.unionByName(steps).dropDuplicates(["key"]).localCheckpoint(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowed:
    """Dataframes whose log and captures hold the sought rows, `rows` of the log; and all that was sought in the end."""

    frames: Dataframes
    sought: Sought
    rows: int


def reached(steps: Steps, wanted: Sought) -> DataFrame:
    """The sought steps, and those of the same producer up to the control records that decided them."""
    operations, fragments = sought(By.OPERATION, wanted.operations), sought(By.FRAGMENT, wanted.steps)
    return steps.where(Reached(operations, fragments)).localCheckpoint()


def _captured(
    evidence: FingerprintInputs, name: str, wanted: Sought, blocks: DataFrame, row_filter: RowFilter
) -> DataFrame:
    """Rows of the sought operations and blocks; `is_own` is null where only the block was sought."""
    operations = wanted.operations.withColumn("is_sought", F.lit(True))
    within = blocks.distinct().withColumn("is_within", F.lit(True))
    return (
        evidence.filtered(name, row_filter)
        .withColumn("block", F.expr(place_block()))
        .join(F.broadcast(operations), list(OPERATION), "left")
        .join(F.broadcast(within), list(BLOCK), "left")
        .withColumn("is_own", F.expr(f"is_sought or not {SURE}"))
        .where("is_own or is_within")
        .select(*GIVEN, "is_own")
    )


def _logged(evidence: FingerprintInputs, these: DataFrame) -> DataFrame:
    """Rows of the log that are of these steps."""
    keys = F.broadcast(these.select("key").distinct())
    fragments = RowFilter(LOGGED, {By.FRAGMENT: sought(By.FRAGMENT, these)})
    rows = evidence.filtered("log", fragments).withColumn("key", fragment_key())
    return rows.join(keys, "key", "left_semi").drop("key")


def _read(evidence: FingerprintInputs, these: DataFrame, wanted: Sought) -> tuple[Dataframes, DataFrame]:
    """The dataframes of the sought rows, and the places where readers received them and the log holds nothing sought."""
    blocks = wanted.blocks
    if wanted.beside_markers:
        markers = these.where("control is not null").selectExpr(*PARTITION, f"{place_block('first')} as block")
        blocks = blocks.unionByName(markers)
    theirs = {By.OPERATION: sought(By.OPERATION, wanted.operations), By.BLOCK: sought(By.BLOCK, blocks)}
    row_filter = RowFilter(GIVEN, theirs, unsure=True)
    with side_by_side(evidence.spark) as others:
        reading = {
            name: others.submit(_captured(evidence, name, wanted, blocks, row_filter).localCheckpoint)
            for name in _CAPTURES
        }
        log = _logged(evidence, these).localCheckpoint()
        given = {name: each.result() for name, each in reading.items()}
    own = [given[name].where("is_own").select(*PLACE) for name in _CAPTURES]
    known = log.join(F.broadcast(wanted.operations.withColumn("is_sought", F.lit(True))), list(OPERATION), "left")
    accounted = known.where(f"is_sought or control is not null or not {SURE}").select(*PLACE)
    stray = own[0].unionByName(own[1]).distinct().join(accounted, list(PLACE), "left_anti")
    read = {name: frame.drop("is_own") for name, frame in given.items()}
    return replace(evidence.frames, log=log, **read), stray


def narrowed(evidence: FingerprintInputs, steps: Steps, wanted: Sought, these: DataFrame | None = None) -> Narrowed:
    """The dataframes of the sought rows. They grow by everything that is, or may be, where something sought was delivered.

    `these` are the steps that it begins with, if they are known.
    """
    met: DataFrame | None = None
    # This ends, because each turn meets new places, and there is a finite number of them.
    while True:
        these = reached(steps, wanted) if these is None else these
        read, stray = _read(evidence, these, wanted)
        fresh = stray if met is None else stray.join(met, list(PLACE), "left_anti")
        fresh = fresh.localCheckpoint()
        if fresh.isEmpty():
            return Narrowed(frames=read, sought=wanted, rows=read.log.count())
        met = fresh if met is None else met.unionByName(fresh)
        spans = fresh.selectExpr(*PARTITION, "offset as lowest", "offset as highest")
        there = steps.where(overlapping(spans)).select(*KEYED).localCheckpoint()
        wanted = wanted.and_more(there.where("process is not null").select(*OPERATION).distinct(), there)
        these = None
