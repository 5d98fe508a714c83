"""Copies against their inputs, by blocks of 64 input offsets: which offsets were copied is one long per block and output.

A block is doubtful when an output holds an input of it twice, when an input that was delivered lacks outputs, or when
something was copied at or beyond the offset that the group committed. This is exact: a set of offsets, not a sum.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from verification.checks.copies import committed_offsets
from verification.fingerprints.fold import BLOCK_BITS, Input
from verification.frames import Frames
from verification.identity import NO_SOURCE

#: A block of inputs.
SOURCE = ("run", "source_partition", "source_block")


def _outputs(copies: DataFrame) -> DataFrame:
    """Committed copies: per block of inputs and output how many, of which inputs, and the highest of them."""
    return (
        copies.where("output is not null and outcome = 'commit'")
        .groupBy(*SOURCE, "output")
        .agg(F.sum("n").alias("n"), F.expr("bit_or(sources)").alias("sources"), F.max("source_max").alias("highest"))
    )


def inputs(frames: Frames) -> tuple[Input, ...]:
    """The partitions of the inputs of every run that copies, and how far each group came in them."""
    copying = frames.runs.where("fan_out is not null").select("run")
    rows = committed_offsets(frames).join(F.broadcast(copying), "run", "left_semi").toArrow().to_pylist()
    return tuple(
        Input(
            run=row["run"],
            topic_index=row["input_topic_index"],
            partition=row["source_partition"],
            committed_offset=row["committed_offset"],
        )
        for row in rows
    )


def doubtful_blocks(frames: Frames, copies: DataFrame, wanted: DataFrame) -> DataFrame:
    """The blocks (SOURCE) of inputs whose copies are not each input once per output, for runs that copy.

    `copies` is what was copied (`steps.Around`), `wanted` what was delivered of the inputs, as bits per block
    (`fold.fold_given`).
    """
    fan_out = F.broadcast(frames.runs.where("fan_out is not null").select("run", "fan_out"))
    offsets = committed_offsets(frames)
    outputs = _outputs(copies).join(fan_out, "run").drop("fan_out")
    beyond = (
        outputs.join(offsets, ["run", "source_partition"], "left")
        .where("n != bit_count(sources) or highest >= coalesce(committed_offset, 0)")
        .select(*SOURCE)
    )
    short = (
        wanted.withColumnRenamed("partition", "source_partition")
        .groupBy(*SOURCE)
        .agg(F.expr("bit_or(wanted)").alias("wanted"))
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
        places.withColumns({"source_block": F.expr(source_block), "block": F.expr(f"shiftright(offset, {BLOCK_BITS})")})
        .join(F.broadcast(copies), list(SOURCE), "left")
        .join(F.broadcast(inputs), ["run", "topic_index", "partition", "block"], "left")
        .where("is_copy or is_input")
        .select(*places.columns)
    )
