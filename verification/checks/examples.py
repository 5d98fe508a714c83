"""The examples of a finding: its worst violations, in an order that is the same for all findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from verification.vocabulary.verdict import EXAMPLES_MAX
from verification.vocabulary.violations import Attributed, RawViolation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: How many offsets before and after an example are shown.
AROUND = 3


def order(violation: RawViolation) -> tuple[int, tuple[tuple[bool, int], ...], str, str]:
    """The order of examples: the victims, then by place and identity, so that the same evidence shows the same ones."""
    place = (violation.topic_index, violation.partition, violation.offset)
    keys = (*place, violation.process, violation.operation, violation.index)
    ordered = tuple((key is None, key or 0) for key in keys)
    return (-violation.harm, ordered, violation.observer or "", violation.detail)


def examples(violations: Iterable[RawViolation]) -> tuple[RawViolation, ...]:
    """The violations that a verdict shows."""
    return tuple(sorted(violations, key=order)[:EXAMPLES_MAX])


def _wanted(attributed: Mapping[str, Attributed]) -> list[dict[str, Any]]:
    return [
        {
            "run": run,
            "anomaly": str(anomaly),
            "topic_index": each.topic_index,
            "partition": each.partition,
            "at": each.offset,
            "process": each.process,
            "operation": each.operation,
        }
        for run, found in attributed.items()
        for anomaly, violations in found.primary.items()
        for each in examples(violations)
    ]


def wanted(spark: SparkSession, attributed: Mapping[str, Attributed]) -> DataFrame:
    """The examples of all findings: run, anomaly, topic_index, partition, at (offset), process, operation."""
    from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

    from verification.spark.dataframes import local

    types = {"run": StringType(), "anomaly": StringType(), "at": LongType(), "operation": LongType()}
    names = ("run", "anomaly", "topic_index", "partition", "at", "process", "operation")
    schema = StructType([StructField(name, types.get(name, IntegerType())) for name in names])
    return local(spark, _wanted(attributed), schema)
