"""Mutators of progress: a pipeline commits nothing, by its own fault or by something else's."""

from __future__ import annotations

from typing import Any

from benchmarks.judge_mutants.base import Base
from benchmarks.judge_mutants.mutant import Breaks, Draft, mutator
from verification.vocabulary.anomalies import Anomaly

#: So long, nothing must have kept it from its inputs.
BOUND_MS = 90_000


def _stalled(base: Base, draft: Draft) -> Breaks:
    """Inputs wait, clients go on, and nothing explains it."""
    over = {"undisturbed_ms": BOUND_MS + draft.random.randrange(BOUND_MS), "pace": draft.pick((0.34, 1.0, 3.0))}
    _stall(base, draft, **over, waiting=draft.random.randrange(1, 1_000))
    return {Anomaly.NO_PROGRESS}


def _stalled_otherwise(base: Base, draft: Draft) -> Breaks:
    """Nothing waits, something moved, a fault or a start was not long ago, or clients were as slow."""
    others: list[dict[str, Any]] = [{"waiting": 0}, {"moved": 1}, {"undisturbed_ms": BOUND_MS - 1}, {"pace": 0.3}]
    _stall(base, draft, **draft.pick([*others, {"pace": None}]))
    return ()


def _stall(base: Base, draft: Draft, **over: Any) -> None:
    row = {
        "run": base.run["run"],
        "undisturbed_ms": BOUND_MS,
        "waiting": 1,
        "moved": 0,
        "pace": 1.0,
        "topic_index": 0,
        "partition": 0,
        "offset": 0,
        "instances": 1,
    }
    draft.rows["standstills"] = [{**row, **over}]


MUTATORS = tuple(mutator(make) for make in (_stalled, _stalled_otherwise))
