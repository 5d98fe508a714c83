"""Derives the facts about suspects for the checks; see `verification.fingerprints`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from verification.checks.examples import AROUND, wanted
from verification.checks.facts import EvidenceFacts
from verification.checks.operations import operations
from verification.checks.places import PARTITION, places
from verification.checks.records import records
from verification.fingerprints.copying import Blocks, about, input_blocks
from verification.fingerprints.fragment_chains import (
    KEYED,
    OPERATION,
    Steps,
    chain_fragments,
    few,
    of_kind,
    place_block,
)
from verification.fingerprints.inputs import FingerprintInputs
from verification.fingerprints.numbering import suspect_fragments, unsequenced
from verification.fingerprints.reread import Narrowed, Sought, narrowed, reached
from verification.fingerprints.sequence import disordered, out_of_order, sent, sequences
from verification.fingerprints.workers import aggregate
from verification.fingerprints.workers.fragments import BLOCK_BITS, BLOCK_MAX
from verification.fingerprints.workers.packed import KINDS, PACKED, PackKind
from verification.fingerprints.workers.row_filter import By, sought
from verification.fingerprints.workers.row_selection import Named, overlapping
from verification.fingerprints.workers.suspects import SUSPECTS, TOLD, of_acks, of_history, suspicious
from verification.spark.codegen import interpreted
from verification.spark.concurrent_jobs import side_by_side
from verification.spark.dataframes import Dataframes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from verification.vocabulary.violations import Attributed

#: If more than this share of the log would have to be read again, checking all of it at once costs less.
SHARE_MAX = 0.2
#: The most operations or blocks that may be sought: every task holds all of them in memory.
SOUGHT_MAX = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspects:
    """EvidenceFacts about all suspects. `read` of the `held` rows of the log were checked one by one."""

    facts: EvidenceFacts
    read: int
    held: int
    evidence: FingerprintInputs
    operations: DataFrame
    aggregates: Aggregates

    def around(self, spark: SparkSession, attributed: Mapping[str, Attributed]) -> DataFrame:
        """The places around the examples of some findings, equal to `checks.places` of the whole evidence."""
        found = narrowed(self.evidence, self.aggregates.steps, _near(self.aggregates, wanted(spark, attributed)))
        met = _met(found, self.operations)
        with interpreted(spark, found.rows):
            return places(found.frames, met).localCheckpoint()


def _near(aggregates: Aggregates, examples: DataFrame) -> Sought:
    """The rows around examples: neighbours, their operations, and copies of the same inputs."""
    at = F.broadcast(examples.where("at is not null").select(*PARTITION, "at").distinct())
    copied = aggregates.blocks
    here = copied.copies(overlapping(at.selectExpr(*PARTITION, "at as lowest", "at as highest")))
    alike = copied.copies(Named(By.SOURCE, sought(By.SOURCE, here))).where("process is not null")
    named = examples.where("process is not null and operation is not null").select(*OPERATION)
    ends = (place_block(f"at {sign} {AROUND}") for sign in "-+")
    blocks = f"explode(array_distinct(array({', '.join(ends)}))) as block"
    spans = at.selectExpr(*PARTITION, f"at - {AROUND} as lowest", f"at + {AROUND} as highest")
    return Sought(
        operations=named.unionByName(alike.select(*OPERATION)).distinct().localCheckpoint(),
        steps=aggregates.steps.where(overlapping(spans)).select(*KEYED).localCheckpoint(),
        blocks=at.selectExpr(*PARTITION, blocks).distinct().localCheckpoint(),
        beside_markers=True,
    )


def _of_blocks(frames: Dataframes, aggregated: Aggregates, blocks: DataFrame) -> tuple[DataFrame, DataFrame]:
    """The steps (KEYED) with copies or inputs of some blocks, and the blocks of the inputs' own places."""
    copies = aggregated.blocks.copies(Named(By.SOURCE, sought(By.SOURCE, blocks))).where("output is not null")
    own = input_blocks(frames, blocks).localCheckpoint()
    lowest = f"shiftleft(block, {BLOCK_BITS})"
    spans = own.selectExpr(*PARTITION, f"{lowest} as lowest", f"{lowest} + {BLOCK_MAX} as highest")
    return copies.select(*KEYED).unionByName(aggregated.steps.where(overlapping(spans)).select(*KEYED)), own


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregates:
    """Aggregates of all evidence: steps of the log, copies, and stretches of the log's writers.

    `operations` are the counts of log and captures per operation, packed.
    """

    steps: Steps
    blocks: Blocks
    stretches: DataFrame
    operations: DataFrame
    buckets: int


