"""What read_committed clients were given and must not have been given, or not yet."""

from __future__ import annotations

from pyspark.sql import DataFrame

from verification.checks.facts import EvidenceFacts
from verification.checks.violation import named_observer, violations
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.history import Told

#: Observer of what only the committed capture was given.
CAPTURE = "committed"

#: Decided against: by the log's own control records, or by what its client was told.
_ABORTED = f"(coalesce(outcome = 'abort', false) or coalesce(told = '{Told.ABORTED}', false))"


def aborted_read(facts: EvidenceFacts) -> DataFrame:
    """Delivered under read_committed, by the committed capture or to an observer, although aborted (Adya's G1a).

    Aborted is what the log's control records decided so, and what its client was told so. One violation per place; the
    observer is the first that received it, or `committed` for the capture.
    """
    read = facts.places.where(f"genuine and (committed > 0 or first_received_ns is not null) and {_ABORTED}")
    return violations(
        named_observer(read, facts.frames.observers, "first_observer"),
        Anomaly.ABORTED_READ,
        detail="concat('by the log: ', case when has_log then coalesce(outcome, 'nothing') else 'there is none' end,"
        " ', told: ', coalesce(told, 'nothing'))",
        observer=f"coalesce(observer, '{CAPTURE}')",
    )


def early_read(facts: EvidenceFacts) -> DataFrame:
    """Received by a read_committed observer before commit was even invoked. One violation per place.

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
    )
