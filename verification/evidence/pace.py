"""The pace of clients at a time, compared with their pace before: whether the machine was fast enough to blame a subject.

Free of pyspark.
"""

from __future__ import annotations

from verification.evidence.run_evidence import RunEvidence
from verification.vocabulary.history import Operation, Outcome

#: Clients that kept a third of their pace were three times as slow as usual, and the bounds leave room for that.
PACE_LEAST = 1 / 3


def pace(run: RunEvidence, from_ns: int, until_ns: int, *, before_ns: int) -> float | None:
    """The operations per time that ended ok in a time, divided by those before a moment; None if none ended before."""
    done = [each.completed_ns for each in run.history.of(Operation) if each.outcome is Outcome.OK and each.completed_ns]
    before = [each for each in done if each < before_ns]
    if not before or min(before) == before_ns or until_ns <= from_ns:
        return None
    usual = len(before) / (before_ns - min(before))
    return sum(from_ns <= each <= until_ns for each in done) / (until_ns - from_ns) / usual
