"""Copies against their inputs, by blocks of 64 input offsets: which offsets were copied is one long per block and output.

A block is doubtful when an output holds an input of it twice, when an input that was delivered lacks outputs, or when
something was copied at or beyond the offset that the group committed. This is exact: a set of offsets, not a sum.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from verification.checks.copies import committed_offsets
from verification.fingerprints.fold import BLOCK, BLOCK_BITS, FRAGMENT, bit
from verification.frames import Frames
from verification.identity import NO_SOURCE

#: A block of inputs.
SOURCE = ("run", "source_partition", "source_block")


def _outputs(fragments: DataFrame, steps: DataFrame) -> DataFrame:
    """Committed copies: per block of inputs and output how many, of which inputs, and the highest of them."""
    outcome = steps.where("copies").select("key", *FRAGMENT, "outcome")
    return (
        # The number first, so that sorting for the join compares little else.
        fragments.where("output is not null")
        .withColumn("key", F.xxhash64(*FRAGMENT))
        .join(outcome, ["key", *FRAGMENT])
        .where("outcome = 'commit'")
        .groupBy(*SOURCE, "output")
        .agg(F.sum("n").alias("n"), F.expr("bit_or(sources)").alias("sources"), F.max("source_max").alias("highest"))
    )


def _inputs(frames: Frames, offsets: DataFrame) -> DataFrame:
    """What was delivered below the group's offsets, as bits per block."""
    beneath = frames.committed.withColumn("source_partition", F.col("partition")).join(
        offsets, ["run", "source_partition"]
    )
    return (
        beneath.where("topic_index = input_topic_index and offset < committed_offset")
        .selectExpr("run", "source_partition", f"{BLOCK} as source_block", f"{bit('offset')} as wanted")
        .groupBy(*SOURCE)
        .agg(F.expr("bit_or(wanted)").alias("wanted"))
    )


def doubtful_blocks(frames: Frames, fragments: DataFrame, steps: DataFrame) -> DataFrame:
    """The blocks (SOURCE) of inputs whose copies are not each input once per output, for runs that copy."""
    fan_out = F.broadcast(frames.runs.where("fan_out is not null").select("run", "fan_out"))
    offsets = committed_offsets(frames)
    outputs = _outputs(fragments, steps).join(fan_out, "run").drop("fan_out")
    beyond = (
        outputs.join(offsets, ["run", "source_partition"], "left")
        .where("n != bit_count(sources) or highest >= coalesce(committed_offset, 0)")
        .select(*SOURCE)
    )
    short = (
        _inputs(frames, offsets)
        .join(fan_out, "run")
        .join(outputs.select(*SOURCE, "sources"), list(SOURCE), "left")
        .groupBy(*SOURCE, "fan_out")
        .agg(F.expr("count_if(coalesce(wanted & ~sources, -1L) = 0)").alias("complete"))
        .where("complete < fan_out")
        .select(*SOURCE)
    )
    return beyond.unionByName(short).distinct()


def input_blocks(frames: Frames, blocks: DataFrame) -> DataFrame:
    """Blocks as blocks of the input topic's own places: (run, topic_index, partition, block)."""
    named = blocks.join(committed_offsets(frames), ["run", "source_partition"])
    return named.selectExpr(
        "run", "input_topic_index as topic_index", "source_partition as partition", "source_block as block"
    ).distinct()


def about(frames: Frames, places: DataFrame, blocks: DataFrame) -> DataFrame:
    """Those places that hold inputs of the blocks, or copies of them."""
    copies = blocks.withColumn("is_copy", F.lit(True))
    inputs = input_blocks(frames, blocks).withColumn("is_input", F.lit(True))
    source_block = f"case when source_offset != {NO_SOURCE} then shiftright(source_offset, {BLOCK_BITS}) end"
    return (
        places.withColumns({"source_block": F.expr(source_block), "block": F.expr(BLOCK)})
        .join(F.broadcast(copies), list(SOURCE), "left")
        .join(F.broadcast(inputs), ["run", "topic_index", "partition", "block"], "left")
        .where("is_copy or is_input")
        .select(*places.columns)
    )
