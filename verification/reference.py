"""The reference judge: every definition once more, in plain Python, for evidence that fits into memory.

It exists to be compared with the Spark checks, so it shares nothing with them but the rows (`verification.rows`): one
pass over dictionaries instead of exchanges and windows. Where both agree on thousands of generated histories, a mistake
would have to be made twice, in two ways. Slow and obvious is the point; read it next to the docstrings of
`verification.checks`, which define the anomalies.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from verification.anomalies import Anomaly
from verification.folding import OperationKey, Partition, Place, RawViolation
from verification.rows import Row, Rows

RecordKey = tuple[int, int, int]
RUNNING = {"Ongoing", "PrepareCommit", "PrepareAbort"}


def _at(row: Row) -> Place:
    return (row["topic_index"], row["partition"], row["offset"])


def _who(row: Row) -> RecordKey:
    return (row["process"], row["operation"], row["index"])


@dataclass(slots=True)
class Spot:
    """What is known about one place."""

    row: Row | None = None
    outcome: str | None = None
    epoch_before: int | None = None
    adopted: bool = False
    committed: list[Row] = field(default_factory=list)
    uncommitted: list[Row] = field(default_factory=list)
    observed: list[Row] = field(default_factory=list)

    def given(self) -> list[Row]:
        """Everything that anybody was given here."""
        return [*self.committed, *self.uncommitted, *self.observed]


class Case:
    """One run's evidence, indexed."""

    def __init__(self, rows: Rows) -> None:
        (self.run,) = rows["runs"]
        self.rows = rows
        self.name: str = self.run["run"]
        self.has_log: bool = self.run["has_log"]
        self.operations: dict[OperationKey, Row] = {
            (row["process"], row["operation"]): row for row in rows["operations"]
        }
        self.ends = {(row["topic_index"], row["partition"]): row for row in rows["ends"]}
        self.observers = {row["observer_index"]: row for row in rows["observers"]}
        self.spots: dict[Place, Spot] = defaultdict(Spot)
        self._fill()
        self._decide()
        self.by_operation: dict[OperationKey, list[tuple[Place, Spot, Row]]] = defaultdict(list)
        for place, spot, row in self.records():
            self.by_operation[row["process"], row["operation"]].append((place, spot, row))
        self.acked: dict[RecordKey, Place] = {
            _who(row): _at(row) for row in rows["acks"] if row["outcome"] == "ok" and row["offset"] >= 0
        }

    def _fill(self) -> None:
        for row in self.rows["log"] if self.has_log else ():
            self.spots[_at(row)].row = row
        for row in self.rows["committed"]:
            self.spots[_at(row)].committed.append(row)
        for row in self.rows["uncommitted"]:
            self.spots[_at(row)].uncommitted.append(row)
        for row in self.rows["observations"]:
            self.spots[_at(row)].observed.append(row)

    def _decide(self) -> None:
        if not self.has_log:
            for spot in self.spots.values():
                spot.outcome = "commit" if spot.committed else None
            return
        by_producer: dict[tuple[int, int, int], list[tuple[Place, Row]]] = defaultdict(list)
        for place, spot in sorted(self.spots.items()):
            if spot.row is not None:
                by_producer[(place[0], place[1], spot.row["producer_id"])].append((place, spot.row))
        for (_, _, producer), entries in by_producer.items():
            highest: int | None = None
            for place, row in entries:
                self.spots[place].epoch_before = highest if producer >= 0 else None
                highest = max(row["producer_epoch"], row["producer_epoch"] if highest is None else highest)
            decision, following = "open", None
            for place, row in reversed(entries):
                self._decide_one(self.spots[place], row, decision, following)
                decision = row["control"] if row.get("control") in ("commit", "abort") else decision
                following = row

    def _decide_one(self, spot: Spot, row: Row, decision: str, following: Row | None) -> None:
        """`decision` is what the next control record says, `following` what the producer wrote next."""
        if row.get("control") is not None:
            return
        spot.outcome = decision if row["transactional"] else "commit"
        next_is_data = following is not None and following.get("control") is None
        if row["transactional"] and following is not None and next_is_data and row["valid"] and following["valid"]:
            spot.adopted = _who(following)[:2] != _who(row)[:2]

    def genuine(self, spot: Spot) -> Row | None:
        """The record at a place, when it is valid and of this run."""
        row = self.record(spot)
        return row if row is not None and row["valid"] and row["identity_run"] == self.name else None

    def record(self, spot: Spot) -> Row | None:
        """What stands at a place: the log's word, else (without a log) the capture's, else what somebody was given."""
        if spot.row is not None:
            return spot.row if spot.row.get("control") is None else None
        if not self.has_log and spot.committed:
            return spot.committed[0]
        given = [row for row in spot.given() if row["identity_digest"] is not None]
        last = max(given, key=lambda row: int(row["identity_digest"]), default=None)
        return last if last is not None and last.get("identity_run") == self.name else None

    def operation(self, row: Row) -> Row | None:
        """The operation of a record, None when the history has none."""
        return self.operations.get((row["process"], row["operation"]))

    def told(self, row: Row) -> str | None:
        """What the client was told about a record's transaction."""
        operation = self.operation(row)
        return None if operation is None else operation["told"]

    def above_lso(self, place: Place) -> bool:
        """Whether a place is at or above its partition's last stable offset."""
        end = self.ends.get(place[:2])
        return end is not None and place[2] >= end["last_stable_offset"]

    def records(self) -> Iterator[tuple[Place, Spot, Row]]:
        """Every place with a genuine record."""
        for place, spot in self.spots.items():
            row = self.genuine(spot)
            if row is not None:
                yield place, spot, row


