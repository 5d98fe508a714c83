"""state-divergence: the outputs of each key as one list of places and counts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from verification.reference.run_index import RunIndex, at, violation
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.violations import Place, RawViolation


def diverged(index: RunIndex) -> Iterator[RawViolation]:
    """state-divergence."""
    keys: dict[tuple[int, str], list[tuple[Place, int]]] = defaultdict(list)
    for row in index.rows.get("counts", ()):
        if row["key"] is None or row["count"] is None:
            yield violation(Anomaly.STATE_DIVERGENCE, None, at(row))
        else:
            keys[row["topic_index"], row["key"]].append((at(row), row["count"]))
    for outputs in keys.values():
        outputs.sort()
        first, _ = outputs[0]
        for (before, counted), (place, count) in zip([(first, 0), *outputs], outputs, strict=False):
            if (*place[:2], count) != (*before[:2], counted + 1):
                yield violation(Anomaly.STATE_DIVERGENCE, None, place)
