"""Live observers move forward and leave nothing out."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from verification.checks.facts import EvidenceFacts
from verification.checks.places import PARTITION
from verification.checks.violation import violations
from verification.vocabulary.anomalies import Anomaly

#: The clients at quiescence, by the captures that hold what they were given.
CAPTURES = ("committed", "uncommitted")
#: Observer of what the uncommitted capture was not given: it read everything below the high watermark.
CAPTURE = "uncommitted"


def nonmonotonic_poll(facts: EvidenceFacts) -> DataFrame:
    """An observer is given an offset at or below the one before it in that partition. One per observer and place.

    So is a client at quiescence that is given one offset twice; in which order it was given the others is not known.
    """
    back = (
        facts.places.where("has_log and returned != 0")
        .join(F.broadcast(facts.frames.observers), "run")
        .where("getbit(returned, observer_index) = 1")
    )
    detail = "concat('given after offset ', previous_offset)"
    found = violations(back, Anomaly.NONMONOTONIC_POLL, detail=detail, observer="observer")
    for capture in CAPTURES:
        again = facts.places.where(f"{capture} > 1")
        detail = f"concat('given ', {capture}, ' times')"
        found = found.unionByName(violations(again, Anomaly.NONMONOTONIC_POLL, detail=detail, observer=f"'{capture}'"))
    return found


def poll_skip(facts: EvidenceFacts) -> DataFrame:
    """An observer was never given a record that it must see, though it was given a later one of that partition.

    A read_committed observer must see records with outcome commit, a read_uncommitted one every data record; both
    start at offset 0. The uncommitted capture is held to the same: it read to the high watermark. One violation per
    observer and place.
    """
    observers = F.broadcast(facts.frames.observers)
    last = (
        facts.places.where("received != 0")
        .join(observers, "run")
        .where("getbit(received, observer_index) = 1")
        .groupBy(*PARTITION, "observer_index", "observer", "committed_reader")
        .agg(F.max("offset").alias("last"))
    )
    data = facts.places.where("in_log and control is null")
    # One row per partition and observer: small whatever the size of the log.
    skipped = data.join(F.broadcast(last), list(PARTITION)).where(
        "offset < last and (outcome = 'commit' or not committed_reader) and getbit(received, observer_index) = 0"
    )
    live = violations(
        skipped, Anomaly.POLL_SKIP, detail="concat('was given offset ', last, ' of it')", observer="observer"
    )
    unread = data.where("uncommitted = 0 and offset < high_watermark")
    return live.unionByName(
        violations(unread, Anomaly.POLL_SKIP, detail="'below the high watermark'", observer=f"'{CAPTURE}'")
    )
