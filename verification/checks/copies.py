"""Checks that a copier's committed input offsets and outputs agree, and that each input is copied once if it is committed.

A copy's identity names its input (source partition and offset) and its intended output topic. There is one input
topic per run: the one whose offsets the copiers' group commits. A run that claims at-least-once may copy an input again
(`cause` is `allowed`): it commits an offset after its outputs, so outputs may be ahead of it, but never behind.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from verification.checks.facts import EvidenceFacts
from verification.checks.violation import violations
from verification.spark.dataframes import Dataframes
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.identity import NO_SOURCE
from verification.vocabulary.violations import ALLOWED, LSO

#: The input of a row.
INPUT = ("run", "source_partition", "source_offset")


def _outputs(facts: EvidenceFacts) -> DataFrame:
    """Every committed copy of a run that copies, and whether the run claims at-least-once."""
    claims = F.broadcast(facts.frames.runs.select("run", "at_least_once"))
    return facts.copied.where(
        f"fan_out is not null and genuine and outcome = 'commit' and source_offset != {NO_SOURCE}"
    ).join(claims, "run")


def committed_offsets(frames: Dataframes) -> DataFrame:
    """The group's committed offset by input partition; none at all counts as 0."""
    return F.broadcast(
        frames.group_offsets.selectExpr(
            "run",
            "topic_index as input_topic_index",
            "partition as source_partition",
            "greatest(offset, 0) as committed_offset",
        )
    )


def duplicate_copy(facts: EvidenceFacts) -> DataFrame:
    """One input copied twice into the same output topic with outcome commit. One violation per (input, topic).

    The violation names the second copy, in the order (topic, partition, offset). Where copies may come again, each further
    copy is one, too: all of them are counted.
    """
    identity = (*INPUT, "intended_topic_index")
    order = Window.partitionBy(*identity).orderBy("topic_index", "partition", "offset")
    every = F.count("*").over(Window.partitionBy(*identity))
    twice = _outputs(facts).withColumns({"copy": F.row_number().over(order), "copies": every})
    twice = twice.where("copy = 2 or (at_least_once and copy > 2)")
    detail = "concat(copies, ' copies of the input in partition ', source_partition, ' at offset ', source_offset)"
    return violations(twice, Anomaly.DUPLICATE, detail=detail, cause=f"case when at_least_once then '{ALLOWED}' end")


def offset_without_output(facts: EvidenceFacts) -> DataFrame:
    """A visible input below the group's committed offset that lacks outputs with outcome commit. One per input.

    Each input must have an output in `fan_out` different topics. The violation names the input. When outputs that are
    still open would complete it, the LSO that stands still explains it (`cause` is `lso`).
    """
    record = ("process", "operation", "index", "topic_index", "partition", "offset", "fan_out")
    inputs = (
        facts.copied.where("outcome = 'commit' and committed > 0")
        .withColumn("source_partition", F.col("partition"))
        .join(committed_offsets(facts.frames), ["run", "source_partition"])
        .where("topic_index = input_topic_index and offset < committed_offset")
        .select("run", "source_partition", F.col("offset").alias("source_offset"), F.struct(*record).alias("input"))
    )
    outputs = facts.copied.where(f"genuine and outcome in ('commit', 'open') and source_offset != {NO_SOURCE}")
    written = outputs.selectExpr(
        *INPUT, "intended_topic_index as output", "case when outcome = 'commit' then intended_topic_index end as kept"
    )
    short = (
        inputs.unionByName(written, allowMissingColumns=True)
        .groupBy(*INPUT)
        .agg(
            F.max("input").alias("input"),
            F.count_distinct("output").alias("written"),
            F.count_distinct("kept").alias("outputs"),
        )
        .where("input is not null and outputs < input.fan_out")
        .select("run", "input.*", "outputs", "written")
    )
    return violations(
        short,
        Anomaly.OFFSET_WITHOUT_OUTPUT,
        detail="concat(outputs, ' of ', fan_out, ' outputs; the offset of the group is beyond it')",
        cause=f"case when written >= fan_out then '{LSO}' end",
    )


def output_without_offset(facts: EvidenceFacts) -> DataFrame:
    """An output with outcome commit of an input at or beyond the group's committed offset. One per output.

    No claim allows one where the committed offset is unknown: losses and aborted inputs are not judged there.
    """
    beyond = (
        _outputs(facts)
        .join(committed_offsets(facts.frames), ["run", "source_partition"], "left")
        .where("source_offset >= coalesce(committed_offset, 0)")
    )
    detail = (
        "concat('copy of the input in partition ', source_partition, ' at offset ', source_offset,"
        " '; the offset of the group is ', coalesce(committed_offset, 0))"
    )
    cause = f"case when at_least_once and committed_offset is not null then '{ALLOWED}' end"
    return violations(beyond, Anomaly.OUTPUT_WITHOUT_OFFSET, detail=detail, cause=cause)


def aborted_input(facts: EvidenceFacts) -> DataFrame:
    """An output with outcome commit of an input that is aborted or open in the log. One per output, which it names.

    If the committed capture has the input, the input itself is an aborted-read, and its outputs are not reported again.
    Inputs in partitions for which the group's offset is unknown are not judged.
    """
    unreadable = facts.copied.where("outcome in ('abort', 'open') and committed = 0").selectExpr(
        "run",
        "topic_index as input_topic_index",
        "partition as source_partition",
        "offset as source_offset",
        "outcome as input_outcome",
    )
    read = (
        _outputs(facts)
        .join(committed_offsets(facts.frames), ["run", "source_partition"])
        .join(unreadable, [*INPUT, "input_topic_index"])
    )
    detail = (
        "concat('copy of the input in partition ', source_partition, ' at offset ', source_offset,"
        " '; by the log: ', input_outcome)"
    )
    return violations(read, Anomaly.ABORTED_READ, detail=detail)
