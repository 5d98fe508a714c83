"""The reference judge: every definition a second time, in plain Python, for evidence that fits into memory.

It exists to be compared with the Spark checks. So it shares nothing with them except the rows
(`verification.evidence.rows`): one pass over dictionaries instead of exchanges and windows. If both agree on thousands
of generated histories, a mistake would have to exist twice, in two different algorithms. The code is slow and obvious
on purpose. Read it next to the docstrings of `verification.checks`, which define the anomalies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from verification.evidence.row_types import Rows
from verification.reference import (
    metrics,
    nodes,
    pipelines,
    reads,
    sequences,
    stability,
    states,
    transaction_log,
    writes,
)
from verification.reference.run_index import RunIndex
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.violations import RawViolation

#: Every definition. Those that need a log check that there is one.
JUDGES: tuple[Callable[[RunIndex], Iterable[RawViolation]], ...] = (
    writes.lost,
    writes.torn,
    writes.hidden,
    writes.duplicate,
    reads.read,
    stability.zombie,
    writes.reordered,
    sequences.broken,
    reads.polls,
    reads.captured_twice,
    reads.inconsistent,
    writes.phantom,
    stability.hung,
    stability.decided_late,
    stability.stuck,
    stability.copied,
    stability.aborted_inputs,
    stability.stranded,
    transaction_log.transitions,
    transaction_log.late,
    transaction_log.refused,
    nodes.lost,
    pipelines.stalled,
    metrics.silent,
    states.diverged,
)
#: The definitions that need only the delivered records and the answers to clients.
WITHOUT_LOG = (
    writes.lost,
    writes.torn,
    writes.duplicate,
    reads.read,
    reads.captured_twice,
    stability.zombie,
    stability.copied,
    stability.stranded,
    transaction_log.transitions,
    transaction_log.late,
    transaction_log.refused,
    nodes.lost,
    pipelines.stalled,
    metrics.silent,
)


def judge_rows(rows: Rows) -> list[RawViolation]:
    """Every violation of one run in a fixed order, consequences included."""
    index = RunIndex(rows)
    found = [violation for find in (JUDGES if index.has_log else WITHOUT_LOG) for violation in find(index)]
    order = list(Anomaly)
    return sorted(found, key=lambda each: (order.index(each.anomaly), repr(each)))


def summary(violations: Iterable[RawViolation]) -> str:
    """The number of violations of each anomaly, in one line."""
    counts = Counter(each.anomaly for each in violations)
    return ", ".join(f"{count} {anomaly}" for anomaly, count in sorted(counts.items())) or "nothing"
