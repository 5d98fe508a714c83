"""Checks the order within a partition, where the subject claims it."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from verification.checks.facts import EvidenceFacts
from verification.checks.places import PARTITION
from verification.checks.violation import violations
from verification.vocabulary.anomalies import Anomaly


def reordered_write(facts: EvidenceFacts) -> DataFrame:
    """First copies of one process's records in one partition that do not stand in send order. One per record.

    Only records with outcome commit in the partition they were sent to, and only where order is a claim
    (`Experiment.order_claimed`). The violation names the record that comes too late, after one with a higher send order.
    Second copies are duplicates and out of order by nature, and therefore left out.
    """
    writer = (*PARTITION, "process")
    kept = facts.ordered.where(
        "order_claimed and in_log and genuine and outcome = 'commit'"
        " and topic_index = intended_topic_index and partition = intended_partition"
    )
    before = Window.partitionBy(*writer).orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)
    same = Window.partitionBy(*writer, "send_order").orderBy("offset")
    # The running maximum is over all copies: a second copy is never above it, so it changes nothing.
    late = (
        kept.withColumn("highest", F.max("send_order").over(before))
        .withColumn("copy", F.row_number().over(same))
        .where("send_order < highest and copy = 1")
    )
    detail = "concat('send order ', send_order, ' stands after send order ', highest)"
    return violations(late, Anomaly.REORDERED_WRITE, detail=detail)
