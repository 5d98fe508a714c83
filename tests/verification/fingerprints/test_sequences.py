"""Producers' own numbers by fingerprints: which records are read again, and that they prove the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from benchmarks.judge_mutants.base import bases
from benchmarks.judge_mutants.batch import frames as mutant_frames
from benchmarks.judge_mutants.mutant import Mutant
from tests.support.judging import evidence_of_frames, frames
from tests.support.planted.busy import A0, A1
from tests.support.planted.histories import Plant, Planted
from tests.verification.fingerprints.test_fingerprints import both, unobserved
from verification.evidence.row_types import Row
from verification.vocabulary.history import Intent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from verification.spark.dataframes import Dataframes

pytestmark = pytest.mark.spark
#: The columns that move with a record when a leader appends batches in another order.
CONTENTS = ("index", "send_order", "digest", "identity_digest", "_value")
#: Eight records of one operation in one partition.
OPERATION = 8


@dataclass(frozen=True, slots=True)
class Change:
    """A change to the numbers of one producer in one partition; whether a leader cannot have appended that."""

    change: Callable[[list[Row]], None]
    breaks: bool = True


def _sent(run: str, change: Change, *, order_claimed: bool) -> Plant:
    """Two producers take turns; the first one's transactions have eight records in a partition, every other aborted."""
    planted = Planted(run=run, observers=(), order_claimed=order_claimed)
    mine, other = planted.client("tx-0"), planted.client()
    for number in range(4):
        decision = "abort" if number % 2 else "commit"
        planted.transaction(mine, (A0,) * OPERATION, intent=Intent(decision), decision=decision)
        planted.plain(other, (A0, A1, A0))
    plant = planted.finish()
    change.change([row for row in plant.rows["log"] if row["producer_id"] == 1_000 and row["control"] is None])
    return plant


def _set(**numbers: int | None) -> Callable[[list[Row]], None]:
    return lambda rows: [rows[int(at[1:])].update(sequence=number) for at, number in numbers.items()] and None


def _ahead(start: int, by: int) -> Callable[[list[Row]], None]:
    return lambda rows: [row.update(sequence=(row["sequence"] + by) % (1 << 31)) for row in rows[start:]] and None


def _moved(order: Sequence[int], start: int) -> Callable[[list[Row]], None]:
    """Records swap places with their numbers, as whole batches would."""

    def change(rows: list[Row]) -> None:
        names = (*CONTENTS, "sequence")
        values = [{name: rows[start + each][name] for name in names} for each in order]
        for number, each in enumerate(values):
            rows[start + number].update(each)

    return change


#: 32 numbers, from 0; those of 8 to 15 and of 24 to 31 are of transactions that were aborted.
CHANGES: dict[str, Change] = {
    "nothing": Change(lambda _: None, breaks=False),
    "all ahead, of a producer of whom nothing is known": Change(_ahead(0, 77), breaks=False),
    "round and on with 0 between operations": Change(_ahead(0, (1 << 31) - OPERATION), breaks=False),
    "round and on with 0 within an operation": Change(_ahead(0, (1 << 31) - 3), breaks=False),
    "none at all": Change(lambda rows: [row.update(sequence=None) for row in rows] and None, breaks=False),
    "none of one": Change(_set(_4=None), breaks=False),
    "one left out between operations": Change(_ahead(8, 1)),
    "one left out within an operation": Change(_ahead(12, 1)),
    "one again between operations": Change(_ahead(16, -1)),
    "one again within an operation": Change(_ahead(19, -1)),
    "one is another's": Change(_set(_4=2)),
    "the first one is as high as the next one after the operation": Change(_set(_0=8)),
    "two and two alike": Change(_set(_1=0, _2=3)),
    "exchanged within an operation": Change(_set(_3=4, _4=3)),
    "exchanged between operations": Change(_set(_7=8, _8=7)),
    "batches exchanged where committed": Change(_moved((0, 3, 4, 1, 2, 5), 1)),
    "batches exchanged where aborted": Change(_moved((0, 3, 4, 1, 2, 5), 9)),
    "the last one far ahead": Change(_set(_31=99)),
}


def _plants() -> list[Plant]:
    return [
        unobserved(_sent(f"n{number:02d}{'nc'[claimed]}{apart}", change, order_claimed=claimed), apart=apart)
        for number, change in enumerate(CHANGES.values())
        for claimed in (True, False)
        for apart in (1, 700)
    ]


def _suspect_runs(evidence: Dataframes) -> set[str]:
    from verification.fingerprints.numbering import suspect_fragments
    from verification.fingerprints.sequence import disordered, out_of_order, sent
    from verification.fingerprints.suspect_facts import aggregates

    whole = evidence_of_frames(evidence)
    aggregated = aggregates(whole)
    keys = suspect_fragments(aggregated.steps, disordered(sent(whole, out_of_order(aggregated.stretches))))
    rows = keys.select("run").distinct().toArrow().to_pylist()
    return {row["run"] for row in rows}


@pytest.mark.deep
def test_both_ways_find_the_same_numbers_broken(spark: SparkSession) -> None:
    """Word by word, also if records moved with their numbers, and if one operation is in several chunks."""
    left, right = both(spark, frames(spark, _plants()))
    assert left == right
    names = list(CHANGES)
    broken = {
        names[int(run[1:3])] for run, found in left[0].items() if any("broken-sequence" in text for text in found)
    }
    assert broken == {name for name, change in CHANGES.items() if change.breaks}


def test_every_broken_history_is_looked_at_and_no_honest_one(spark: SparkSession) -> None:
    """Numbers that are far from 0, or that pass the highest number between operations, are no reason to look."""
    names = list(CHANGES)
    looked = {names[int(run[1:3])] for run in _suspect_runs(frames(spark, _plants()))}
    assert looked >= {name for name, change in CHANGES.items() if change.breaks}
    assert looked.isdisjoint([*names[:3], "none at all"])


def test_nothing_of_a_real_run_is_looked_at(spark: SparkSession) -> None:
    """Clients of two libraries, with and without faults: their numbers follow, and keep step with send orders.

    Not so the outputs of a pipeline, which may come in any order: its records are read.
    """
    clean = [Mutant(name=base.name, mutator="", base=base, rows=base.rows, breaks=frozenset()) for base in bases()]
    assert _suspect_runs(mutant_frames(spark, clean)) == {"transactional-relay"}
