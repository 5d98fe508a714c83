"""The checks: pure functions from evidence to violations, and `CHECKS`, the list of them.

A check finds and never judges: requirements decide what a subject may do. Every check reads the two shared dataframes
(`facts.derive`) and avoids further exchanges: places are partitioned by (run, topic, partition), records by (run, process,
operation). One job collects the violations of all checks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from verification.checks import (
    contents,
    copies,
    order,
    polls,
    reads,
    sequences,
    stability,
    survival,
    transactions,
    writes,
    zombies,
)
from verification.checks.facts import EvidenceFacts
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.experiment import Experiment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def _always(_: Experiment) -> bool:
    return True


def _has_log(experiment: Experiment) -> bool:
    return experiment.has_log


def _claims_order(experiment: Experiment) -> bool:
    return experiment.has_log and experiment.order_claimed


def _claims_survival(experiment: Experiment) -> bool:
    return experiment.survival_claimed


def _copies(experiment: Experiment) -> bool:
    return experiment.fan_out is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A check, the anomaly that it finds, and whether an experiment can show it; if not, its plan is left out.

    `without_records` marks a check that can find something although no record is suspect (`facts.without_records`).
    """

    name: str
    anomaly: Anomaly
    find: Callable[[EvidenceFacts], DataFrame]
    applies: Callable[[Experiment], bool] = _has_log
    without_records: bool = False


CHECKS: tuple[Check, ...] = (
    Check(name="lost-write", anomaly=Anomaly.LOST_WRITE, find=writes.lost_write, applies=_always),
    Check(name="phantom-record", anomaly=Anomaly.PHANTOM_RECORD, find=writes.phantom_record),
    Check(name="inconsistent-offset", anomaly=Anomaly.INCONSISTENT_OFFSET, find=contents.inconsistent_offset),
    Check(
        name="torn-transaction", anomaly=Anomaly.TORN_TRANSACTION, find=transactions.torn_transaction, applies=_always
    ),
    Check(name="hidden-committed", anomaly=Anomaly.HIDDEN_COMMITTED, find=transactions.hidden_committed),
    Check(name="aborted-read", anomaly=Anomaly.ABORTED_READ, find=reads.aborted_read, applies=_always),
    Check(name="early-read", anomaly=Anomaly.EARLY_READ, find=reads.early_read),
    Check(name="zombie-write", anomaly=Anomaly.ZOMBIE_WRITE, find=zombies.zombie_write, applies=_always),
    Check(name="duplicate", anomaly=Anomaly.DUPLICATE, find=writes.duplicate, applies=_always),
    Check(name="duplicate-copy", anomaly=Anomaly.DUPLICATE, find=copies.duplicate_copy, applies=_copies),
    Check(
        name="offset-without-output",
        anomaly=Anomaly.OFFSET_WITHOUT_OUTPUT,
        find=copies.offset_without_output,
        applies=_copies,
    ),
    Check(
        name="output-without-offset",
        anomaly=Anomaly.OUTPUT_WITHOUT_OFFSET,
        find=copies.output_without_offset,
        applies=_copies,
    ),
    Check(name="aborted-input", anomaly=Anomaly.ABORTED_READ, find=copies.aborted_input, applies=_copies),
    Check(name="reordered-write", anomaly=Anomaly.REORDERED_WRITE, find=order.reordered_write, applies=_claims_order),
    Check(name="broken-sequence", anomaly=Anomaly.BROKEN_SEQUENCE, find=sequences.broken_sequence),
    Check(name="nonmonotonic-poll", anomaly=Anomaly.NONMONOTONIC_POLL, find=polls.nonmonotonic_poll, applies=_always),
    Check(name="poll-skip", anomaly=Anomaly.POLL_SKIP, find=polls.poll_skip),
    Check(
        name="hung-transaction", anomaly=Anomaly.HUNG_TRANSACTION, find=stability.hung_transaction, without_records=True
    ),
    Check(name="decided-late", anomaly=Anomaly.DECIDED_LATE, find=stability.decided_late),
    Check(name="stuck-lso", anomaly=Anomaly.STUCK_LSO, find=stability.stuck_lso, without_records=True),
    Check(
        name="stranded-producer",
        anomaly=Anomaly.STRANDED_PRODUCER,
        find=survival.stranded_producer,
        applies=_claims_survival,
        without_records=True,
    ),
)


def _together(frames: Sequence[DataFrame]) -> DataFrame:
    # By halves: Spark analyses every union with all plans below it, so a chain would cost the square of its length.
    if len(frames) == 1:
        return frames[0]
    middle = len(frames) // 2
    return _together(frames[:middle]).union(_together(frames[middle:]))


def united(facts: EvidenceFacts, checks: Sequence[Check]) -> DataFrame:
    """The violations of several checks in one dataframe."""
    return _together([check.find(facts) for check in checks])
