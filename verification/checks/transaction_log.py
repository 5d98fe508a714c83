"""`illegal-transition`, late completions and refused producers: checks the transaction log of a run, and its producers.

They have no dataframes (`verification.checks.walks`): they walk histories step by step, and the log of a run has some
thousand records. `verification.checks.transaction_states` has the rules of the coordinator's state machine,
`late_completions` and `refused_producers` in `verification.evidence.stalls` the bounds in time; the reference judge has
its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from verification.checks.transaction_states import judge
from verification.evidence.stalls.late_completions import late_completions as late_completions_of
from verification.evidence.stalls.refused_producers import refused_producers as refused_producers_of
from verification.evidence.transaction_log_file import TransactionLog
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.transaction_log import TOPIC_INDEX, Entry
from verification.vocabulary.violations import RawViolation

if TYPE_CHECKING:
    from verification.evidence.row_types import Row
    from verification.evidence.run_evidence import RunEvidence
    from verification.evidence.transaction_log_rows import Window

#: So many records before and after a violation are shown, of its own transactional id.
AROUND = 4


def illegal_transitions(frame: Iterable[Row]) -> Iterator[RawViolation]:
    """Records of the transaction log that cannot stand where they do. One violation per record, whose place it has."""
    for row in frame:
        log: TransactionLog = row["log"]
        judgement = judge(
            log.entries,
            starts=log.starts,
            new_ids=frozenset(log.header.new_ids),
            may_fail=partial(_within, row["failing_ms"]),
        )
        for step in judgement.illegal:
            yield RawViolation(
                anomaly=Anomaly.ILLEGAL_TRANSITION,
                topic_index=TOPIC_INDEX,
                partition=step.entry.partition,
                offset=step.entry.offset,
                detail=f"{step.entry.state} of {step.entry.transactional_id}: {step.why}",
            )


def late_completions(frame: Iterable[Row]) -> Iterator[RawViolation]:
    """`stuck-lso`, but in the middle of an upgrade: decisions that were not completed in time.

    One violation per decision; its place is the record of the decision in the transaction log.
    """
    for row in frame:
        for late in late_completions_of(row):
            yield RawViolation(
                anomaly=Anomaly.STUCK_LSO,
                topic_index=TOPIC_INDEX,
                partition=late.decided.partition,
                offset=late.decided.offset,
                detail=str(late),
            )


def refused_producers(frame: Iterable[Row]) -> Iterator[RawViolation]:
    """`stranded-producer`, but in the middle of an upgrade: producers whose operations all fail while every node is up.

    One violation per series; its operation is the last one.
    """
    for row in frame:
        for refused in refused_producers_of(row):
            yield RawViolation(
                anomaly=Anomaly.STRANDED_PRODUCER,
                process=refused.last.process,
                operation=refused.last.operation,
                detail=str(refused),
            )


def _within(window: Window | None, entry: Entry) -> bool:
    return window is not None and window[0] <= entry.appended_ms <= window[1]


def surroundings(run: RunEvidence, examples: Iterable[RawViolation]) -> list[dict[str, Any]]:
    """The records of the same transactional ids around some violations, as lines of `records.jsonl`."""
    entries = () if run.transaction_log is None else run.transaction_log.entries
    found: dict[tuple[int, int], dict[str, Any]] = {}
    at = {(each.partition, each.offset): each for each in entries}
    for example in examples:
        own = at.get((example.partition or 0, example.offset or 0)) if example.topic_index == TOPIC_INDEX else None
        if own is None:
            continue
        same = [
            each for each in entries if (each.partition, each.transactional_id) == (own.partition, own.transactional_id)
        ]
        same.sort(key=lambda each: each.offset)
        here = same.index(own)
        for each in same[max(0, here - AROUND) : here + AROUND + 1]:
            found[each.partition, each.offset] = _shown(each)
    return list(found.values())


def _shown(entry: Entry) -> dict[str, Any]:
    return {
        "topic_index": TOPIC_INDEX,
        "partition": entry.partition,
        "offset": entry.offset,
        "transactional_id": entry.transactional_id,
        "state": str(entry.state),
        "producer_id": entry.producer_id,
        "producer_epoch": entry.epoch,
        "places": sorted(entry.places),
        "client_version": entry.client_version,
        "leader_epoch": entry.leader_epoch,
        "appended_ms": entry.appended_ms,
    }
