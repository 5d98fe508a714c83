"""Order in a partition has no fingerprint: every record is compared with the earlier records of its writer.

Workers do that while they read records. For each writer in a partition, a batch holds one **stretch**: its first and
last offset, its lowest and highest send order, and whether offset and send order rise together (`aggregate`). There are
few stretches. If a stretch does not rise, or does not begin after all earlier ones end, its records are read with the
columns of the check. So are those of the stretches that it conflicts with. Their outcomes are derived.

Why that is enough: let a record come after one with a higher send order, or the same. If both are in one stretch, it
does not rise. If they are in two, there are two cases. The later record's stretch begins later, and has a lower send
order than the highest before. Or it begins before the other one does, and ends after it has begun. The original of a
second copy is found in the same way, and so is the highest send order before a late record.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from verification.checks.places import PARTITION
from verification.fingerprints.fragment_chains import PRODUCER, SURE, Steps, keyed
from verification.fingerprints.inputs import FingerprintInputs
from verification.fingerprints.workers.fragments import CHUNK_BITS
from verification.fingerprints.workers.row_filter import By, RowFilter, sought
from verification.fingerprints.workers.row_selection import Named

WRITER = (*PARTITION, "process")
#: The records whose order matters, apart from the run's claim and their producer's numbers.
_THERE = f"control is null and {SURE} and topic_index = intended_topic_index and partition = intended_partition"
_READ = (
    *PRODUCER,
    "offset",
    "sequence",
    "control",
    "transactional",
    "identity_run",
    "process",
    "operation",
    "index",
    "send_order",
    "intended_topic_index",
    "intended_partition",
    "valid",
)


def out_of_order(stretches: DataFrame) -> DataFrame:
    """The stretches (WRITER, first, last) of writers whose records may not rise, and those that they conflict with."""
    earlier = Window.partitionBy(*WRITER).orderBy("first").rowsBetween(Window.unboundedPreceding, -1)
    behind = "not rising or coalesce(order_min <= highest, false) or coalesce(first <= latest, false)"
    odd = (
        stretches.withColumns({"highest": F.max("order_max").over(earlier), "latest": F.max("last").over(earlier)})
        .where(behind)
        .select(*WRITER, "first", "last", "order_min")
        .localCheckpoint()
    )
    against = odd.selectExpr(*WRITER, "first as odd_first", "order_min as odd_min")
    others = (
        stretches.join(F.broadcast(against), list(WRITER))
        .where("first <= odd_first and (order_max >= odd_min or last >= odd_first)")
        .select(*WRITER, "first", "last")
    )
    return odd.select(*WRITER, "first", "last").unionByName(others).distinct()


def sent(evidence: FingerprintInputs, stretches: DataFrame) -> DataFrame:
    """The records of some stretches whose order, or whose producer's numbers, matter."""
    chunks = f"explode(sequence(shiftright(first, {CHUNK_BITS}), shiftright(last, {CHUNK_BITS}))) as chunk"
    row_filter = RowFilter(_READ, {By.WRITER: sought(By.WRITER, stretches.selectExpr(*WRITER, chunks))})
    within = F.broadcast(stretches)
    rows = evidence.filtered("log", row_filter).where(_THERE)
    rows = rows.where(F.col("run").isin(*evidence.claimed) | F.expr("producer_id >= 0 and sequence >= 0")).alias("row")
    same = [f"row.{name} = stretch.{name}" for name in WRITER]
    condition = " and ".join([*same, "row.offset between stretch.first and stretch.last"])
    return rows.join(within.alias("stretch"), F.expr(condition), "left_semi").localCheckpoint()


def disordered(rows: DataFrame) -> DataFrame:
    """The fragments (KEYED) in which the send orders of these records (`sent`) do not rise, whatever their outcome."""
    before = Window.partitionBy(*WRITER).orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)
    return (
        keyed(rows.withColumn("highest", F.max("send_order").over(before)).where("send_order <= highest"))
        .dropDuplicates(["key"])
        .localCheckpoint()
    )


def sequences(rows: DataFrame, claimed: frozenset[str], steps: Steps) -> DataFrame:
    """The records of these (`sent`) that are out of order, in the columns that `checks.order` reads, and their proof.

    The proof is all committed records with the send order of a late record, or with the one that it comes after.
    """
    before = Window.partitionBy(*WRITER).orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)
    kept = _decided(rows.where(F.col("run").isin(*claimed)), steps).where("outcome = 'commit'").localCheckpoint()
    orders = (
        kept.withColumn("highest", F.max("send_order").over(before))
        .where("send_order < highest")
        .selectExpr(*WRITER, "explode(array(send_order, highest)) as send_order")
        .distinct()
    )
    flags = {name: F.lit(True) for name in ("order_claimed", "in_log", "genuine")}
    return kept.join(F.broadcast(orders), [*WRITER, "send_order"], "left_semi").withColumns(flags).localCheckpoint()


def _decided(rows: DataFrame, steps: Steps) -> DataFrame:
    """Records with their outcomes."""
    undecided = rows.withColumn("decision", F.lit(None).cast("string"))
    theirs = steps.where(Named(By.PRODUCER, sought(By.PRODUCER, rows)))
    mine = theirs.where("control in ('commit', 'abort')").selectExpr(
        *PRODUCER, "first as offset", "control as decision"
    )
    later = Window.partitionBy(*PRODUCER).orderBy(F.desc("offset")).rowsBetween(Window.unboundedPreceding, -1)
    decided = F.last("decision", ignorenulls=True).over(later)
    outcome = "case when not transactional then 'commit' else coalesce(decided, 'open') end"
    every = undecided.unionByName(mine, allowMissingColumns=True).withColumn("decided", decided)
    return every.where("decision is null").withColumn("outcome", F.expr(outcome))
