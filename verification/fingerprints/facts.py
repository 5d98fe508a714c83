"""The facts that the checks are given, of what the fingerprints leave in doubt; see `verification.fingerprints`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from verification import findings
from verification.checks.facts import Facts
from verification.checks.operations import operations
from verification.checks.places import PARTITION, places
from verification.checks.records import records
from verification.fingerprints.copying import SOURCE, about, doubtful_blocks, input_blocks
from verification.fingerprints.fold import BLOCK_BITS, FRAGMENT, OPERATION, PRODUCER, folded, place_block, steps
from verification.fingerprints.narrow import Narrowed, Sought, narrowed, reached
from verification.fingerprints.numbering import doubtful, unsequenced
from verification.fingerprints.sequence import disordered, out_of_order, sequences
from verification.fingerprints.suspects import suspects
from verification.frames import Frames
from verification.interpreting import interpreted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from verification.folding import Folded

#: Acknowledgements of some processes (run, process), perhaps of some of their operations only (OPERATION), in the columns
#: of `Frames.acks`; more of them do no harm.
Acks = Callable[[Collection[tuple[str, int]], DataFrame | None], DataFrame]
#: Where more than this share of the log would have to be read again, looking at all of it at once costs less.
SHARE_MAX = 0.2
#: How many operations or blocks may be sought: every task holds them all in memory.
SOUGHT_MAX = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The frames of runs that the fingerprints fit (`choice.fits`), and their acknowledgements by process."""

    frames: Frames
    acks: Acks


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubts:
    """Facts about everything doubtful. `read` of the `held` rows of the log were looked at one by one."""

    facts: Facts
    read: int
    held: int
    evidence: Evidence
    operations: DataFrame
    fragments: DataFrame
    steps: DataFrame

    def around(self, spark: SparkSession, folded: Mapping[str, Folded]) -> DataFrame:
        """The places around the examples of some findings, as `checks.places` would have them of the whole evidence."""
        frames = self.evidence.frames
        found = narrowed(frames, self.steps, _near(self, findings.wanted(spark, folded)))
        with interpreted(spark, found.rows):
            return places(found.frames, self.operations).localCheckpoint()


def _processes(frame: DataFrame) -> list[tuple[str, int]]:
    rows = frame.select("run", "process").distinct().toArrow().to_pylist()
    return sorted((row["run"], row["process"]) for row in rows)


def _near(doubts: Doubts, examples: DataFrame) -> Sought:
    """What the surroundings of examples are made of: neighbours, their operations, and copies of the same inputs."""
    every, fragments = doubts.steps, doubts.fragments
    at = F.broadcast(examples.where("at is not null").select(*PARTITION, "at").distinct())
    close = f"first <= at + {findings.AROUND} and last >= at - {findings.AROUND}"
    here = fragments.where("source_block is not null").join(at, list(PARTITION)).where("first <= at and last >= at")
    sources = F.broadcast(here.select(*SOURCE).distinct())
    copies = fragments.join(sources, list(SOURCE), "left_semi").where("process is not null")
    named = examples.where("process is not null and operation is not null").select(*OPERATION)
    ends = f"explode(array_distinct(array(at - {findings.AROUND}, at + {findings.AROUND}))) as offset"
    return Sought(
        operations=named.unionByName(copies.select(*OPERATION)).distinct().localCheckpoint(),
        steps=every.join(at, list(PARTITION)).where(close).select("key").distinct().localCheckpoint(),
        blocks=at.selectExpr(*PARTITION, ends).selectExpr(f"{place_block()} as block").distinct().localCheckpoint(),
        beside_markers=True,
    )


def _raising(every: DataFrame) -> DataFrame:
    """Keys of the steps that raised the epoch, wherever it went back later: what came before each row follows from them."""
    back = every.where("stale").select(*PRODUCER).distinct()
    return every.where("raises").join(F.broadcast(back), list(PRODUCER), "left_semi").select("key")


