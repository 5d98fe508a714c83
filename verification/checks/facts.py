"""What checks are given: the frames of the evidence, and the derived frames that all checks share."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from verification.checks.operations import operations
from verification.checks.places import places
from verification.checks.records import records
from verification.frames import Frames


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Evidence, one row per place (`checks.places`), one row per record (`checks.records`)."""

    frames: Frames
    places: DataFrame
    records: DataFrame


def derive(frames: Frames) -> Facts:
    """The shared frames, computed once and cut off from how they were computed.

    A checkpoint and not a cache: a plan that still shows its whole past is analysed anew with every step that is put on
    top of it, which for two dozen checks costs more than their execution.
    """
    by_operation = operations(frames)
    by_place = places(frames, by_operation).localCheckpoint()
    return Facts(frames=frames, places=by_place, records=records(frames, by_place, by_operation).localCheckpoint())
