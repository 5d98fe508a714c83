"""The reference judge: every definition once more, in plain Python, for evidence that fits into memory.

It exists to be compared with the Spark checks, so it shares nothing with them but the rows (`verification.rows`): one
pass over dictionaries instead of exchanges and windows. Where both agree on thousands of generated histories, a mistake
would have to be made twice, in two ways. Slow and obvious is the point; read it next to the docstrings of
`verification.checks`, which define the anomalies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from verification.anomalies import Anomaly
from verification.folding import RawViolation
from verification.reference import coordinating, numbering, reading, standing, writing
from verification.reference.case import Case
from verification.row_types import Rows

#: Every definition; those that need a log ask for it themselves.
JUDGES: tuple[Callable[[Case], Iterable[RawViolation]], ...] = (
    writing.lost,
    writing.torn,
    writing.hidden,
    writing.duplicate,
    reading.read,
    standing.zombie,
    writing.reordered,
    numbering.broken,
    reading.polls,
    reading.captured_twice,
    reading.inconsistent,
    writing.phantom,
    standing.hung,
    standing.stuck,
    standing.copied,
    standing.stranded,
    coordinating.transitions,
)
#: What can be judged by delivered versus told alone.
WITHOUT_LOG = (
    writing.lost,
    writing.torn,
    writing.duplicate,
    reading.read,
    reading.captured_twice,
    standing.zombie,
    standing.copied,
    standing.stranded,
    coordinating.transitions,
)


def judge_rows(rows: Rows) -> list[RawViolation]:
    """Every violation of one run, unfolded, in a fixed order."""
    case = Case(rows)
    found = [violation for find in (JUDGES if case.has_log else WITHOUT_LOG) for violation in find(case)]
    order = list(Anomaly)
    return sorted(found, key=lambda each: (order.index(each.anomaly), repr(each)))


def summary(violations: Iterable[RawViolation]) -> str:
    """How many of what, in one line."""
    counts = Counter(each.anomaly for each in violations)
    return ", ".join(f"{count} {anomaly}" for anomaly, count in sorted(counts.items())) or "nothing"