def _of_blocks(
    frames: Frames, fragments: DataFrame, every: DataFrame, blocks: DataFrame
) -> tuple[DataFrame, DataFrame]:
    """Keys of the steps with copies or inputs of some blocks, and the blocks of the inputs' own places."""
    copies = fragments.where("output is not null").join(F.broadcast(blocks), list(SOURCE), "left_semi")
    inputs = input_blocks(frames, blocks)
    within = f"shiftright(first, {BLOCK_BITS}) <= block and shiftright(last, {BLOCK_BITS}) >= block"
    there = every.join(F.broadcast(inputs), list(PARTITION)).where(within).select("key")
    own = inputs.selectExpr(*PARTITION, f"shiftleft(block, {BLOCK_BITS}) as offset").selectExpr(
        f"{place_block()} as block"
    )
    return copies.select(F.xxhash64(*FRAGMENT).alias("key")).unionByName(there).distinct(), own.distinct()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Looked:
    """What the look-ups with folds of their own leave in doubt: blocks of inputs, writers, and steps by their numbers.

    `writers` is None where every writer keeps its order.
    """

    blocks: DataFrame
    writers: DataFrame | None
    numbers: DataFrame


def _looked(frames: Frames, fragments: DataFrame, every: DataFrame) -> _Looked:
    out = out_of_order(frames, numbered=True).localCheckpoint()
    writers = None if out.isEmpty() else out
    numbers = doubtful(every, None if writers is None else disordered(frames, writers))
    return _Looked(
        blocks=doubtful_blocks(frames, fragments, every).localCheckpoint(),
        writers=writers,
        numbers=numbers.localCheckpoint(),
    )


def derive(evidence: Evidence, *, share_max: float = SHARE_MAX) -> Doubts | None:
    """The facts about what is doubtful; None when that is more than `share_max` of the log or `SOUGHT_MAX` operations."""
    frames = evidence.frames
    known = operations(frames).localCheckpoint()
    fragments = folded(frames.log).localCheckpoint()
    every = steps(fragments).localCheckpoint()
    # Whatever the history counts: it need not say how many records an append has.
    plain = _processes(known.where("plain"))
    suspect = suspects(frames, every, known, evidence.acks(plain, None)).localCheckpoint()
    looked = _looked(frames, fragments, every)
    if max(each.count() for each in (suspect, looked.blocks, looked.numbers)) > SOUGHT_MAX:
        return None
    keys, own = _of_blocks(frames, fragments, every, looked.blocks)
    sought = Sought(
        operations=suspect,
        steps=keys.unionByName(_raising(every)).unionByName(looked.numbers).distinct().localCheckpoint(),
        blocks=own.localCheckpoint(),
    )
    these = reached(every, sought)
    read, held = (_records(frame) for frame in (these, every))
    if read > held * share_max:
        return None
    found = narrowed(frames, every, sought, these)
    return Doubts(
        facts=_facts(evidence, known, found, every, looked),
        read=read,
        held=held,
        evidence=evidence,
        operations=known,
        fragments=fragments,
        steps=every,
    )


def _records(every: DataFrame) -> int:
    """How many rows of the log some steps are."""
    (row,) = every.agg(F.expr("coalesce(sum(n), 0L) as n")).toArrow().to_pylist()
    return int(row["n"])


def _facts(evidence: Evidence, known: DataFrame, found: Narrowed, every: DataFrame, looked: _Looked) -> Facts:
    frames = evidence.frames
    doubtful = F.broadcast(found.sought.operations)
    theirs = replace(
        frames,
        operations=frames.operations.join(doubtful, list(OPERATION), "left_semi"),
        acks=evidence.acks(_processes(doubtful), doubtful).join(doubtful, list(OPERATION), "left_semi"),
    )
    with interpreted(known.sparkSession, found.rows):
        held = places(found.frames, known).localCheckpoint()
        whole = held.join(doubtful.withColumn("is_doubtful", F.lit(True)), list(OPERATION), "left").where(
            "is_doubtful or not genuine or control is not null or process is null or operation is null"
        )
        by_place = whole.drop("is_doubtful").localCheckpoint()
        by_record = records(theirs, by_place, known).localCheckpoint()
        copied = about(frames, held, looked.blocks).localCheckpoint()
    none = by_place.where("false")
    ordered = none if looked.writers is None else sequences(frames, every, looked.writers)
    sequenced = none if looked.numbers.isEmpty() else unsequenced(found.frames.log, every, looked.numbers)
    return Facts(
        frames=frames,
        places=by_place,
        records=by_record,
        ordered=ordered,
        sequenced=sequenced,
        copied=copied,
        rows=found.rows + ordered.count(),
    )
