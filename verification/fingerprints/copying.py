"""Compares copies with their inputs, by blocks of 64 input offsets (`blocks`): the copied offsets of a block are one long.

A block is suspect in four cases: an output holds an input of it twice; a delivered input lacks outputs; an input was
copied that was not delivered, or that is at or beyond the offset that the group committed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from verification.checks.copies import committed_offsets
from verification.fingerprints.fragment_chains import picked
from verification.fingerprints.workers.blocks import BLOCKS, SOURCE, SUSPECT_BLOCKS, CopyBlocks, suspect_blocks
from verification.fingerprints.workers.fragments import BLOCK_BITS
from verification.fingerprints.workers.row_selection import Pick
from verification.spark.dataframes import Dataframes
from verification.vocabulary.identity import NO_SOURCE


@dataclass(frozen=True, slots=True)
class Blocks:
    """The copies and the delivered inputs, in packs by block; `tasks` is the number of tasks that read all of them."""

    packed: DataFrame
    tasks: int

    def copies(self, wanted: Pick) -> DataFrame:
        """The wanted fragments of copies, in the columns of `blocks.BLOCKS` and `key`."""
        return picked(self.packed, wanted, BLOCKS).where("n is not null")

    def suspect_blocks(self, said: CopyBlocks) -> DataFrame:
        """The blocks (SOURCE) in which some input was not copied exactly once per output, in runs that copy."""
        together = self.packed.repartition(self.tasks, "bucket")
        return together.mapInArrow(partial(suspect_blocks, copying=said), from_arrow_schema(SUSPECT_BLOCKS))


def input_blocks(frames: Dataframes, blocks: DataFrame) -> DataFrame:
    """Blocks as blocks of the input topic's own places: (run, topic_index, partition, block)."""
    named = blocks.join(committed_offsets(frames), ["run", "source_partition"])
    return named.selectExpr(
        "run", "input_topic_index as topic_index", "source_partition as partition", "source_block as block"
    ).distinct()


def about(frames: Dataframes, places: DataFrame, blocks: DataFrame) -> DataFrame:
    """The places that hold inputs of the blocks, or copies of them."""
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
