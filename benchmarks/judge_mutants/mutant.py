"""Mutants: a clean run with a few rows removed, changed or added, and the anomalies that the judge must find.

A draft starts with the rows of its base and shares them. It replaces only the rows that it changes, so that only the
difference is sent to Spark, where a thousand mutants are judged together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar

from benchmarks.judge_mutants.base import Base, CleanRecord, by_partition, place_of
from verification.evidence.row_types import Row, Rows
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.violations import OperationKey, Partition, Place

#: Dataframes of deliveries to readers, and all that have offsets.
READERS = ("committed", "uncommitted", "observations")
PLACED = ("log", *READERS)
MS = 1_000_000
Picked = TypeVar("Picked")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One mutant: the rows of its run, the mutator that made it, and the anomalies that it breaks (none: harmless)."""

    name: str
    mutator: str
    base: Base
    rows: Rows
    breaks: frozenset[Anomaly]


class NothingToChangeError(Exception):
    """A base has nothing that a mutator could change."""


class Draft:
    """A mutant in the making."""

    def __init__(self, base: Base, random: Random) -> None:
        self.base = base
        self.random = random
        self.rows: Rows = {frame: list(rows) for frame, rows in base.rows.items()}

    def pick(self, several: Sequence[Picked]) -> Picked:
        """One of several at random; raises NothingToChangeError if there is none."""
        if not several:
            raise NothingToChangeError
        return self.random.choice(several)

    def drop(self, frame: str, which: Callable[[Row], bool]) -> None:
        """Remove rows of a dataframe."""
        self.rows[frame] = [row for row in self.rows[frame] if not which(row)]

    def change(self, frame: str, which: Callable[[Row], bool], **columns: Any) -> None:
        """Change columns of rows of a dataframe; a column may be a function of the row."""
        self.rows[frame] = [_changed(row, columns) if which(row) else row for row in self.rows[frame]]

    def add(self, frame: str, row: Row, **columns: Any) -> None:
        """Add a row, made from another one."""
        self.rows[frame].append({**row, **columns})

    def vanish(self, places: Iterable[Place], frames: Collection[str] = PLACED) -> None:
        """Remove some places from the log and from all readers."""
        gone = set(places)
        for frame in frames:
            self.drop(frame, lambda row: place_of(row) in gone)

    def hide(self, places: Iterable[Place]) -> None:
        """Remove some places from all read_committed readers."""
        gone = set(places)
        self.drop("committed", lambda row: place_of(row) in gone)
        self.drop("observations", lambda row: row["committed_reader"] and place_of(row) in gone)

    def show(self, records: Iterable[CleanRecord]) -> None:
        """Deliver records to every read_committed reader; live observers receive them last."""
        for record in records:
            (row,) = [row for row in self.base.rows["uncommitted"] if place_of(row) == record.place]
            self.add("committed", row)
            for observer in self.base.observers(committed=True):
                self.observe(observer, row)

    def observe(self, observer: Row, row: Row, **columns: Any) -> None:
        """Deliver a row to an observer in one more poll, as late as possible, in the order of offsets within its partition.

        Rows of the partition with higher offsets follow it in the same poll.
        """
        index = observer["observer_index"]
        own = [each for each in self.rows["observations"] if each["observer_index"] == index]
        poll = 1 + max((each["poll"] for each in own), default=0)
        received_ns = max((each["received_ns"] for each in self.rows["observations"]), default=0) + MS
        partition = (row["topic_index"], row["partition"])
        later = [each for each in own if place_of(each)[:2] == partition and each["offset"] > row["offset"]]
        told = {"observer_index": index, "committed_reader": observer["committed_reader"], "received_ns": received_ns}
        self.add("observations", {**observation(row), **told, "poll": poll, "position": -1}, **columns)
        moved = {id(each): number for number, each in enumerate(sorted(later, key=_turn))}
        self.rows["observations"] = [
            {**each, "received_ns": received_ns, "poll": poll, "position": moved[id(each)]}
            if id(each) in moved
            else each
            for each in self.rows["observations"]
        ]

    def append(self, partition: Partition, row: Row, *, visible: bool, **columns: Any) -> Row:
        """Append a record to a partition, for all readers of the isolation level; returns the log's row."""
        end = next(each for each in self.rows["ends"] if (each["topic_index"], each["partition"]) == partition)
        offset = end["high_watermark"]
        topic = next((each["topic"] for each in self.rows["log"] if each["topic_index"] == partition[0]), "")
        where = {"topic": topic, "topic_index": partition[0], "partition": partition[1], "offset": offset}
        made = {**row, **where, **columns}
        self.rows["log"].append(made)
        shown = {name: value for name, value in made.items() if name not in _OF_THE_LOG}
        if made["control"] is None:
            self.rows["uncommitted"].append(dict(shown))
            if visible:
                self.rows["committed"].append(dict(shown))
            for observer in self.base.observers():
                subscribed = bool(self.base.given(observer["observer_index"], partition))
                if subscribed and (visible or not observer["committed_reader"]):
                    self.observe(observer, shown)
        mark = offset + 1
        self.change("ends", lambda each: each is end, high_watermark=mark, last_stable_offset=mark)
        return made

    def shift(self, partition: Partition, start: int) -> None:
        """Move everything from an offset on one offset up, as if another record had been written before it."""

        def later(row: Row) -> bool:
            return (row["topic_index"], row["partition"]) == partition and bool(row["offset"] >= start)

        for frame in (*PLACED, "acks", "open_producers"):
            self.change(frame, later, offset=lambda row: row["offset"] + 1)
        for frame in ("ends", "settled"):
            self.change(
                frame,
                lambda row: (row["topic_index"], row["partition"]) == partition,
                high_watermark=lambda row: row["high_watermark"] + 1,
                last_stable_offset=lambda row: row["last_stable_offset"] + 1,
            )

    def marker_of(self, records: Sequence[CleanRecord]) -> Row:
        """The control record that decided some records of one transaction in one partition."""
        last = max(records, key=lambda each: each.place)
        return min(
            (
                row
                for row in self.base.rows["log"]
                if place_of(row)[:2] == last.partition
                and row["control"] is not None
                and row["offset"] > last.place[2]
                and row["producer_id"] == last.row["producer_id"]
            ),
            key=place_of,
        )

    def decide(self, records: Iterable[CleanRecord], decision: str) -> None:
        """Change the control records of some records of one transaction."""
        markers = {place_of(self.marker_of(mine)) for mine in by_partition(records)}
        self.change("log", lambda row: place_of(row) in markers, control=decision)

    def tell(self, key: OperationKey, **columns: Any) -> None:
        """Change the history of an operation."""
        self.change("operations", lambda row: (row["process"], row["operation"]) == key, **columns)

    def contents(self, place: Place, **columns: Any) -> None:
        """Change the content at a place, in the log and for every reader; the digests follow."""
        digests = {"digest": self.random.getrandbits(32), "identity_digest": self.random.getrandbits(32)}
        for frame in PLACED:
            changed = {**columns, **digests}
            if frame == "observations":
                del changed["digest"]
            self.change(frame, lambda row: place_of(row) == place, **changed)


#: Columns that only the log has.
_OF_THE_LOG = frozenset({"producer_id", "producer_epoch", "sequence", "leader_epoch", "control", "transactional"})
#: Columns that observations lack.
_NOT_OBSERVED = frozenset({"topic", "timestamp_ms", "digest"})


def observation(row: Row) -> Row:
    """The columns that an observation shares with a capture."""
    return {name: value for name, value in row.items() if name not in _NOT_OBSERVED}


def _turn(row: Row) -> tuple[int, int]:
    return (row["poll"], row["position"])


def _changed(row: Row, columns: dict[str, Any]) -> Row:
    return {**row, **{name: value(row) if callable(value) else value for name, value in columns.items()}}


#: The anomalies that a mutator declares; it raises NothingToChangeError if the base has nothing to change.
Breaks = Collection[Anomaly]
Make = Callable[[Base, Draft], Breaks]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutator:
    """One way to change evidence; `does` is a sentence for the score."""

    name: str
    does: str
    make: Make


def mutator(make: Make) -> Mutator:
    """A mutator, called as its function is and described by its docstring."""
    return Mutator(
        name=make.__name__.strip("_").replace("_", "-"), does=(make.__doc__ or "").splitlines()[0], make=make
    )
