"""Mutators of producers' sequence numbers, and the anomalies of those numbers if other mutators remove records."""

from __future__ import annotations

from collections import defaultdict
from itertools import groupby

from benchmarks.judge_mutants.base import Base, CleanRecord, place_of
from benchmarks.judge_mutants.mutant import Breaks, Draft, mutator
from verification.evidence.row_types import Row
from verification.vocabulary.anomalies import Anomaly

#: After the highest number comes 0.
TURN = 1 << 31
Numbering = tuple[int, int, int, int]


def _numberings(draft: Draft) -> list[list[Row]]:
    """The records and control records of each producer in each partition, without those of older epochs."""
    parts: dict[tuple[int, int, int], list[Row]] = defaultdict(list)
    for row in sorted(draft.rows["log"], key=place_of):
        mine = parts[*place_of(row)[:2], row["producer_id"]]
        older = mine and row["producer_epoch"] < mine[-1]["producer_epoch"]
        if row["producer_id"] >= 0 and row["control"] != "other" and not older:
            mine.append(row)
    return list(parts.values())


def unfollowed(draft: Draft) -> set[Anomaly]:
    """The anomaly if a number does not follow: numbers of an epoch count on, from 0 if its producer was known before.

    The logs of all bases begin at offset 0, so a control record always makes its producer known.
    """
    for rows in _numberings(draft):
        known = False
        for _, epoch in groupby(rows, key=lambda row: int(row["producer_epoch"])):
            several = list(epoch)
            known = known or several[0]["control"] is not None
            numbers = [int(row["sequence"]) for row in several if row["control"] is None]
            first = 0 if known else next(iter(numbers), 0)
            if numbers != [(first + each) % TURN for each in range(len(numbers))]:
                return {Anomaly.BROKEN_SEQUENCE}
            known = True
    return set()


def _numbering(row: Row) -> Numbering:
    return (*place_of(row)[:2], row["producer_id"], row["producer_epoch"])


def _epochs(base: Base) -> list[list[CleanRecord]]:
    """The records of each producer and epoch in each partition, if there are three or more."""
    found: dict[Numbering, list[CleanRecord]] = defaultdict(list)
    for record in base.records:
        if record.row["producer_id"] >= 0:
            found[_numbering(record.row)].append(record)
    return [records for records in found.values() if len(records) > 2]


def _renumber(draft: Draft, records: list[CleanRecord], ahead: int) -> None:
    places = {each.place for each in records}
    draft.change("log", lambda row: place_of(row) in places, sequence=lambda row: (row["sequence"] + ahead) % TURN)


def _number_left_out(base: Base, draft: Draft) -> Breaks:
    """From some record on, a producer's numbers are higher: its leader accepted a gap; harmless if it knew no number."""
    records = draft.pick(_epochs(base))
    _renumber(draft, records[draft.random.randrange(len(records)) :], draft.random.randint(1, 5))
    return unfollowed(draft)


def _number_again(base: Base, draft: Draft) -> Breaks:
    """From some record on, a producer's numbers are lower: a leader accepted numbers that it already had."""
    records = draft.pick(_epochs(base))
    start = draft.random.randrange(1, len(records))
    _renumber(draft, records[start:], -draft.random.randint(1, start))
    return {Anomaly.BROKEN_SEQUENCE}


def _numbers_exchanged(base: Base, draft: Draft) -> Breaks:
    """Two records of a producer have each other's number."""
    first, second = draft.random.sample(draft.pick(_epochs(base)), 2)
    own = {first.place: second.row["sequence"], second.place: first.row["sequence"]}
    draft.change("log", lambda row: place_of(row) in own, sequence=lambda row: own[place_of(row)])
    return {Anomaly.BROKEN_SEQUENCE}


def _numbers_go_round(base: Base, draft: Draft) -> Breaks:
    """The first numbers of a producer in a partition are the highest possible ones, and go on with 0."""
    records = draft.pick([each for each in _epochs(base) if each[0].row is _first(base, each[0])])
    _renumber(draft, records, TURN - draft.random.randint(1, len(records) - 1))
    return ()


def _first(base: Base, record: CleanRecord) -> Row:
    """The first row of a record's producer in its partition."""
    own = (*record.partition, record.row["producer_id"])
    mine = [row for row in base.rows["log"] if (*place_of(row)[:2], row["producer_id"]) == own]
    return min(mine, key=place_of)


def _no_numbers(base: Base, draft: Draft) -> Breaks:
    """The numbers of a partition were not captured, and records of an aborted transaction are gone."""
    keys = base.transactions("aborted", visible=False)
    gone = draft.pick(base.of[draft.pick(keys)])
    draft.vanish([gone.place])
    draft.change("log", lambda row: place_of(row)[:2] == gone.partition, sequence=draft.pick((None, -1)))
    return ()


MUTATORS = tuple(
    mutator(make)
    for make in (
        _number_left_out,
        _number_again,
        _numbers_exchanged,
        _numbers_go_round,
        _no_numbers,
    )
)
