"""Mutators of a pipeline that writes rows of a table as well as records: either is an output of an input."""

from __future__ import annotations

from benchmarks.judge_mutants.base import Base, CleanRecord, place_of
from benchmarks.judge_mutants.mutant import Breaks, Draft, mutator
from benchmarks.judge_mutants.sequences import unfollowed
from benchmarks.judge_mutants.writes import FOREIGN, NO_PRODUCER
from verification.evidence.row_types import Row
from verification.vocabulary.anomalies import Anomaly


def _output(base: Base, draft: Draft) -> CleanRecord:
    """A row of the table half of the time, else a record of the topic."""
    rows = draft.random.random() < 0.5
    return draft.pick([each for each in base.copies() if (each.place[0] in base.effects) is rows])


def _written(draft: Draft, record: CleanRecord, source: Row | None = None) -> None:
    """One more output like this one, of another input if that is given."""
    own = {"source_partition": source["partition"], "source_offset": source["offset"]} if source else {}
    digests = {name: draft.random.getrandbits(32) for name in ("digest", "identity_digest") if source}
    draft.append(record.partition, {**record.row, **own, **digests}, visible=True, **NO_PRODUCER)


def _output_twice(base: Base, draft: Draft) -> Breaks:
    """An input has one row or record more than it should."""
    _written(draft, _output(base, draft))
    return {Anomaly.DUPLICATE}


def _output_missing(base: Base, draft: Draft) -> Breaks:
    """An input has its record and no row, or its row and no record."""
    draft.vanish([_output(base, draft).place])
    return {Anomaly.OFFSET_WITHOUT_OUTPUT, *unfollowed(draft)}


def _output_of_aborted_input(base: Base, draft: Draft) -> Breaks:
    """There is a row or a record of an input whose transaction was aborted."""
    aborted = [each.row for each in base.records if each.place[0] in base.inputs and not each.visible]
    _written(draft, _output(base, draft), draft.pick(aborted))
    return {Anomaly.ABORTED_READ}


def _output_of_no_input(base: Base, draft: Draft) -> Breaks:
    """There is a row or a record that names no input."""
    draft.append(_output(base, draft).partition, {**base.copies()[0].row, **FOREIGN}, visible=True, **NO_PRODUCER)
    return {Anomaly.PHANTOM_RECORD}


def _output_too_early(base: Base, draft: Draft) -> Breaks:
    """There is a row or a record of an input that the group has not committed."""
    ends = {row["partition"]: row["offset"] for row in base.rows["group_offsets"]}
    partition = draft.pick(sorted(ends))
    _written(draft, _output(base, draft), {"partition": partition, "offset": ends[partition]})
    return {Anomaly.OUTPUT_WITHOUT_OFFSET}


def _rows_in_another_order(base: Base, draft: Draft) -> Breaks:
    """The database returns the rows of its table in another order."""
    places = [each.place for each in base.copies() if each.place[0] in base.effects]
    others = dict(zip(places, draft.random.sample(places, len(places)), strict=True))
    for frame in ("log", "committed", "uncommitted"):
        draft.change(frame, lambda row: place_of(row) in others, offset=lambda row: others[place_of(row)][2])
    return ()


MUTATORS = tuple(
    mutator(make)
    for make in (
        _output_twice,
        _output_missing,
        _output_of_aborted_input,
        _output_of_no_input,
        _output_too_early,
        _rows_in_another_order,
    )
)
