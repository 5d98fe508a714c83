"""lost-node: everything that must be so for each lost node, in one condition."""

from __future__ import annotations

from collections.abc import Iterator

from verification.reference.run_index import RunIndex
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.violations import RawViolation

#: From this wait on, the machine must have been fast enough for clients to keep a third of their pace.
_LONG_MS = 30_000


def lost(index: RunIndex) -> Iterator[RawViolation]:
    """lost-node."""
    for row in index.rows.get("lost_nodes", ()):
        runs = row["exit_status"] is None
        fast = row["waited_ms"] < _LONG_MS or 3 * (row["pace"] or 0) >= 1
        said = runs or (row["exit_status"] >= 0 and row["error"])
        changed = row["release"] != row["before"] or row["had_joined"]
        if changed and fast and said and not row["causes"]:
            yield RawViolation(anomaly=Anomaly.LOST_NODE)
