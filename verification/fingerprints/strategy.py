"""Chooses which runs are judged by fingerprints first."""

from __future__ import annotations

from enum import StrEnum

from verification.evidence.run_evidence import RunEvidence

#: Rows of the log from which on aggregating them costs less than checking each. Aggregating takes a dozen small jobs.
#: Their planning costs some 60 s of processor time in a session that has compiled nothing yet, and a tenth of a full
#: check later.
ROWS_MIN = 500_000


class Strategy(StrEnum):
    """How runs are judged: by size, every record, or by fingerprints first wherever they fit.

    By size, small runs in which everything agrees pass first (`verification.judge.quick_pass`).
    """

    BY_SIZE = "by size"
    EVERY_RECORD = "every record"
    FINGERPRINTS = "fingerprints"


def fits(run: RunEvidence, strategy: Strategy = Strategy.BY_SIZE) -> bool:
    """Whether a run is judged by fingerprints first.

    It needs a log, because outcomes follow from it. It must not have live observers, because order and time of their
    deliveries can only be compared record by record. A copier's group must have one input topic (`checks.copies`). The
    run must be large enough.
    """
    fitting = _decided_by_log(run) and not run.experiment.observers
    return fitting and (
        strategy is Strategy.FINGERPRINTS
        or (strategy is Strategy.BY_SIZE and run.capture_reader.count("log") >= ROWS_MIN)
    )


def is_small(run: RunEvidence) -> bool:
    """Whether a worker can hold the whole run in memory and decide whether everything in it agrees."""
    readers = 1 + len(run.experiment.observers)
    return _decided_by_log(run) and run.capture_reader.count("log") * readers < ROWS_MIN


def _decided_by_log(run: RunEvidence) -> bool:
    inputs = {each.topic for each in run.captures.group_offsets if each.group == run.experiment.group}
    return run.experiment.has_log and len(inputs) <= 1
