"""Checks that live observers move forward and skip nothing."""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from verification.checks.facts import EvidenceFacts
from verification.checks.places import PARTITION
from verification.checks.violation import UNREAD, violations
from verification.vocabulary.anomalies import Anomaly

#: The consumers at quiescence, by their captures.
CAPTURES = ("committed", "uncommitted")
#: The observer of records that the uncommitted capture lacks: it read everything below the high watermark.
CAPTURE = "uncommitted"


def nonmonotonic_poll(facts: EvidenceFacts) -> DataFrame:
    """An observer received an offset at or below the one before it in that partition. One per observer and place.

    A consumer at quiescence that received one offset twice counts too; the order of the others is not known.
    """
    back = (
        facts.places.where("has_log and returned != 0")
        .join(F.broadcast(facts.frames.observers), "run")
        .where("getbit(returned, observer_index) = 1")
    )
    detail = "concat('given after offset ', previous_offset)"
    found = violations(back, Anomaly.NONMONOTONIC_POLL, detail=detail, observer="observer", live="true")
    for capture in CAPTURES:
        again = facts.places.where(f"{capture} > 1")
        detail = f"concat('given ', {capture}, ' times')"
        found = found.unionByName(violations(again, Anomaly.NONMONOTONIC_POLL, detail=detail, observer=f"'{capture}'"))
    return found


def poll_skip(facts: EvidenceFacts) -> DataFrame:
    """An observer never received a record that it must see, although it received a later one of that partition.

    A read_committed observer must see records with outcome commit, a read_uncommitted one every data record; both
    start at offset 0. The same holds for the uncommitted capture: it read to the high watermark. One violation per
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
    # One row per partition and observer: small for a log of any size.
    skipped = data.join(F.broadcast(last), list(PARTITION)).where(
        "offset < last and (outcome = 'commit' or not committed_reader) and getbit(received, observer_index) = 0"
    )
    found = partial(violations, anomaly=Anomaly.POLL_SKIP, harm=UNREAD)
    captured = "case when committed_reader then committed > 0 else uncommitted > 0 end"
    live = found(skipped, detail="concat('was given offset ', last, ' of it')", observer="observer", live=captured)
    unread = data.where("uncommitted = 0 and offset < high_watermark")
    return live.unionByName(found(unread, detail="'below the high watermark'", observer=f"'{CAPTURE}'"))
