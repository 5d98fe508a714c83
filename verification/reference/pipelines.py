"""no-progress: everything that must be so for a pipeline that stands still, in one condition."""

from __future__ import annotations

from collections.abc import Iterator

from verification.reference.run_index import RunIndex
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.violations import RawViolation

#: So long, inputs wait and nothing keeps the pipeline from them.
_BOUND_MS = 90_000


def stalled(index: RunIndex) -> Iterator[RawViolation]:
    """no-progress."""
    for row in index.rows.get("standstills", ()):
        free = row["undisturbed_ms"] >= _BOUND_MS and 3 * (row["pace"] or 0) >= 1
        if free and row["waiting"] > 0 and row["moved"] == 0:
            at = (row["topic_index"], row["partition"], row["offset"])
            yield RawViolation(anomaly=Anomaly.NO_PROGRESS, topic_index=at[0], partition=at[1], offset=at[2])
