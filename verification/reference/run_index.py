"""One run's evidence, indexed by place and by operation, with the outcomes that follow from the log alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from verification.evidence.row_types import Row, Rows
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.violations import OperationKey, Place, RawViolation

RecordKey = tuple[int, int, int]


def at(row: Row) -> Place:
    """The place of a row."""
    return (row["topic_index"], row["partition"], row["offset"])


def record_key(row: Row) -> RecordKey:
    """The record identity of a row within its run."""
    return (row["process"], row["operation"], row["index"])


@dataclass(slots=True)
class Spot:
    """Everything known about one place."""

    row: Row | None = None
    outcome: str | None = None
    epoch_before: int | None = None
    adopted: bool = False
    committed: list[Row] = field(default_factory=list)
    uncommitted: list[Row] = field(default_factory=list)
    observed: list[Row] = field(default_factory=list)

    def given(self) -> list[Row]:
        """All records that readers received here."""
        return [*self.committed, *self.uncommitted, *self.observed]


class RunIndex:
    """One run's evidence, indexed by place and by operation."""

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
            record_key(row): at(row) for row in rows["acks"] if row["outcome"] == "ok" and row["offset"] >= 0
        }

    def _fill(self) -> None:
        for row in self.rows["log"] if self.has_log else ():
            self.spots[at(row)].row = row
        for row in self.rows["committed"]:
            self.spots[at(row)].committed.append(row)
        for row in self.rows["uncommitted"]:
            self.spots[at(row)].uncommitted.append(row)
        for row in self.rows["observations"]:
            self.spots[at(row)].observed.append(row)

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
        """Set the outcome at a place.

        `decision` is that of the next control record, `following` is the producer's next record.
        """
        if row.get("control") is not None:
            return
        spot.outcome = decision if row["transactional"] else "commit"
        next_is_data = following is not None and following.get("control") is None
        if row["transactional"] and following is not None and next_is_data and row["valid"] and following["valid"]:
            known = {record_key(row)[:2], record_key(following)[:2]} <= self.operations.keys()
            spot.adopted = known and record_key(following)[:2] != record_key(row)[:2]

    def genuine(self, spot: Spot) -> Row | None:
        """The record at a place, when it is valid and of this run."""
        row = self.record(spot)
        return row if row is not None and row["valid"] and row["identity_run"] == self.name else None

    def record(self, spot: Spot) -> Row | None:
        """The record at a place: the log's; without a log the capture's; else one that a reader received."""
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
        """The answer to the client about a record's transaction."""
        operation = self.operation(row)
        return None if operation is None else operation["told"]

    def given(self, spot: Spot) -> int:
        """1 for a place that a read_committed reader received."""
        return int(bool(spot.committed) or any(row["committed_reader"] for row in spot.observed))

    def unread(self, spot: Spot, row: Row) -> int:
        """1 for a record that was promised to its client, and that no read_committed reader received."""
        operation = self.operation(row)
        promised = operation is not None and (operation["told"] == "committed" or operation["plain"])
        return int(promised and not self.given(spot))

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


def violation(anomaly: Anomaly, row: Row | None, place: Place | None, **more: Any) -> RawViolation:
    """A violation at a place, about a record; either may be None. `more` overrides columns of the record."""
    topic_index, partition, offset = place or (None, None, None)
    record = {name: None if row is None else row.get(name) for name in ("process", "operation", "index")}
    return RawViolation(
        anomaly=anomaly, **{**record, **more}, topic_index=topic_index, partition=partition, offset=offset
    )
