"""The input of checks: the dataframes of the evidence, and the derived dataframes that all checks share."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from verification.checks.operations import operations
from verification.checks.places import places
from verification.checks.records import records
from verification.sources.schema import PLACES, RECORDS
from verification.spark.dataframes import Dataframes, local


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceFacts:
    """Evidence, one row per place (`checks.places`), one row per record (`checks.records`).

    `ordered`, `sequenced` and `copied` are the places for the checks of order, of producers' numbering and of copies, which
    compare places of different operations. Here they are the same as `places`; after fingerprints they are the suspect
    places (`verification.fingerprints`). `rows` counts the rows of the log behind all this, where it was counted.
    """

    frames: Dataframes
    places: DataFrame
    records: DataFrame
    ordered: DataFrame
    sequenced: DataFrame
    copied: DataFrame
    rows: int | None = None


def derive(frames: Dataframes) -> EvidenceFacts:
    """The shared dataframes, computed once, without their plans.

    A checkpoint and not a cache: Spark analyses a whole plan again with every step on top of it. For two dozen checks
    that costs more than their execution.
    """
    by_operation = operations(frames)
    by_place = places(frames, by_operation).localCheckpoint()
    by_record = records(frames, by_place, by_operation).localCheckpoint()
    return EvidenceFacts(
        frames=frames, places=by_place, records=by_record, ordered=by_place, sequenced=by_place, copied=by_place
    )


def without_records(frames: Dataframes) -> EvidenceFacts:
    """The facts without places and records, for checks that need only the other dataframes."""
    spark = frames.runs.sparkSession
    none = local(spark, [], PLACES)
    return EvidenceFacts(
        frames=frames, places=none, records=local(spark, [], RECORDS), ordered=none, sequenced=none, copied=none, rows=0
    )
