"""Order in a partition has no fingerprint: it takes a look at each record and the one before it.

That look is narrow: a number for the writer and the partition, the offset, the send order. Only where it finds a step
back, the writer's records in that partition are read with what the check reads of them, and their outcomes derived.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from verification.checks.places import PARTITION
from verification.fingerprints.fold import PRODUCER, SURE
from verification.frames import Frames

_INTENDED = "topic_index = intended_topic_index and partition = intended_partition"
#: One number per process and partition. Two that share it could only seem to step back where neither does.
WRITER = f"xxhash64({', '.join((*PARTITION, 'process'))})"
_READ = ("transactional", "process", "operation", "index", "send_order", "intended_topic_index", "intended_partition")


def _sent(frames: Frames) -> DataFrame:
    claimed = frames.runs.where("order_claimed").select("run")
    return frames.log.where(f"control is null and {SURE} and {_INTENDED}").join(
        F.broadcast(claimed), "run", "left_semi"
    )


def out_of_order(frames: Frames) -> DataFrame:
    """Writers (one column, `writer`) with a record in some partition that has a lower send order than the one before."""
    in_turn = Window.partitionBy("writer").orderBy("offset")
    sent = _sent(frames).selectExpr(f"{WRITER} as writer", "offset", "send_order")
    before = F.lag("send_order").over(in_turn)
    return sent.withColumn("before", before).where("send_order < before").select("writer").distinct()


def sequences(frames: Frames, steps: DataFrame, writers: DataFrame) -> DataFrame:
    """Every record of these writers in these partitions, in the columns that `checks.order` reads."""
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
    flags = {name: F.lit(True) for name in ("order_claimed", "in_log", "genuine")}
    return every.where("decision is null").withColumns({**flags, "outcome": F.expr(outcome)})