def aggregates(evidence: FingerprintInputs) -> Aggregates:
    """Read every row of the evidence once."""
    buckets = evidence.buckets
    work = partial(aggregate.aggregate_log, claimed=evidence.claimed, buckets=buckets)

    def aggregated_capture(name: str, of: str) -> DataFrame:
        wanted = evidence.copying.inputs if of == "given" else ()
        each = partial(aggregate.aggregate_capture, of=of, buckets=buckets, inputs=wanted)
        return evidence.scanned(name, aggregate.GIVEN, each, KINDS).localCheckpoint()

    with side_by_side(evidence.spark) as others:
        running = [
            others.submit(aggregated_capture, *each) for each in (("uncommitted", "read"), ("committed", "given"))
        ]
        looked = chain_fragments(evidence.scanned("log", aggregate.LOGGED, work, KINDS), buckets)
        stretches = others.submit(looked.stretches.localCheckpoint)
        given = [one.result() for one in running]
        copied = looked.blocks.unionByName(of_kind(given[1], PackKind.BLOCKS))
        blocks = Blocks(copied.coalesce(few(buckets)).localCheckpoint(), few(buckets))
    parts = [looked.operations, *(of_kind(frame, PackKind.OPERATIONS) for frame in given)]
    return Aggregates(
        steps=looked.steps,
        blocks=blocks,
        stretches=stretches.result(),
        operations=reduce(DataFrame.unionByName, parts),
        buckets=buckets,
    )


def suspects(aggregated: Aggregates, known: DataFrame, answered: DataFrame) -> DataFrame:
    """The operations (OPERATION) in which anything disagrees.

    `known` is `checks.operations` of the dataframes. `answered` are the acknowledgements, packed (`of_acks`), at least
    those of all plain operations.
    """
    kind = from_arrow_schema(PACKED)
    told = known.select(*TOLD).mapInArrow(partial(of_history, buckets=aggregated.buckets), kind)
    every = aggregated.operations.unionByName(told).unionByName(answered)
    return every.repartition(aggregated.buckets, "bucket").mapInArrow(suspicious, from_arrow_schema(SUSPECTS))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Looked:
    """The suspects of the questions with aggregates of their own: blocks of inputs, records out of order, steps by number.

    `sent` is None if every writer keeps its order.
    """

    blocks: DataFrame
    sent: DataFrame | None
    numbers: DataFrame


def _looked(evidence: FingerprintInputs, aggregated: Aggregates) -> _Looked:
    with side_by_side(evidence.spark) as others:
        blocks = others.submit(aggregated.blocks.suspect_blocks(evidence.copying).localCheckpoint)
        out = out_of_order(aggregated.stretches).localCheckpoint()
        rows = None if out.isEmpty() else sent(evidence, out)
        numbers = suspect_fragments(aggregated.steps, None if rows is None else disordered(rows)).localCheckpoint()
        return _Looked(blocks=blocks.result(), sent=rows, numbers=numbers)


