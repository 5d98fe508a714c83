"""Mutators of everything in a partition's log except records: control records, epochs, and open transactions."""

from __future__ import annotations

from benchmarks.judge_mutants.base import Base, by_partition, place_of
from benchmarks.judge_mutants.mutant import Breaks, Draft, mutator
from benchmarks.judge_mutants.sequences import unfollowed
from verification.evidence.columns import IDENTITY
from verification.evidence.row_types import Row
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.violations import Partition


def _followers(base: Base, marker: Row) -> list[Row]:
    """The later rows of a control record's producer in its partition."""
    return sorted(
        (
            row
            for row in base.rows["log"]
            if place_of(row)[:2] == place_of(marker)[:2]
            and row["producer_id"] == marker["producer_id"]
            and row["offset"] > marker["offset"]
        ),
        key=place_of,
    )


def _marker_gone(base: Base, draft: Draft) -> Breaks:
    """The last control record of a committed transaction is gone from a partition, whose LSO does not advance any more."""
    keys = base.transactions("committed", visible=True)
    several = by_partition(base.of[draft.pick(keys)])
    ends = [records for records in several if not _followers(base, draft.marker_of(records))]
    records = draft.pick(ends)
    marker = draft.marker_of(records)
    draft.drop("log", lambda row: row is marker)
    _stand(draft, records[0].partition, min(each.place[2] for each in records))
    return {Anomaly.HUNG_TRANSACTION}


def _stand(draft: Draft, partition: Partition, stable: int) -> None:
    """Fix a partition's last stable offset there: no read_committed reader receives anything from it on."""
    draft.hide(each.place for each in draft.base.partitions[partition] if each.place[2] >= stable)
    draft.change("ends", lambda row: (row["topic_index"], row["partition"]) == partition, last_stable_offset=stable)


def _written_late(base: Base, draft: Draft) -> Breaks:
    """A record of a transaction was written after the transaction was over, and is open at the end of its partition."""
    record = draft.pick([each for each in base.records if base.told(each) is not None])
    draft.vanish([record.place])
    made = draft.append(record.partition, record.row, visible=False)
    draft.change(
        "ends",
        lambda row: (row["topic_index"], row["partition"]) == record.partition,
        last_stable_offset=made["offset"],
    )
    return {Anomaly.HUNG_TRANSACTION}


def _marker_adopted(base: Base, draft: Draft) -> Breaks:
    """A control record is gone, and the one of the producer's next transaction there decides the same."""
    candidates = []
    for key in base.transactions("committed", visible=True):
        for records in by_partition(base.of[key]):
            marker = draft.marker_of(records)
            followers = _followers(base, marker)
            decided = next((row["control"] for row in followers if row["control"] is not None), None)
            if followers and followers[0]["control"] is None and decided == marker["control"]:
                candidates.append(marker)
    gone = draft.pick(candidates)
    draft.drop("log", lambda row: row is gone)
    return {Anomaly.DECIDED_LATE}


def _open_at_the_leader(base: Base, draft: Draft) -> Breaks:
    """A leader names an open transaction; harmless if its coordinator says that it is going on."""
    partition = draft.pick(list(base.partitions))
    here = {"run": base.run["run"], "topic_index": partition[0], "partition": partition[1]}
    offset = draft.random.randrange(base.ends[partition]["high_watermark"])
    draft.rows["open_producers"].append({**here, "producer_id": 99_999, "offset": offset})
    state = draft.pick(("Ongoing", "PrepareCommit", "PrepareAbort", "Empty", "CompleteCommit", "CompleteAbort"))
    draft.rows["coordinator_states"].append({"run": base.run["run"], "producer_id": 99_999, "state": state})
    return () if state in ("Ongoing", "PrepareCommit", "PrepareAbort") else {Anomaly.HUNG_TRANSACTION}


def _standing(base: Base, draft: Draft) -> Breaks:
    """At quiescence a last stable offset is below its high watermark though nothing is open."""
    visible = [each for each in base.records if each.visible and each.partition[0] not in base.inputs]
    record = draft.pick(visible)
    _stand(draft, record.partition, record.place[2])
    return {Anomaly.STUCK_LSO}


def _stood_too_long(base: Base, draft: Draft) -> Breaks:
    """A last stable offset had not reached its high watermark within its bound, and nothing was open."""
    chosen = draft.pick(base.rows["settled"])
    behind = draft.random.randint(1, 9)
    draft.change("settled", lambda row: row is chosen, last_stable_offset=lambda row: row["high_watermark"] - behind)
    return {Anomaly.STUCK_LSO}


def _needless_marker(base: Base, draft: Draft) -> Breaks:
    """One more control record, of a transaction that wrote nothing there or of a kind that ends nothing."""
    record = draft.pick([each for each in base.records if each.partition[0] not in base.inputs])
    nothing = dict.fromkeys((*IDENTITY, "valid", "digest", "identity_digest"))
    own = {
        "transactional": True,
        "producer_epoch": max(row["producer_epoch"] for row in base.rows["log"]) + 1,
        "sequence": -1,
    }
    control = draft.pick(("commit", "abort", "other"))
    draft.append(record.partition, record.row, visible=False, **nothing, **own, control=control)
    return ()


def _superseded_by_epoch(base: Base, draft: Draft) -> Breaks:
    """An earlier row of a partition has a higher epoch; no zombie if its producer committed nothing later."""
    chosen = draft.pick([row for row in base.rows["log"] if row["producer_id"] >= 0])
    raised = chosen["producer_epoch"] + draft.random.randint(1, 3)
    draft.change("log", lambda row: row is chosen, producer_epoch=raised)
    visible = {each.place for each in base.records if each.visible}
    later = any(row["producer_epoch"] < raised and place_of(row) in visible for row in _followers(base, chosen))
    return {Anomaly.ZOMBIE_WRITE} if later else unfollowed(draft)


MUTATORS = tuple(
    mutator(make)
    for make in (
        _marker_gone,
        _written_late,
        _marker_adopted,
        _open_at_the_leader,
        _standing,
        _stood_too_long,
        _needless_marker,
        _superseded_by_epoch,
    )
)
