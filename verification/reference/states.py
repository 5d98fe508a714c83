"""state-divergence: the outputs of each key as one list of places and counts, compared with the state at the end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

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
    jumps: set[Place] = set()
    went_back: set[Place] = set()
    for outputs in keys.values():
        outputs.sort()
        first, _ = outputs[0]
        for (before, counted), (place, count) in zip([(first, 0), *outputs], outputs, strict=False):
            if (*place[:2], count) != (*before[:2], counted + 1):
                (went_back if place[:2] == before[:2] and 0 < count <= counted else jumps).add(place)
    last = {key: outputs[-1] for key, outputs in keys.items()}
    for place in jumps | set(_not_kept(index, last)):
        yield violation(Anomaly.STATE_DIVERGENCE, None, place)
    for place in went_back:
        yield violation(Anomaly.STATE_DIVERGENCE, None, place, cause="again")
    spare = {(row["origin"], row["key"]) for row in index.rows.get("kept_counts", ())}
    for _ in [each for each in spare if each[1] not in {key for _, key in last}]:
        yield RawViolation(anomaly=Anomaly.STATE_DIVERGENCE)


def _not_kept(index: RunIndex, last: Mapping[tuple[int, str], tuple[Place, int]]) -> Iterator[Place]:
    """The last outputs whose key and count are not all that a store, or a changelog, has of their key."""
    kept: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for row in index.rows.get("kept_counts", ()):
        kept[row["origin"]].add((row["key"], row["count"]))
    for state in kept.values():
        for (_, key), (place, count) in last.items():
            if {said for name, said in state if name == key} != {count}:
                yield place
