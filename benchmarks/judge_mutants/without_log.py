"""Mutators of runs without a log, which are judged only by delivered records against answers to clients.

Such a subject writes no control records. Each mutator first removes the log and the read_uncommitted capture, which by
itself changes nothing. Anomalies that only a log, or times of reading, would show are not judged in such a run.
"""

from __future__ import annotations

from benchmarks.judge_mutants.base import Base, place_of
from benchmarks.judge_mutants.mutant import Breaks, Draft, mutator
from benchmarks.judge_mutants.outcomes import superseded_by_time
from benchmarks.judge_mutants.writes import part, several, uncopied
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.identity import NO_SOURCE


def _without(draft: Draft) -> None:
    draft.change("runs", lambda _: True, has_log=False)
    draft.rows |= {"log": [], "uncommitted": []}


def _no_log(_: Base, draft: Draft) -> Breaks:
    """The log is missing, and nothing else is changed."""
    _without(draft)
    return ()


def _no_log_and_lost(base: Base, draft: Draft) -> Breaks:
    """There is no log, and a promised record outside a transaction, or a whole transaction, is not delivered."""
    wholes = [base.of[key] for key in base.transactions("committed", visible=True)]
    chosen = draft.pick([*wholes, *[[each] for each in base.promised()[: len(wholes) or None]]])
    draft.vanish(each.place for each in chosen)
    _without(draft)
    return {Anomaly.LOST_WRITE, *uncopied(chosen)}


def _no_log_and_torn(base: Base, draft: Draft) -> Breaks:
    """There is no log, and some records of a transaction are not delivered, whether it was answered or not."""
    keys = several(base, "committed")
    key = draft.pick(keys)
    gone = part(base, key, draft)
    draft.vanish(each.place for each in gone)
    if draft.random.random() < 0.5:
        draft.tell(key, outcome="info", told="unknown")
    _without(draft)
    return {Anomaly.TORN_TRANSACTION, *uncopied(gone)}


def _no_log_and_aborted(base: Base, draft: Draft) -> Breaks:
    """There is no log, and an aborted record is delivered."""
    keys = [
        key for key in base.transactions("aborted", visible=False) if base.of[key][0].row["source_offset"] == NO_SOURCE
    ]
    place = draft.pick(base.of[draft.pick(keys)]).place
    draft.add("committed", next(row for row in base.rows["uncommitted"] if place_of(row) == place))
    _without(draft)
    return {Anomaly.ABORTED_READ}


def _no_log_and_twice(base: Base, draft: Draft) -> Breaks:
    """There is no log, and a record is delivered twice: at another offset, or at the same one."""
    row = draft.pick(base.rows["committed"])
    again = draft.random.random() < 0.5
    end = base.ends[row["topic_index"], row["partition"]]["high_watermark"]
    draft.add("committed", row, **({} if again else {"offset": end}))
    _without(draft)
    return {Anomaly.NONMONOTONIC_POLL if again else Anomaly.DUPLICATE}


def _no_log_and_superseded(base: Base, draft: Draft) -> Breaks:
    """There is no log, and a commit of a superseded instance is delivered."""
    breaks = superseded_by_time(base, draft)
    _without(draft)
    return breaks


MUTATORS = tuple(
    mutator(make)
    for make in (
        _no_log,
        _no_log_and_lost,
        _no_log_and_torn,
        _no_log_and_aborted,
        _no_log_and_twice,
        _no_log_and_superseded,
    )
)