def _violation(anomaly: Anomaly, row: Row | None, place: Place | None, **more: Any) -> RawViolation:
    topic_index, partition, offset = place or (None, None, None)
    who = {name: None if row is None else row.get(name) for name in ("process", "operation", "index")}
    return RawViolation(anomaly=anomaly, **{**who, **more}, topic_index=topic_index, partition=partition, offset=offset)


@dataclass(slots=True)
class _Transaction:
    """A transaction's records: which are promised or found, and how."""

    size: int
    visible: set[int] = field(default_factory=set)
    waiting: set[int] = field(default_factory=set)
    any_open: bool = False


def _transaction(case: Case, key: OperationKey, operation: Row) -> _Transaction:
    mine = case.by_operation[key]
    size = operation["records"] or max((row["count"] for _, _, row in mine), default=0)
    found = _Transaction(size=size)
    for place, spot, row in mine:
        if spot.outcome == "commit" and spot.committed:
            found.visible.add(row["index"])
        if spot.outcome in ("commit", "open") and case.above_lso(place):
            found.waiting.add(row["index"])
        found.any_open |= spot.outcome == "open"
    return found


def _lost(case: Case) -> Iterator[RawViolation]:
    promised: set[RecordKey] = set()
    for key, operation in case.operations.items():
        if operation["told"] == "committed":
            found = _transaction(case, key, operation)
            if not (case.has_log and (found.visible or found.any_open)):
                promised |= {(*key, index) for index in range(operation["records"])}
    for ack in case.rows["acks"]:
        operation_of = case.operation(ack)
        if ack["outcome"] == "ok" and operation_of is not None and operation_of["plain"]:
            promised.add(_who(ack))
    present = {_who(row) for _, spot, row in case.records() if spot.outcome == "commit"}
    for process, operation_number, index in promised - present:
        who = {"process": process, "operation": operation_number, "index": index}
        yield _violation(Anomaly.LOST_WRITE, who, case.acked.get((process, operation_number, index)))


