"""Mutators of the schedule: a node is lost in an upgrade, by its release or by something else."""

from __future__ import annotations

from typing import Any

from benchmarks.judge_mutants.base import Base
from benchmarks.judge_mutants.mutant import Breaks, Draft, mutator
from verification.vocabulary.anomalies import Anomaly

FATAL = "[2026-11-25T12:00:01.000Z] ERROR [main] Exiting Kafka due to fatal exception (Kafka$)"
#: From this wait on, clients must have kept a third of their pace.
LONG_MS = 30_000


def _lost(base: Base, draft: Draft) -> Breaks:
    """A node does not come back with another release, and nothing else explains it."""
    _lose(base, draft, waited_ms=draft.random.randrange(1, LONG_MS), pace=draft.pick((None, 0.0, 0.3)))
    return {Anomaly.LOST_NODE}


def _lost_for_long(base: Base, draft: Draft) -> Breaks:
    """A node still runs when it is given up; a violation where clients kept a third of their pace."""
    pace = draft.pick((None, 0.0, 0.3, 0.4, 2.0))
    waited_ms = LONG_MS + draft.random.randrange(LONG_MS)
    _lose(base, draft, exit_status=None, error="", waited_ms=waited_ms, pace=pace)
    return {Anomaly.LOST_NODE} if pace is not None and pace > 1 / 3 else ()


def _lost_otherwise(base: Base, draft: Draft) -> Breaks:
    """A node is lost on its own release, by a signal, for lack of something, or without a word of Kafka."""
    causes = ("its address was not free",)
    others: list[dict[str, Any]] = [{"release": "4.1.2"}, {"exit_status": -9}, {"causes": causes}, {"error": ""}]
    _lose(base, draft, **draft.pick(others))
    return ()


def _lose(base: Base, draft: Draft, **over: Any) -> None:
    row = {
        "run": base.run["run"],
        "node": 2,
        "before": "4.1.2",
        "release": "4.3.1",
        "exit_status": 1,
        "had_joined": False,
        "waited_ms": 5_000,
        "pace": 1.0,
        "causes": (),
        "error": FATAL,
        "log": FATAL,
    }
    draft.rows["lost_nodes"] = [{**row, **over}]


MUTATORS = tuple(mutator(make) for make in (_lost, _lost_for_long, _lost_otherwise))
