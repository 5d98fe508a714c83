"""Writes `findings/<anomaly>/`: every violation, and the records around the worst ones.

`violations.jsonl` has one line per violation. If another finding explains the violation, `folded_under` names it.
`records.jsonl` has the places of the examples' operations and the places next to the examples: the log's record or
marker with its outcome, and the readers that received it. For an illegal transition it has the nearby records of the
same transactional id, and likewise for a decision that was not completed in time. Both files are plain text, for people.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verification.checks import transaction_log
from verification.checks.examples import AROUND, examples, order, wanted
from verification.evidence.run_evidence import RunEvidence
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.verdict import Violation
from verification.vocabulary.violations import Attributed, RawViolation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Lines of `records.jsonl` per finding: enough to follow the defect, not a copy of the log.
RECORDS_MAX = 5_000

_SHOWN = (
    "in_log",
    "control",
    "outcome",
    "producer_id",
    "producer_epoch",
    "transactional",
    "process",
    "operation",
    "index",
    "count",
    "send_order",
    "source_partition",
    "source_offset",
    "told",
    "committed",
    "uncommitted",
    "received",
    "high_watermark",
    "last_stable_offset",
)


def named(evidence: RunEvidence, violation: RawViolation) -> Violation:
    """A violation with the name of its topic, as in a verdict."""
    return Violation(
        anomaly=str(violation.anomaly),
        process=violation.process,
        operation=violation.operation,
        index=violation.index,
        topic=evidence.topic(violation.topic_index),
        partition=violation.partition,
        offset=violation.offset,
        observer=violation.observer,
        detail=_without_input(evidence, violation) or violation.detail,
    )


def _without_input(evidence: RunEvidence, violation: RawViolation) -> str:
    """Why an output of a pipeline names no input, empty for other violations: the manifest may be wrong, not the value."""
    if violation.anomaly is not Anomaly.PHANTOM_RECORD or violation.process is not None:
        return ""
    topics = evidence.experiment.topics
    reference = next((each.reference for index, each in enumerate(topics) if index == violation.topic_index), "")
    return reference and f"it names no input: there is no whole identity by the reference {reference}"


def surroundings(
    spark: SparkSession, places: DataFrame, attributed: Mapping[str, Attributed]
) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """The places around the examples of every finding, by (run, anomaly); one job for all runs.

    At most `RECORDS_MAX` of each finding: those next to the examples first, then in order of place.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    if not any(found.primary for found in attributed.values()):
        return {}
    example = F.broadcast(wanted(spark, attributed))
    shown = places.select("run", "topic_index", "partition", "offset", *_SHOWN)
    neighbours = shown.join(example.drop("process", "operation"), ["run", "topic_index", "partition"])
    same = shown.join(
        example.where("process is not null").drop("topic_index", "partition", "at"), ["run", "process", "operation"]
    )
    near = neighbours.where(f"abs(offset - at) <= {AROUND}")
    close = near.drop("at").unionByName(_deciders(same, shown)).withColumn("far", F.lit(0))
    rest = same.unionByName(_copies(near.where("offset = at"), shown)).withColumn("far", F.lit(1))
    every = close.unionByName(rest)
    once = every.groupBy(*[name for name in every.columns if name != "far"]).agg(F.min("far").alias("far"))
    in_turn = Window.partitionBy("run", "anomaly").orderBy("far", "topic_index", "partition", "offset")
    kept = once.withColumn("turn", F.row_number().over(in_turn)).where(f"turn <= {RECORDS_MAX}").drop("far", "turn")
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in kept.toArrow().to_pylist():
        found.setdefault((row.pop("run"), row.pop("anomaly")), []).append(row)
    return found


def _deciders(same: DataFrame, shown: DataFrame) -> DataFrame:
    """The next control record of the producer after the last record of an operation in each of its partitions."""
    from pyspark.sql import functions as F  # noqa: N812

    keys = ("run", "topic_index", "partition", "producer_id")
    by_operation = same.where("transactional and control is null").groupBy("anomaly", *keys, "process", "operation")
    bound = by_operation.agg(F.max("offset").alias("at")).drop("process", "operation")
    control = shown.where("control is not null").join(F.broadcast(bound), list(keys)).where("offset > at")
    nearest = control.groupBy("anomaly", *keys, "at").agg(F.min("offset").alias("offset"))
    wanted = nearest.select("anomaly", "run", "topic_index", "partition", "offset").distinct()
    return shown.join(F.broadcast(wanted), ["run", "topic_index", "partition", "offset"]).select(
        *shown.columns, "anomaly"
    )


def _copies(examples: DataFrame, shown: DataFrame) -> DataFrame:
    """All copies of the same inputs as some copies."""
    from pyspark.sql import functions as F  # noqa: N812

    names = ["run", "source_partition", "source_offset"]
    inputs = examples.where("source_offset >= 0").select("anomaly", *names).distinct()
    return shown.join(F.broadcast(inputs), names).select(*shown.columns, "anomaly")


def _lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    texts = [json.dumps({name: value for name, value in row.items() if value is not None}) for row in rows]
    path.write_text("".join(text + "\n" for text in texts), encoding="utf-8")


def _row(evidence: RunEvidence, violation: RawViolation, under: Anomaly | None) -> dict[str, Any]:
    shown = named(evidence, violation)
    names = ("anomaly", "process", "operation", "index", "topic", "partition", "offset", "observer", "detail")
    return {**{name: getattr(shown, name) for name in names}, "folded_under": None if under is None else str(under)}


def write(
    evidence: RunEvidence, attributed: Attributed, records: Mapping[tuple[str, str], list[dict[str, Any]]]
) -> None:
    """Write `findings/` of one run again from the start; a run without findings gets none."""
    root = evidence.directory.findings
    if root.exists():
        shutil.rmtree(root)
    for anomaly in Anomaly:
        own, explained = attributed.primary.get(anomaly, ()), attributed.consequences.get(anomaly, ())
        if not own:
            continue
        folder = root / str(anomaly)
        folder.mkdir(parents=True)
        rows = [_row(evidence, each, None) for each in sorted(own, key=order)]
        rows += [_row(evidence, each, anomaly) for each in sorted(explained, key=order)]
        _lines(folder / "violations.jsonl", rows)
        shown = records.get((evidence.run, str(anomaly)), [])[:RECORDS_MAX]
        shown = [*shown, *transaction_log.surroundings(evidence, examples(own))]
        around = [{"topic": evidence.topic(row["topic_index"]), **row} for row in shown]
        _lines(
            folder / "records.jsonl",
            sorted(around, key=lambda row: (row["topic_index"], row["partition"], row["offset"])),
        )