def _torn(case: Case) -> Iterator[RawViolation]:
    for key, operation in case.operations.items():
        if not case.has_log or operation["told"] not in ("committed", "unknown"):
            continue
        found = _transaction(case, key, operation)
        if not 0 < len(found.visible) < found.size:
            continue
        expected = set(range(operation["records"])) | {row["index"] for _, _, row in case.by_operation[key]}
        expected |= {row["index"] for row in case.rows["acks"] if (row["process"], row["operation"]) == key}
        places = [case.acked.get((*key, index)) for index in expected - found.visible]
        yield RawViolation(
            anomaly=Anomaly.TORN_TRANSACTION,
            process=key[0],
            operation=key[1],
            cause="lso" if len(found.visible | found.waiting) == found.size else None,
            places=tuple(sorted("" if place is None else ":".join(map(str, place)) for place in places)),
        )


def _hidden(case: Case) -> Iterator[RawViolation]:
    for place, spot, row in case.records():
        if spot.row is None or spot.outcome != "commit" or spot.committed:
            continue
        operation = case.operation(row)
        if operation is not None and operation["told"] is not None:
            key = (row["process"], row["operation"])
            if _transaction(case, key, operation).visible:
                continue
        cause = "lso" if case.above_lso(place) else None
        yield _violation(Anomaly.HIDDEN_COMMITTED, row, place, cause=cause)


def _duplicate(case: Case) -> Iterator[RawViolation]:
    groups: dict[tuple[Any, ...], list[tuple[Place, Row]]] = defaultdict(list)
    for place, spot, row in case.records():
        if spot.outcome != "commit":
            continue
        if row["source_offset"] == -1 and case.operation(row) is not None:
            groups["written", *_who(row)].append((place, row))
        elif row["source_offset"] != -1 and case.run["fan_out"] is not None:
            source = (row["source_partition"], row["source_offset"], row["intended_topic_index"])
            groups["copied", *source].append((place, row))
    for copies in groups.values():
        if len(copies) > 1:
            place, row = sorted(copies, key=lambda copy: copy[0])[1]
            yield _violation(Anomaly.DUPLICATE, row, place)


