"""What is doubtful is read in full: the rows of the evidence that the checks need to judge some operations exactly.

Of the log these are the sought fragments and, of a transaction, everything of the same producer in the same partition up
to the control record that decided it: with that, outcomes and neighbours come out as they do from the whole log. Rows
that are not surely of this run are always read. Where a reader was given something sought at a place of which the
log's own record is not sought, whatever the log may hold there becomes sought as well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from verification.checks.places import GIVEN, LOGGED, PARTITION, PLACE
from verification.fingerprints.fold import OPERATION, PRODUCER, SURE, fragment_key, place_block
from verification.frames import Frames

#: An offset that no partition reaches.
_END = (1 << 63) - 1
_CAPTURES = ("committed", "uncommitted")
_OPERATION_KEY = f"xxhash64({', '.join(OPERATION)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """What is to be read: whole operations (OPERATION), steps (`key`), and what readers were given in blocks (`block`).

    `beside_markers`: also what readers were given next to the control records that are read.
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
            steps=self.steps.unionByName(steps).distinct().localCheckpoint(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowed:
    """Frames of which log and captures hold what was sought, `rows` of the log; and what was sought in the end."""

    frames: Frames
    sought: Sought
    rows: int


def reached(steps: DataFrame, sought: Sought) -> DataFrame:
    """The steps that are sought, and those of the same producer up to the control records that decided them.

    Columns: PARTITION, control, n, first, key.
    """
    operations = F.broadcast(sought.operations.withColumn("is_sought", F.lit(True)))
    single = F.broadcast(sought.steps.withColumn("is_single", F.lit(True)))
    seed = "is_sought or is_single or (control is null and process is null)"
    end = f"case when coalesce(transactional, true) and control is null then coalesce(until, {_END}) else last end"
    # What is sought is little: nothing of all the steps has to be exchanged or sorted to find what lies within its reach.
    seeds = steps.join(operations, list(OPERATION), "left").join(single, "key", "left").where(seed)
    within = [f"step.{name} <=> seed.{name}" for name in PRODUCER]
    within.append("step.first between seed.since and seed.reach")
    return (
        steps.alias("step")
        .join(
            F.broadcast(seeds.selectExpr(*PRODUCER, "first as since", f"{end} as reach")).alias("seed"),
            F.expr(" and ".join(within)),
            "left_semi",
        )
        .select(*PARTITION, "control", "n", "first", "key")
        .localCheckpoint()
    )


def _captured(capture: DataFrame, sought: Sought, blocks: DataFrame) -> DataFrame:
    """Rows of the sought operations and blocks; `is_own` is null where only the block was sought."""
    operations = sought.operations.selectExpr(f"{_OPERATION_KEY} as own", "true as is_sought").distinct()
    within = blocks.distinct().withColumn("is_within", F.lit(True))
    return (
        capture.withColumns({"own": F.expr(_OPERATION_KEY), "block": F.expr(place_block())})
        .join(F.broadcast(operations), "own", "left")
        .join(F.broadcast(within), "block", "left")
        .withColumn("is_own", F.expr(f"is_sought or not {SURE}"))
        .where("is_own or is_within")
        .select(*capture.columns, "is_own")
    )


def _read(frames: Frames, these: DataFrame, sought: Sought) -> tuple[Frames, DataFrame]:
    """The frames of what is sought, and the places at which readers were given it and the log holds nothing sought."""
    keys = F.broadcast(these.select("key").distinct())
    every = frames.log.select(*LOGGED).withColumn("key", fragment_key())
    log = every.join(keys, "key", "left_semi").drop("key").localCheckpoint()
    blocks = sought.blocks
    if sought.beside_markers:
        markers = these.where("control is not null").selectExpr(f"{place_block('first')} as block")
        blocks = blocks.unionByName(markers)
    given = {
        name: _captured(getattr(frames, name).select(*GIVEN), sought, blocks).localCheckpoint() for name in _CAPTURES
    }
    own = [given[name].where("is_own").select(*PLACE) for name in _CAPTURES]
    known = log.join(F.broadcast(sought.operations.withColumn("is_sought", F.lit(True))), list(OPERATION), "left")
    accounted = known.where(f"is_sought or control is not null or not {SURE}").select(*PLACE)
    stray = own[0].unionByName(own[1]).distinct().join(accounted, list(PLACE), "left_anti")
    read = {name: frame.drop("is_own") for name, frame in given.items()}
    return replace(frames, log=log, **read), stray


def narrowed(frames: Frames, steps: DataFrame, sought: Sought, these: DataFrame | None = None) -> Narrowed:
    """The frames of what is sought; it grows by what stands, or may stand, where something sought was given.

    `these` are the steps that it reaches to begin with, where they are known.
    """
    met: DataFrame | None = None
    # Ends, because each turn meets places that no turn met before, of the finitely many that there are.
    while True:
        these = reached(steps, sought) if these is None else these
        read, stray = _read(frames, these, sought)
        fresh = stray if met is None else stray.join(met, list(PLACE), "left_anti")
        fresh = fresh.localCheckpoint()
        if fresh.isEmpty():
            return Narrowed(frames=read, sought=sought, rows=read.log.count())
        met = fresh if met is None else met.unionByName(fresh)
        there = steps.join(F.broadcast(fresh), list(PARTITION)).where("first <= offset and last >= offset")
        sought = sought.and_more(
            there.where("process is not null").select(*OPERATION).distinct(), there.select("key").distinct()
        )
        these = None
