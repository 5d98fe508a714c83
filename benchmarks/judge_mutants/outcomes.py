"""Mutators of outcomes: answers about transactions, control records, owners of ids, and open transactions."""

from __future__ import annotations

from benchmarks.judge_mutants.base import Base, by_partition, place_of
from benchmarks.judge_mutants.mutant import MS, Breaks, Draft, mutator
from benchmarks.judge_mutants.sequences import unfollowed
from benchmarks.judge_mutants.writes import part, several, uncopied
from verification.evidence.row_types import Row
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.violations import OperationKey

UNKNOWN = {"outcome": "info", "told": "unknown"}


def superseded(base: Base, key: OperationKey) -> bool:
    """Whether a later instance of the transactional id was initialised before this operation requested its end."""
    own = base.operations[key]
    return own["decided_ns"] is not None and any(
        row["action"] == "init"
        and row["transactional_id"] == own["transactional_id"]
        and row["process"] > own["process"]
        and row["completed_ns"] < own["decided_ns"]
        for row in base.operations.values()
    )


def _unanswered_commit(base: Base, draft: Draft) -> Breaks:
    """The answer to a commit that took place is lost."""
    keys = base.transactions("committed", visible=True)
    draft.tell(draft.pick(keys), **UNKNOWN)
    return ()


def _unanswered_and_gone(base: Base, draft: Draft) -> Breaks:
    """The answer to a commit and all its records are lost; harmless if no record of their producer follows."""
    keys = base.transactions("committed", visible=True)
    key = draft.pick(keys)
    draft.tell(key, **UNKNOWN)
    draft.vanish(each.place for each in base.of[key])
    return {*uncopied(base.of[key]), *unfollowed(draft)}


def _unanswered_and_torn(base: Base, draft: Draft) -> Breaks:
    """The answer to a commit is lost, and so are some of its records."""
    keys = several(base, "committed")
    key = draft.pick(keys)
    gone = part(base, key, draft)
    draft.tell(key, **UNKNOWN)
    draft.vanish(each.place for each in gone)
    return {Anomaly.TORN_TRANSACTION, *uncopied(gone)}


def _told_committed(base: Base, draft: Draft) -> Breaks:
    """A transaction that was aborted, or is unknown, is answered as committed."""
    keys = [*base.transactions("aborted", visible=False), *base.transactions("unknown", visible=False)]
    draft.tell(draft.pick(keys), outcome="ok", told="committed")
    return {Anomaly.LOST_WRITE}


def _told_aborted(base: Base, draft: Draft) -> Breaks:
    """A transaction that was committed and read is answered as failed."""
    keys = base.transactions("committed", visible=True)
    draft.tell(draft.pick(keys), outcome="fail", told="aborted")
    return {Anomaly.ABORTED_READ}


def _torn_by_marker(base: Base, draft: Draft) -> Breaks:
    """One partition of a committed transaction got an abort marker; readers see it aborted."""
    keys = [key for key in several(base, "committed") if len({each.partition for each in base.of[key]}) > 1]
    records = draft.pick(by_partition(base.of[draft.pick(keys)]))
    draft.decide(records, "abort")
    draft.hide(each.place for each in records)
    return {Anomaly.TORN_TRANSACTION, *uncopied(records)}


def _aborted_after_all(base: Base, draft: Draft) -> Breaks:
    """All partitions of a transaction got abort markers, though its client was told committed; readers see it aborted."""
    keys = base.transactions("committed", visible=True)
    records = base.of[draft.pick(keys)]
    draft.decide(records, "abort")
    draft.hide(each.place for each in records)
    return {Anomaly.LOST_WRITE, *uncopied(records)}


def _aborted_unanswered(base: Base, draft: Draft) -> Breaks:
    """A commit was not answered, and all its partitions got abort markers: it never took place."""
    keys = base.transactions("committed", visible=True)
    key = draft.pick(keys)
    draft.tell(key, **UNKNOWN)
    draft.decide(base.of[key], "abort")
    draft.hide(each.place for each in base.of[key])
    return uncopied(base.of[key])


def _committed_unanswered(base: Base, draft: Draft) -> Breaks:
    """A transaction of unknown outcome turns out to be committed; that of a superseded instance must not."""
    keys = base.transactions("unknown", visible=False)
    key = draft.pick(keys)
    draft.decide(base.of[key], "commit")
    draft.show(base.of[key])
    return {Anomaly.ZOMBIE_WRITE} if superseded(base, key) else ()


