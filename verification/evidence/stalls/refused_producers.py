"""Refused producers: in an upgrade every operation of a transactional producer fails, although every node is up.

Client libraries ask again after an error that passes. An operation that fails was given up, and the next one begins anew.
So only a series counts: `SERIES_MIN` failed operations of one process in a row, which last from the beginning of the first
to the end of the last for longer than readers may be held back (`late_completions.LATE_MS`). All of it must lie in one time
in which no step of the schedule was under way and no fault stood (`transaction_log_rows.undisturbed_ms`). A process that a
busy machine stops has few operations and no failed ones; a call that hangs (docs/upgrades.md) is one operation.

Free of pyspark.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from verification.evidence.row_types import Row
from verification.evidence.run_evidence import RunEvidence
from verification.evidence.stalls.late_completions import LATE_MS
from verification.evidence.transaction_log_rows import NS_PER_MS, Answer, Window, rows, wall_clock_ns
from verification.evidence.upgrade_state import leader_at
from verification.vocabulary.violations import RawViolation

SERIES_MIN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedProducer:
    """The failed operations of one process in one undisturbed time, in their order."""

    answers: tuple[Answer, ...]

    @property
    def last(self) -> Answer:
        """The last one, which stands for all."""
        return self.answers[-1]

    def __str__(self) -> str:
        lasted_s = (self.last.ended_ms - self.answers[0].began_ms) / 1_000
        return (
            f"all {len(self.answers)} operations of process {self.last.process} failed for {lasted_s:.1f} s in which every "
            "node was up and no fault stood"
        )


def refused_producers(row: Row) -> Iterator[RefusedProducer]:
    """The refused producers of a run, given the row of its transaction log."""
    for window in row["undisturbed_ms"]:
        within = (each for each in row["answers"] if _lies_in(each, window))
        for (_, failed), some in groupby(within, key=lambda each: (each.process, each.failed)):
            series = RefusedProducer(answers=tuple(some))
            lasted_ms = series.last.ended_ms - series.answers[0].began_ms
            if failed and len(series.answers) >= SERIES_MIN and lasted_ms > LATE_MS:
                yield series


def of_violation(evidence: RunEvidence, violation: RawViolation) -> RefusedProducer | None:
    """The refused producer that a violation is about; None when it is about something else."""
    refused = (each for row in rows(evidence) for each in refused_producers(row))
    return next((each for each in refused if (each.last.process, each.last.operation) == violation.operation_key), None)


def leaders(evidence: RunEvidence, refused: RefusedProducer) -> frozenset[int]:
    """The nodes that led the partitions which the operations added to their transactions, as far as known."""
    at_ns = refused.last.ended_ms * NS_PER_MS - (wall_clock_ns(evidence) or 0)
    entries = () if evidence.transaction_log is None else evidence.transaction_log.entries
    places = {
        place.rpartition("-")
        for each in entries
        if each.transactional_id == refused.last.transactional_id
        and refused.answers[0].began_ms <= each.appended_ms <= refused.last.ended_ms
        for place in each.places
    }
    found = (leader_at(evidence, topic, int(partition), at_ns) for topic, _, partition in places)
    return frozenset(each for each in found if each is not None)


def _lies_in(answer: Answer, window: Window) -> bool:
    return window[0] <= answer.began_ms and answer.ended_ms <= window[1]
