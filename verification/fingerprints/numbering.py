"""Finds fragments that may hold a producer number that does not follow, and checks their records.

A fragment is **loose** when its numbers are not surely consecutive. There are three cases: their count differs from
their span; they do not keep step with the send orders of their records; send orders do not rise there (`sequence`).
Numbers and send orders both count up by one per record in a partition, so their difference must stay the same. Every
other fragment begins with its lowest number and ends with its highest.

A fragment is **unjoined** when it is loose or odd, follows a loose one, or does not begin where the one before it ends.
Only the records of unjoined fragments are read. Of the producer's fragments before them, the last record is enough, and
the aggregate has it. So nothing is missed, and an ordinary log has no unjoined fragment.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from verification.checks.numbering import NUMBERING, numbered
from verification.checks.places import PARTITION
from verification.fingerprints.fragment_chains import KEYED, PRODUCER, Steps, fragment_key
from verification.fingerprints.workers.row_filter import By, sought
from verification.fingerprints.workers.row_selection import Named

_IDENTITY = ("process", "operation", "index")


def _after(steps: Steps, keys: DataFrame) -> DataFrame:
    """The fragments (KEYED) that a producer wrote next after some of its fragments, in any epoch."""
    marked = F.broadcast(keys.select("key").withColumn("is_loose", F.lit(True)))
    earlier = Window.partitionBy(*PRODUCER).orderBy("last").rowsBetween(Window.unboundedPreceding, -1)
    latest = F.max(F.struct("epoch_max", "last", F.coalesce("is_loose", F.lit(False)).alias("is_loose"))).over(earlier)
    return (
        steps.where(Named(By.PRODUCER, sought(By.PRODUCER, keys)))
        .where("control is null")
        .join(marked, "key", "left")
        .withColumn("latest", latest)
        .where("latest.is_loose")
        .select(*KEYED)
    )


def suspect_fragments(steps: Steps, disordered: DataFrame | None) -> DataFrame:
    """The steps (KEYED) whose records must be read; `disordered` are those in which send orders do not rise."""
    keys = steps.unjoined
    if disordered is not None:
        # Records without numbers prove nothing, whatever their order.
        loose = (
            steps.where(Named(By.FRAGMENT, sought(By.FRAGMENT, disordered)))
            .where("sequence_max >= 0")
            .join(F.broadcast(disordered.select("key")), "key", "left_semi")
            .select(*KEYED)
            .localCheckpoint()
        )
        keys = keys.unionByName(loose).unionByName(_after(steps, loose))
    return keys.dropDuplicates(["key"])


def unsequenced(log: DataFrame, steps: Steps, found: DataFrame) -> DataFrame:
    """The records of these steps whose number does not follow, in the columns that `checks.sequences` reads.

    `log` holds at least the records of these steps.
    """
    keys = found.select("key")
    wanted = F.broadcast(keys.withColumn("is_sought", F.lit(True)))
    names = (*PRODUCER, "offset", "control", "producer_epoch", "sequence")
    rows = log.withColumn("key", fragment_key()).join(F.broadcast(keys), "key", "left_semi").select(*names, *_IDENTITY)
    ends = (
        steps.where(Named(By.PRODUCER, sought(By.PRODUCER, found)))
        .join(wanted, "key", "left")
        .where("is_sought is null")
        .selectExpr(
            *PRODUCER,
            "last as offset",
            "control",
            "epoch_max as producer_epoch",
            "sequence_max as sequence",
            "1 as told",
        )
    )
    return (
        numbered(rows.unionByName(ends, allowMissingColumns=True), PRODUCER)
        .where("told is null and sequence_due is not null")
        .select(*PARTITION, "offset", *_IDENTITY, "producer_id", "producer_epoch", *NUMBERING)
        .withColumn("in_log", F.lit(True))
        .localCheckpoint()
    )
