"""Mutators of metrics: the lag of a last stable offset that stands, as its leader states it or hides it."""

from __future__ import annotations

from typing import Any

from benchmarks.judge_mutants.base import Base
from benchmarks.judge_mutants.mutant import Breaks, Draft, mutator
from verification.vocabulary.anomalies import Anomaly

#: So long, an offset must stand.
BOUND_MS = 15_000


def _silent(base: Base, draft: Draft) -> Breaks:
    """The offset stands, and the metric says 0."""
    _stand(base, draft, stood_ms=BOUND_MS + draft.random.randrange(BOUND_MS))
    return {Anomaly.SILENT_METRIC}


def _not_silent(base: Base, draft: Draft) -> Breaks:
    """The metric said so, nothing is known of it, or the time was short."""
    others: list[dict[str, Any]] = [{"stated": 1.0}, {"stated": None}, {"stood_ms": BOUND_MS - 1}]
    _stand(base, draft, **draft.pick(others))
    return ()


def _stand(base: Base, draft: Draft, **over: Any) -> None:
    row = {"run": base.run["run"], "topic_index": 0, "partition": 0, "offset": 0, "leader": 1, "stated": 0.0}
    draft.rows["silences"] = [{**row, "stood_ms": BOUND_MS, **over}]


MUTATORS = tuple(mutator(make) for make in (_silent, _not_silent))