def derive(
    evidence: FingerprintInputs, *, share_max: float = SHARE_MAX, prepared: Callable[[], None] = lambda: None
) -> Suspects | None:
    """The facts about suspects; None when these exceed `share_max` of the log, or `SOUGHT_MAX` operations.

    `prepared` is called before workers are needed, and returns when they have started.
    """
    frames = evidence.frames
    with side_by_side(evidence.spark) as others:
        knowing = others.submit(operations(frames).localCheckpoint)
        prepared()
        aggregated = aggregates(evidence)
        looking = others.submit(_looked, evidence, aggregated)
        known = knowing.result()
        # Acknowledgements count for any history: it need not say how many records an append has.
        answered = evidence.answers.scanned(
            sorted(evidence.plain), partial(of_acks, buckets=aggregated.buckets), PACKED
        )
        suspect = suspects(aggregated, known, answered).distinct().localCheckpoint()
        looked = looking.result()
    if max(each.count() for each in (suspect, looked.blocks, looked.numbers)) > SOUGHT_MAX:
        return None
    keys, own = _of_blocks(frames, aggregated, looked.blocks)
    every = keys.unionByName(aggregated.steps.raising).unionByName(looked.numbers)
    wanted = Sought(operations=suspect, steps=every.dropDuplicates(["key"]).localCheckpoint(), blocks=own)
    these = reached(aggregated.steps, wanted)
    (read,) = these.agg(F.expr("coalesce(sum(n), 0L) as n")).toArrow().to_pylist()
    if read["n"] > aggregated.steps.rows * share_max:
        return None
    found = narrowed(evidence, aggregated.steps, wanted, these)
    return Suspects(
        facts=_facts(evidence, known, found, aggregated.steps, looked),
        read=read["n"],
        held=aggregated.steps.rows,
        evidence=evidence,
        operations=known,
        aggregates=aggregated,
    )


def _facts(
    evidence: FingerprintInputs, known: DataFrame, found: Narrowed, every: Steps, looked: _Looked
) -> EvidenceFacts:
    with side_by_side(evidence.spark) as others:
        held = others.submit(_held, evidence, known, found, looked.blocks)
        numbers = None if looked.numbers.isEmpty() else unsequenced(found.frames.log, every, looked.numbers)
        ordered = None if looked.sent is None else sequences(looked.sent, evidence.claimed, every)
        facts = held.result()
    none = facts.places.where("false")
    ordered = none if ordered is None else ordered
    return replace(
        facts, ordered=ordered, sequenced=none if numbers is None else numbers, rows=found.rows + ordered.count()
    )


def _met(found: Narrowed, known: DataFrame) -> DataFrame:
    """The known facts about operations that are sought, or that the read rows name: few of all operations."""
    read = (found.frames.log, found.frames.uncommitted, found.frames.committed)
    names = [frame.select(*OPERATION) for frame in (found.sought.operations, *read)]
    every = reduce(DataFrame.unionByName, names).distinct()
    return known.join(F.broadcast(every), list(OPERATION), "left_semi").localCheckpoint()


def _held(evidence: FingerprintInputs, known: DataFrame, found: Narrowed, blocks: DataFrame) -> EvidenceFacts:
    """Places and records of the sought rows; the places of copies and of their inputs."""
    frames = evidence.frames
    suspect = F.broadcast(found.sought.operations)
    theirs = replace(
        frames,
        operations=frames.operations.join(suspect, list(OPERATION), "left_semi"),
        acks=evidence.answers.of(suspect).join(suspect, list(OPERATION), "left_semi"),
    )
    # From all operations, which are many: compiled.
    met = _met(found, known)
    with interpreted(known.sparkSession, found.rows):
        held = places(found.frames, met).localCheckpoint()
        whole = held.join(suspect.withColumn("is_suspect", F.lit(True)), list(OPERATION), "left").where(
            "is_suspect or not genuine or control is not null or process is null or operation is null"
        )
        by_place = whole.drop("is_suspect").localCheckpoint()
        return EvidenceFacts(
            frames=frames,
            places=by_place,
            records=records(theirs, by_place, met).localCheckpoint(),
            ordered=by_place,
            sequenced=by_place,
            copied=about(frames, held, blocks).localCheckpoint(),
        )
