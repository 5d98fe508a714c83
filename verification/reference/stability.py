"""Wrong state: offsets that do not advance, producers that go on after a successor, and copies whose offsets disagree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from verification.evidence.row_types import Row
from verification.reference.run_index import RunIndex, violation
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.violations import OperationKey, Partition, Place, RawViolation

RUNNING = {"Ongoing", "PrepareCommit", "PrepareAbort"}


def _superseded(index: RunIndex, operation: Row) -> bool:
    if operation["transactional_id"] is None or operation["decided_ns"] is None:
        return False
    inits = [
        row
        for row in index.operations.values()
        if row["action"] == "init"
        and row["outcome"] == "ok"
        and row["transactional_id"] == operation["transactional_id"]
        and row["completed_ns"] is not None
        and row["completed_ns"] < operation["decided_ns"]
    ]
    last = max(inits, key=lambda row: int(row["completed_ns"]), default=None)
    return last is not None and last["process"] != operation["process"]


def zombie(index: RunIndex) -> Iterator[RawViolation]:
    """zombie-write, by time and by epoch."""
    first: dict[OperationKey, tuple[Place, Row]] = {}
    given: set[OperationKey] = set()
    for place, spot, row in index.records():
        if spot.outcome != "commit":
            continue
        operation = index.operation(row)
        late = operation is not None and _superseded(index, operation)
        late = late and (index.has_log or index.told(row) == "committed")
        epoch = spot.row["producer_epoch"] if spot.row is not None else None
        stale = spot.epoch_before is not None and epoch is not None and epoch < spot.epoch_before
        key = (row["process"], row["operation"])
        if (late or stale) and index.given(spot):
            given.add(key)
        if (late or stale) and (key not in first or place < first[key][0]):
            first[key] = (place, row)
    for key, (place, row) in first.items():
        yield violation(Anomaly.ZOMBIE_WRITE, row, place, harm=int(key in given))


#: The offset of an open entry, its record if it has one, and the harm to that record.
Open = tuple[int, Row | None, int]


def _open_by_producer(index: RunIndex) -> dict[tuple[int, int, int], list[Open]]:
    running = {row["producer_id"] for row in index.rows["coordinator_states"] if row["state"] in RUNNING}
    opened: dict[tuple[int, int, int], list[Open]] = defaultdict(list)
    for place, spot in index.spots.items():
        if spot.outcome == "open" and spot.row is not None and spot.row["producer_id"] not in running:
            row = spot.row if spot.row["valid"] else None
            harm = 0 if row is None else index.unread(spot, row)
            opened[(*place[:2], spot.row["producer_id"])].append((place[2], row, harm))
    for row in index.rows["open_producers"]:
        if row["producer_id"] not in running:
            opened[(row["topic_index"], row["partition"], row["producer_id"])].append((row["offset"], None, 0))
    return opened


def hung(index: RunIndex) -> Iterator[RawViolation]:
    """hung-transaction: open without a running coordinator."""
    for (topic_index, partition, _), entries in _open_by_producer(index).items():
        first = min((entry for entry in entries if entry[1] is not None), key=lambda entry: entry[0], default=None)
        place = (topic_index, partition, min(offset for offset, *_ in entries))
        harm = max(each for *_, each in entries)
        yield violation(Anomaly.HUNG_TRANSACTION, None if first is None else first[1], place, harm=harm)


def decided_late(index: RunIndex) -> Iterator[RawViolation]:
    """decided-late: adopted by the next transaction, and not open any more."""
    for place, spot, row in index.records():
        if spot.adopted and spot.outcome != "open":
            other = (index.told(row), spot.outcome) in (("committed", "abort"), ("aborted", "commit"))
            yield violation(Anomaly.DECIDED_LATE, row, place, harm=index.unread(spot, row) + other)


def stuck(index: RunIndex) -> Iterator[RawViolation]:
    """stuck-lso."""
    hung = {key[:2] for key in _open_by_producer(index)}
    settled = [row for row in index.rows["settled"] if row["before_fencing"]]
    lowest: dict[Partition, int] = {}
    for row in [*settled, *index.rows["ends"]]:
        partition = (row["topic_index"], row["partition"])
        if row["last_stable_offset"] < row["high_watermark"] and partition not in hung:
            lowest[partition] = min(row["last_stable_offset"], lowest.get(partition, row["last_stable_offset"]))
    for partition, offset in lowest.items():
        yield violation(Anomaly.STUCK_LSO, None, (*partition, offset))


def copied(index: RunIndex) -> Iterator[RawViolation]:
    """offset-without-output and output-without-offset."""
    fan_out = index.run["fan_out"]
    if fan_out is None:
        return
    offsets = {(row["topic_index"], row["partition"]): max(0, row["offset"]) for row in index.rows["group_offsets"]}
    by_partition = {partition: offset for (_, partition), offset in offsets.items()}
    kept: dict[tuple[int, int], set[int]] = defaultdict(set)
    written: dict[tuple[int, int], set[int]] = defaultdict(set)
    for place, spot, row in index.records():
        if row["source_offset"] == -1 or spot.outcome not in ("commit", "open"):
            continue
        source = (row["source_partition"], row["source_offset"])
        written[source].add(row["intended_topic_index"])
        if spot.outcome == "commit":
            kept[source].add(row["intended_topic_index"])
            if source[1] >= by_partition.get(source[0], 0):
                allowed = index.run["at_least_once"] and source[0] in by_partition
                yield violation(Anomaly.OUTPUT_WITHOUT_OFFSET, row, place, cause="allowed" if allowed else None)
    for place, spot in index.spots.items():
        covered = place[:2] in offsets and place[2] < offsets[place[:2]]
        if spot.outcome == "commit" and spot.committed and covered and len(kept[place[1:]]) < fan_out:
            cause = "lso" if len(written[place[1:]]) >= fan_out else None
            yield violation(Anomaly.OFFSET_WITHOUT_OUTPUT, index.record(spot), place, cause=cause)


def aborted_inputs(index: RunIndex) -> Iterator[RawViolation]:
    """aborted-read, by copiers."""
    topics = {row["partition"]: row["topic_index"] for row in index.rows["group_offsets"]}
    for place, spot, row in index.records():
        source = (row["source_partition"], row["source_offset"])
        if index.run["fan_out"] is None or spot.outcome != "commit" or source[0] not in topics:
            continue
        read = index.spots.get((topics[source[0]], *source))
        if read is not None and read.outcome in ("abort", "open") and not read.committed:
            yield violation(Anomaly.ABORTED_READ, row, place)


def _may_have_timed_out(index: RunIndex, operation: Row) -> bool:
    """Whether the coordinator may have aborted the operation's transaction because of its timeout."""
    lasted_ns = operation["completed_ns"] - operation["invoked_ns"]
    return operation["action"] != "init" and bool(lasted_ns >= index.run["transaction_timeout_ns"])


def stranded(index: RunIndex) -> Iterator[RawViolation]:
    """stranded-producer."""
    if not index.run["survival_claimed"]:
        return
    inits = [row for row in index.operations.values() if row["action"] == "init" and row["outcome"] == "ok"]
    for (process, operation), row in index.operations.items():
        if not row["fatal"] or row["transactional_id"] is None or row["completed_ns"] is None:
            continue
        if _may_have_timed_out(index, row):
            continue
        later = [
            each
            for each in inits
            if each["transactional_id"] == row["transactional_id"]
            and each["process"] > process
            and each["completed_ns"] < row["completed_ns"]
        ]
        if not later:
            yield RawViolation(anomaly=Anomaly.STRANDED_PRODUCER, process=process, operation=operation)
