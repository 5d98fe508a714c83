"""Judges planted histories in Spark, many runs in one job; transaction logs are checked outside of the job."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tests.support.planted.histories import Plant
from verification.checks.walks import WALKS
from verification.vocabulary.violations import RawViolation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from verification.fingerprints.inputs import FingerprintInputs
    from verification.spark.dataframes import Dataframes


def frames(spark: SparkSession, plants: Iterable[Plant]) -> Dataframes:
    """The dataframes of several planted runs, without files."""
    from verification.spark.dataframes import FRAME_SCHEMAS, Dataframes, local

    every = list(plants)
    held = {}
    for name, schema in FRAME_SCHEMAS.items():
        columns = set(schema.names)
        rows = [
            {column: value for column, value in row.items() if column in columns}
            for plant in every
            for row in plant.rows[name]
        ]
        held[name] = local(spark, rows, schema)
    return Dataframes(**held)


def evidence_of_frames(held: Dataframes) -> FingerprintInputs:
    """The input of fingerprints, from dataframes that need no files."""
    from verification.fingerprints.ack_sums import AckSums
    from verification.fingerprints.inputs import FingerprintInputs
    from verification.fingerprints.workers.blocks import copying_of

    runs = held.runs.toArrow().to_pylist()
    plain = held.operations.where("plain").select("run", "process").distinct()
    return FingerprintInputs(
        frames=held,
        answers=AckSums(spark=held.acks.sparkSession, frame=lambda *_: held.acks),
        claimed=frozenset(row["run"] for row in runs if row["order_claimed"]),
        plain=frozenset((row["run"], row["process"]) for row in plain.toArrow().to_pylist()),
        copying=copying_of(runs, held.group_offsets.toArrow().to_pylist()),
    )


def judged(spark: SparkSession, plants: Iterable[Plant]) -> dict[str, list[RawViolation]]:
    """Every violation that the checks find, by run, also those without dataframes."""
    from verification.checks import CHECKS
    from verification.checks.facts import derive
    from verification.judge.run_checks import collect

    every = list(plants)
    found = collect(derive(frames(spark, every)), CHECKS)
    for plant in every:
        for walk in WALKS.values():
            found.setdefault(plant.experiment.run, []).extend(walk.over(plant.rows))
    return found