def _earliest(case: Case, spot: Spot) -> tuple[int, str] | None:
    """When the first read_committed observer received a place, and its name."""
    received = [row for row in spot.observed if row["committed_reader"]]
    if not received:
        return None
    first = min(received, key=lambda row: (row["received_ns"] // 1000, row["observer_index"]))
    return min(row["received_ns"] for row in received), case.observers[first["observer_index"]]["observer"]


def _read(case: Case) -> Iterator[RawViolation]:
    for place, spot, row in case.records():
        earliest = _earliest(case, spot)
        operation = case.operation(row)
        told = case.told(row)
        if earliest is None and not spot.committed:
            continue
        if spot.outcome == "abort" or told == "aborted":
            observer = "committed" if earliest is None else earliest[1]
            yield _violation(Anomaly.ABORTED_READ, row, place, observer=observer)
        elif case.has_log and told is not None and operation is not None and earliest is not None:
            decided_ns = operation["decided_ns"]
            early = decided_ns is not None and earliest[0] < decided_ns
            yield from [_violation(Anomaly.EARLY_READ, row, place, observer=earliest[1])] if early else []


def _superseded(case: Case, operation: Row) -> bool:
    if operation["transactional_id"] is None or operation["decided_ns"] is None:
        return False
    inits = [
        row
        for row in case.operations.values()
        if row["action"] == "init"
        and row["outcome"] == "ok"
        and row["transactional_id"] == operation["transactional_id"]
        and row["completed_ns"] < operation["decided_ns"]
    ]
    last = max(inits, key=lambda row: int(row["completed_ns"]), default=None)
    return last is not None and last["process"] != operation["process"]


def _zombie(case: Case) -> Iterator[RawViolation]:
    first: dict[OperationKey, tuple[Place, Row]] = {}
    for place, spot, row in case.records():
        if spot.outcome != "commit":
            continue
        operation = case.operation(row)
        late = operation is not None and _superseded(case, operation)
        late = late and (case.has_log or case.told(row) == "committed")
        epoch = spot.row["producer_epoch"] if spot.row is not None else None
        stale = spot.epoch_before is not None and epoch is not None and epoch < spot.epoch_before
        key = (row["process"], row["operation"])
        if (late or stale) and (key not in first or place < first[key][0]):
            first[key] = (place, row)
    for place, row in first.values():
        yield _violation(Anomaly.ZOMBIE_WRITE, row, place)


def _reordered(case: Case) -> Iterator[RawViolation]:
    if not (case.has_log and case.run["order_claimed"]):
        return
    highest: dict[tuple[Any, ...], int] = {}
    seen: set[tuple[Any, ...]] = set()
    for place, spot in sorted(case.spots.items()):
        row = case.genuine(spot)
        if spot.row is None or row is None or spot.outcome != "commit":
            continue
        writer = (*place[:2], row["process"])
        copy = (*writer, row["send_order"])
        if copy not in seen and row["send_order"] < highest.get(writer, -1):
            yield _violation(Anomaly.REORDERED_WRITE, row, place)
        seen.add(copy)
        highest[writer] = max(row["send_order"], highest.get(writer, -1))


def _polls(case: Case) -> Iterator[RawViolation]:
    if not case.has_log:
        return
    given: dict[tuple[int, Partition], list[int]] = defaultdict(list)
    for row in sorted(case.rows["observations"], key=lambda row: (row["poll"], row["position"])):
        given[row["observer_index"], (row["topic_index"], row["partition"])].append(row["offset"])
    for (observer_index, partition), offsets in given.items():
        observer = case.observers[observer_index]
        back = {after for before, after in pairwise(offsets) if after <= before}
        for offset in back:
            place = (*partition, offset)
            record = case.record(case.spots[place])
            yield _violation(Anomaly.NONMONOTONIC_POLL, record, place, observer=observer["observer"])
        received = set(offsets)
        for offset in range(max(offsets)):
            spot = case.spots.get((*partition, offset))
            if spot is None or spot.row is None or spot.row.get("control") is not None or offset in received:
                continue
            if spot.outcome == "commit" or not observer["committed_reader"]:
                place = (*partition, offset)
                yield _violation(Anomaly.POLL_SKIP, spot.row, place, observer=observer["observer"])
    for place, spot in case.spots.items():
        end = case.ends.get(place[:2])
        data = spot.row is not None and spot.row.get("control") is None
        if data and not spot.uncommitted and end is not None and place[2] < end["high_watermark"]:
            yield _violation(Anomaly.POLL_SKIP, spot.row, place, observer="uncommitted")


def _inconsistent(case: Case) -> Iterator[RawViolation]:
    for place, spot in case.spots.items() if case.has_log else ():
        every = spot.given() if spot.row is None else [spot.row, *spot.given()]
        contents = {row["digest"] for row in every if row.get("digest") is not None}
        identities = {row["identity_digest"] for row in every if row["identity_digest"] is not None}
        marker = spot.row is not None and spot.row.get("control") is not None and bool(spot.given())
        if len(contents) > 1 or len(identities) > 1 or marker:
            yield _violation(Anomaly.INCONSISTENT_OFFSET, _gone(case, spot), place)


def _gone(case: Case, spot: Spot) -> Row | None:
    """The record that somebody was given and that is not the log's: the highest digest that differs from it."""
    with_digest = [row for row in spot.given() if row["identity_digest"] is not None]
    own = None if spot.row is None else spot.row["identity_digest"]
    highest = max(with_digest, key=lambda row: int(row["identity_digest"]), default=None)
    if highest is not None and own is not None and highest["identity_digest"] == own:
        highest = min(with_digest, key=lambda row: int(row["identity_digest"]))
    return highest if highest is not None and highest.get("identity_run") == case.name else None


def _phantom(case: Case) -> Iterator[RawViolation]:
    for place, spot in case.spots.items():
        row = spot.row
        if row is None or row.get("control") is not None:
            continue
        operation = case.operation(row) if row["valid"] else None
        wrong = not row["valid"] or row["identity_run"] != case.name or operation is None
        if not wrong and operation is not None:
            size = operation["records"] or row["count"]
            intended = (row["intended_topic_index"], row["intended_partition"])
            wrong = row["index"] >= size or intended != place[:2]
        if wrong:
            yield _violation(Anomaly.PHANTOM_RECORD, row, place)


def _open_by_producer(case: Case) -> dict[tuple[int, int, int], list[tuple[int, Row | None]]]:
    running = {row["producer_id"] for row in case.rows["coordinator_states"] if row["state"] in RUNNING}
    opened: dict[tuple[int, int, int], list[tuple[int, Row | None]]] = defaultdict(list)
    for place, spot in case.spots.items():
        if spot.outcome == "open" and spot.row is not None and spot.row["producer_id"] not in running:
            opened[(*place[:2], spot.row["producer_id"])].append((place[2], spot.row if spot.row["valid"] else None))
    for row in case.rows["open_producers"]:
        if row["producer_id"] not in running:
            opened[(row["topic_index"], row["partition"], row["producer_id"])].append((row["offset"], None))
    return opened


def _hung(case: Case) -> Iterator[RawViolation]:
    for (topic_index, partition, _), entries in _open_by_producer(case).items():
        first = min((entry for entry in entries if entry[1] is not None), key=lambda entry: entry[0], default=None)
        place = (topic_index, partition, min(offset for offset, _ in entries))
        yield _violation(Anomaly.HUNG_TRANSACTION, None if first is None else first[1], place)
    for place, spot, row in case.records():
        if spot.adopted and spot.outcome != "open":
            yield _violation(Anomaly.HUNG_TRANSACTION, row, place)


def _stuck(case: Case) -> Iterator[RawViolation]:
    hung = {key[:2] for key in _open_by_producer(case)}
    settled = [row for row in case.rows["settled"] if row["before_fencing"]]
    lowest: dict[Partition, int] = {}
    for row in [*settled, *case.rows["ends"]]:
        partition = (row["topic_index"], row["partition"])
        if row["last_stable_offset"] < row["high_watermark"] and partition not in hung:
            lowest[partition] = min(row["last_stable_offset"], lowest.get(partition, row["last_stable_offset"]))
    for partition, offset in lowest.items():
        yield _violation(Anomaly.STUCK_LSO, None, (*partition, offset))


def _copied(case: Case) -> Iterator[RawViolation]:
    fan_out = case.run["fan_out"]
    if fan_out is None:
        return
    offsets = {(row["topic_index"], row["partition"]): max(0, row["offset"]) for row in case.rows["group_offsets"]}
    by_partition = {partition: offset for (_, partition), offset in offsets.items()}
    kept: dict[tuple[int, int], set[int]] = defaultdict(set)
    written: dict[tuple[int, int], set[int]] = defaultdict(set)
    for place, spot, row in case.records():
        if row["source_offset"] == -1 or spot.outcome not in ("commit", "open"):
            continue
        source = (row["source_partition"], row["source_offset"])
        written[source].add(row["intended_topic_index"])
        if spot.outcome == "commit":
            kept[source].add(row["intended_topic_index"])
            if source[1] >= by_partition.get(source[0], 0):
                yield _violation(Anomaly.OUTPUT_WITHOUT_OFFSET, row, place)
    for place, spot in case.spots.items():
        covered = place[:2] in offsets and place[2] < offsets[place[:2]]
        if spot.outcome == "commit" and spot.committed and covered and len(kept[place[1:]]) < fan_out:
            cause = "lso" if len(written[place[1:]]) >= fan_out else None
            yield _violation(Anomaly.OFFSET_WITHOUT_OUTPUT, case.record(spot), place, cause=cause)


#: Every definition; those that need a log ask for it themselves.
JUDGES: tuple[Callable[[Case], Iterable[RawViolation]], ...] = (
    _lost,
    _torn,
    _hidden,
    _duplicate,
    _read,
    _zombie,
    _reordered,
    _polls,
    _inconsistent,
    _phantom,
    _hung,
    _stuck,
    _copied,
)
#: What can be judged by delivered versus told alone.
WITHOUT_LOG = (_lost, _duplicate, _read, _zombie, _copied)


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
