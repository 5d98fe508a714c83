"""Checks for records that read_committed consumers must not have received, or not yet."""

from __future__ import annotations

from pyspark.sql import DataFrame

from verification.checks.facts import EvidenceFacts
from verification.checks.violation import named_observer, violations
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.history import Told

#: The observer of records that only the committed capture received.
CAPTURE = "committed"

#: Aborted by the log's own control records, or by the answer to its client.
_ABORTED = f"(coalesce(outcome = 'abort', false) or coalesce(told = '{Told.ABORTED}', false))"


def aborted_read(facts: EvidenceFacts) -> DataFrame:
    """Delivered under read_committed, by the committed capture or to an observer, although aborted (Adya's G1a).

    A record is aborted if the log's control records say so, or the answer to its client. One violation per place; the
    observer is the first that received it, or `committed` for the capture.
    """
    read = facts.places.where(f"genuine and (committed > 0 or first_received_ns is not null) and {_ABORTED}")
    return violations(
        named_observer(read, facts.frames.observers, "first_observer"),
        Anomaly.ABORTED_READ,
        detail="concat('by the log: ', case when has_log then coalesce(outcome, 'nothing') else 'there is none' end,"
        " ', told: ', coalesce(told, 'nothing'))",
        observer=f"coalesce(observer, '{CAPTURE}')",
        live="committed = 0",
    )


def early_read(facts: EvidenceFacts) -> DataFrame:
    """Received by a read_committed observer before commit was invoked. One violation per place.

    Aborted records are aborted-read and not reported again.
    """
    early = facts.places.where(
        f"has_log and genuine and not {_ABORTED} and told is not null and first_received_ns < decided_ns"
    )
    return violations(
        named_observer(early, facts.frames.observers, "first_observer"),
        Anomaly.EARLY_READ,
        detail="concat('received ', (decided_ns - first_received_ns) div 1000, ' µs before its commit was invoked')",
        observer="observer",
        live="true",
    )
