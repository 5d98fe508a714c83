"""What checks are given: the frames of the evidence, and the derived frames that all checks share."""

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
    hold places against each other: the same ones here, those that are in question where fingerprints came first
    (`verification.fingerprints`). `rows` is how many rows of the log all this was taken from, where that was counted.
    """

    frames: Dataframes
    places: DataFrame
    records: DataFrame
    ordered: DataFrame
    sequenced: DataFrame
    copied: DataFrame
    rows: int | None = None


def derive(frames: Dataframes) -> EvidenceFacts:
    """The shared frames, computed once and cut off from how they were computed.

    A checkpoint and not a cache: a plan that still shows its whole past is analysed anew with every step that is put on
    top of it, which for two dozen checks costs more than their execution.
    """
    by_operation = operations(frames)
    by_place = places(frames, by_operation).localCheckpoint()
    by_record = records(frames, by_place, by_operation).localCheckpoint()
    return EvidenceFacts(
        frames=frames, places=by_place, records=by_record, ordered=by_place, sequenced=by_place, copied=by_place
    )


def without_records(frames: Dataframes) -> EvidenceFacts:
    """The facts where no place and no record is in question: what the other frames show remains."""
    spark = frames.runs.sparkSession
    none = local(spark, [], PLACES)
    return EvidenceFacts(
        frames=frames, places=none, records=local(spark, [], RECORDS), ordered=none, sequenced=none, copied=none, rows=0
    )
