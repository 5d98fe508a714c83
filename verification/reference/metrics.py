"""silent-metric: a metric that says 0 while the offset that it is about stands, in one condition."""

from __future__ import annotations

from collections.abc import Iterator

from verification.reference.run_index import RunIndex
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.violations import RawViolation

#: So long, an offset stands.
_BOUND_MS = 15_000


def silent(index: RunIndex) -> Iterator[RawViolation]:
    """Silent."""
    for row in index.rows.get("silences", ()):
        if row["stated"] == 0 and row["stood_ms"] >= _BOUND_MS:
            at = (row["topic_index"], row["partition"], row["offset"])
            yield RawViolation(anomaly=Anomaly.SILENT_METRIC, topic_index=at[0], partition=at[1], offset=at[2])
