"""no-progress: everything that must be so for a pipeline that stands still, or for a client, in one condition each."""

from __future__ import annotations

from collections.abc import Iterator

from verification.reference.run_index import RunIndex
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.violations import RawViolation

#: So long, inputs wait and nothing keeps the pipeline from them.
_BOUND_MS = 90_000
#: The time in which another client must have written a transaction.
_FAST_MS = 5_000


def stalled(index: RunIndex) -> Iterator[RawViolation]:
    """no-progress."""
    for row in index.rows.get("unserved_clients", ()):
        again = row["given_up"] != "" and row["undisturbed"]
        unserved = row["given_up"] == "" and row["unserved"] >= max(3, row["ok"] / 2)
        if row["tried_ms"] <= _FAST_MS and row["worked"] > 0 and (again or unserved):
            yield RawViolation(anomaly=Anomaly.NO_PROGRESS)
    for row in index.rows.get("standstills", ()):
        free = row["undisturbed_ms"] >= _BOUND_MS and 3 * (row["pace"] or 0) >= 1
        if free and row["waiting"] > 0 and row["moved"] == 0:
            at = (row["topic_index"], row["partition"], row["offset"])
            yield RawViolation(anomaly=Anomaly.NO_PROGRESS, topic_index=at[0], partition=at[1], offset=at[2])
