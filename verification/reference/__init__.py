"""The reference judge: every definition once more, in plain Python, for evidence that fits into memory.

It exists to be compared with the Spark checks, so it shares nothing with them but the rows
(`verification.evidence.rows`): one pass over dictionaries instead of exchanges and windows. Where both agree on
thousands of generated histories, a mistake would have to be made twice, in two ways. Slow and obvious is the point;
read it next to the docstrings of `verification.checks`, which define the anomalies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from verification.evidence.row_types import Rows
from verification.reference import reads, sequences, stability, transaction_log, writes
from verification.reference.run_index import RunIndex
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.violations import RawViolation

#: Every definition; those that need a log ask for it themselves.
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
    stability.stuck,
    stability.copied,
    stability.stranded,
    transaction_log.transitions,
)
#: What can be judged by delivered versus told alone.
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
)


def judge_rows(rows: Rows) -> list[RawViolation]:
    """Every violation of one run, unfolded, in a fixed order."""
    index = RunIndex(rows)
    found = [violation for find in (JUDGES if index.has_log else WITHOUT_LOG) for violation in find(index)]
    order = list(Anomaly)
    return sorted(found, key=lambda each: (order.index(each.anomaly), repr(each)))


def summary(violations: Iterable[RawViolation]) -> str:
    """How many of what, in one line."""
    counts = Counter(each.anomaly for each in violations)
    return ", ".join(f"{count} {anomaly}" for anomaly, count in sorted(counts.items())) or "nothing"
