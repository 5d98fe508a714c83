"""Order in a partition has no fingerprint: every record is held against those that its writer sent before.

That look is narrow: a number for the writer and the partition, the offset, the send order. Offsets have to rise with send
orders; eight send orders make a row, so that only an eighth of the rows has to be sorted. Only where offsets do not rise,
or one send order stands there twice, the writer's records in that partition are read with what the check reads of them,
and their outcomes derived.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from verification.checks.places import PARTITION
from verification.fingerprints.fold import PRODUCER, SURE, fragment_key
from verification.frames import Frames

_INTENDED = "topic_index = intended_topic_index and partition = intended_partition"
#: One number per process and partition. Two that share it could only seem to step back where neither does.
WRITER = f"xxhash64({', '.join((*PARTITION, 'process'))})"
#: Send orders that make one row, as a power of two and as a number. Twice as many make half the rows, which are sorted, and
#: the code for each record twice as long.
TURN_BITS = 3
TURN = 1 << TURN_BITS
_READ = ("transactional", "process", "operation", "index", "send_order", "intended_topic_index", "intended_partition")


def _sent(frames: Frames, *, numbered: bool = False) -> DataFrame:
    """Records that order is claimed of; with `numbered` also those that their producer numbered."""
    runs = {
        row["run"]: row["order_claimed"] for row in frames.runs.select("run", "order_claimed").toArrow().to_pylist()
    }
    chosen = F.col("run").isin([run for run, claimed in runs.items() if claimed])
    # Where all claim it, no more columns are read.
    if numbered and not all(runs.values()):
        chosen = chosen | F.expr("producer_id >= 0 and sequence >= 0")
    return frames.log.where(chosen).where(f"control is null and {SURE} and {_INTENDED}")


def out_of_order(frames: Frames, *, numbered: bool = False) -> DataFrame:
    """Writers (one column, `writer`) with a record in some partition that has no higher send order than one before it.

    Of runs that claim order; with `numbered` also of whoever numbers its records.

    Nothing is sorted but what is left of it: send orders are taken `TURN` at a time, and the offsets of one turn are the
    columns of a row, each in the column of its send order. The columns have to rise, and so have the turns.
    """
    at = [f"at_{number}" for number in range(TURN)]
    turns = (
        _sent(frames, numbered=numbered)
        .selectExpr(f"{WRITER} as writer", f"shiftright(send_order, {TURN_BITS}) as turn", "send_order", "offset")
        .groupBy("writer", "turn")
        .agg(
            F.expr("count(*) as n"),
            *[
                F.expr(f"max(case when send_order & {TURN - 1} = {n} then offset end) as {name}")
                for n, name in enumerate(at)
            ],
        )
    )
    before = F.lag("highest").over(Window.partitionBy("writer").orderBy("turn"))
    # Functions of several columns pass over those that are null; a comparison with nothing is no step back.
    rises = [f"coalesce({at[n]} > greatest({', '.join(('null', *at[:n]))}), true)" for n in range(1, TURN)]
    once = " + ".join(f"int({name} is not null)" for name in at)
    return (
        turns.selectExpr(
            "writer",
            "turn",
            f"{' and '.join(rises)} and n = {once} as rising",
            f"least({', '.join(at)}) as lowest",
            f"greatest({', '.join(at)}) as highest",
        )
        .withColumn("before", before)
        .where("not rising or lowest < before")
        .select("writer")
        .distinct()
    )


def disordered(frames: Frames, writers: DataFrame) -> DataFrame:
    """Keys of the fragments in which send orders of these writers do not rise, whatever became of the records."""
    before = Window.partitionBy("writer").orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)
    return (
        _sent(frames, numbered=True)
        .select(F.expr(WRITER).alias("writer"), fragment_key().alias("key"), "offset", "send_order")
        .join(F.broadcast(writers), "writer", "left_semi")
        .withColumn("highest", F.max("send_order").over(before))
        .where("send_order <= highest")
        .select("key")
        .distinct()
    )


def sequences(frames: Frames, steps: DataFrame, writers: DataFrame) -> DataFrame:
    """The records of these writers that are out of order, in the columns that `checks.order` reads, and what proves it.

    That is, of committed records all that have the send order of one that comes too late, or the one that it comes after.
    """
    late = f"{WRITER} as writer", "explode(array(send_order, highest)) as send_order"
    before = Window.partitionBy(*PARTITION, "process").orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)
    kept = _decided(frames, steps, writers).where("outcome = 'commit'").localCheckpoint()
    orders = (
        kept.withColumn("highest", F.max("send_order").over(before))
        .where("send_order < highest")
        .selectExpr(*late)
        .distinct()
    )
    flags = {name: F.lit(True) for name in ("order_claimed", "in_log", "genuine")}
    return (
        kept.withColumn("writer", F.expr(WRITER))
        .join(F.broadcast(orders), ["writer", "send_order"], "left_semi")
        .drop("writer")
        .withColumns(flags)
        .localCheckpoint()
    )


def _decided(frames: Frames, steps: DataFrame, writers: DataFrame) -> DataFrame:
    """Every record of these writers in these partitions, with its outcome."""
    sent = (
        _sent(frames)
        .withColumn("writer", F.expr(WRITER))
        .join(F.broadcast(writers), "writer", "left_semi")
        .select(*PRODUCER, "offset", *_READ)
        .withColumn("decision", F.lit(None).cast("string"))
        .localCheckpoint()
    )
    markers = steps.where("control in ('commit', 'abort')").selectExpr(
        *PRODUCER, "first as offset", "control as decision"
    )
    mine = markers.join(F.broadcast(sent.select(*PRODUCER).distinct()), list(PRODUCER), "left_semi")
    later = Window.partitionBy(*PRODUCER).orderBy(F.desc("offset")).rowsBetween(Window.unboundedPreceding, -1)
    decided = F.last("decision", ignorenulls=True).over(later)
    outcome = "case when not transactional then 'commit' else coalesce(decided, 'open') end"
    every = sent.unionByName(mine, allowMissingColumns=True).withColumn("decided", decided)
    return every.where("decision is null").withColumn("outcome", F.expr(outcome))