def _abortable(base: Base) -> list[OperationKey]:
    """Aborted transactions whose abort was requested by the owner of the id, and that copied nothing."""
    return [
        key
        for key in base.transactions("aborted", visible=False)
        if base.operations[key]["decided_ns"] is not None
        and not superseded(base, key)
        and all(each.row["source_offset"] < 0 for each in base.of[key])
    ]


def _committed_after_all(base: Base, draft: Draft) -> Breaks:
    """All partitions of an aborted transaction got commit markers; readers see it committed."""
    keys = _abortable(base)
    records = base.of[draft.pick(keys)]
    draft.decide(records, "commit")
    draft.show(records)
    return {Anomaly.ABORTED_READ}


def _committed_unseen(base: Base, draft: Draft) -> Breaks:
    """All partitions of an aborted transaction got commit markers, and no reader sees any of it."""
    keys = _abortable(base)
    draft.decide(base.of[draft.pick(keys)], "commit")
    return {Anomaly.HIDDEN_COMMITTED}


def _successions(base: Base) -> list[tuple[Row, list[OperationKey]]]:
    """Initialisations of successors, with the visible transactions of the instances before them."""
    found = []
    for init in base.operations.values():
        if init["action"] != "init":
            continue
        before = [
            key
            for key in base.transactions("committed", visible=True)
            if base.operations[key]["transactional_id"] == init["transactional_id"] and key[0] < init["process"]
        ]
        if before:
            found.append((init, before))
    return found


def _init(draft: Draft, init: Row, completed_ns: int) -> None:
    draft.tell(
        (init["process"], init["operation"]),
        invoked_ns=min(init["invoked_ns"], completed_ns - MS),
        completed_ns=completed_ns,
    )


def superseded_by_time(base: Base, draft: Draft) -> Breaks:
    """A successor was initialised before an older instance requested a commit that took place."""
    init, before = draft.pick(_successions(base))
    decided_ns = base.operations[draft.pick(before)]["decided_ns"]
    _init(draft, init, decided_ns - draft.pick((1, 1_000, MS)))
    return {Anomaly.ZOMBIE_WRITE}


def _succeeded_in_time(base: Base, draft: Draft) -> Breaks:
    """A successor was initialised at or after the moment when the older instance requested its last commit."""
    successions = _successions(base)
    init, before = draft.pick(successions)
    last_ns = max(base.operations[key]["decided_ns"] for key in before)
    _init(draft, init, last_ns + draft.pick((0, 1, 1_000)))
    return ()


def _unbound(base: Base, draft: Draft) -> Breaks:
    """In the log a record is outside any transaction; harmless if it is visible anyway, else readers should have it."""
    bound = [each for each in base.records if base.told(each) is not None]
    record = draft.pick(bound)
    draft.change("log", lambda row: place_of(row) == record.place, transactional=False)
    if record.visible:
        return ()
    return {Anomaly.HIDDEN_COMMITTED, *({Anomaly.ZOMBIE_WRITE} if superseded(base, record.key) else ())}


def _stranded(base: Base, draft: Draft) -> Breaks:
    """A producer receives a fatal error; a violation where survival is claimed, without a successor and a timeout."""
    keys = [key for key in base.transactions("aborted") if base.operations[key]["completed_ns"] is not None]
    key = draft.pick(keys)
    claimed = draft.random.random() < 0.7
    own = base.operations[key]
    spare_ns = draft.pick((0, 1, 10**9))
    timeout_ns = own["completed_ns"] - own["invoked_ns"] + spare_ns
    draft.change("runs", lambda _: True, survival_claimed=claimed, transaction_timeout_ns=timeout_ns)
    draft.tell(key, fatal=True, outcome="fail")
    replaced = any(
        row["action"] == "init"
        and row["transactional_id"] == own["transactional_id"]
        and row["process"] > key[0]
        and row["completed_ns"] < own["completed_ns"]
        for row in base.operations.values()
    )
    return {Anomaly.STRANDED_PRODUCER} if claimed and spare_ns and not replaced else ()


MUTATORS = tuple(
    mutator(make)
    for make in (
        _unanswered_commit,
        _unanswered_and_gone,
        _unanswered_and_torn,
        _told_committed,
        _told_aborted,
        _torn_by_marker,
        _aborted_after_all,
        _aborted_unanswered,
        _committed_unanswered,
        _committed_after_all,
        _committed_unseen,
        superseded_by_time,
        _succeeded_in_time,
        _unbound,
        _stranded,
    )
)
