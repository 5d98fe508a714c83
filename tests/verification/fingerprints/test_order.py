"""Order by fingerprints: which writers are read again, and that their remaining records prove the same."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from tests.support.judging import evidence_of_frames, frames
from tests.support.planted.busy import A0, A1
from tests.support.planted.histories import Plant, Planted
from tests.verification.fingerprints.test_fingerprints import both
from verification.evidence.row_types import Row
from verification.vocabulary.history import Intent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from verification.spark.dataframes import Dataframes

pytestmark = pytest.mark.spark
Orders = list[int]


def _sent(run: str, change: Callable[[Orders], None]) -> Plant:
    """Two writers take turns in two partitions; the send orders of the first one's records in one of them are changed."""
    planted = Planted(run=run, observers=())
    mine, other = planted.client("tx-0"), planted.client()
    for number in range(6):
        decision = "abort" if number == 3 else "commit"
        planted.transaction(mine, (A0, A1, A0, A0, A0, A0), intent=Intent(decision), decision=decision)
        planted.plain(other, (A0, A1, A0))
    plant = planted.finish()
    changed = [row for row in plant.rows["log"] if _is_first(row)]
    orders = [row["send_order"] for row in changed]
    change(orders)
    for row, order in zip(changed, orders, strict=True):
        row["send_order"] = order
    return plant


def _is_first(row: Row) -> bool:
    return (row.get("process"), row["topic_index"], row["partition"]) == (0, *A0)


def _exchanged(one: int, other: int) -> Callable[[Orders], None]:
    def change(orders: Orders) -> None:
        orders[one], orders[other] = orders[other], orders[one]

    return change


def _set(at: int, order: int) -> Callable[[Orders], None]:
    return lambda orders: orders.__setitem__(at, order)


#: 30 send orders, from 0; those of 15 to 19 are of the transaction that was aborted.
CHANGES: dict[str, Callable[[Orders], None]] = {
    "nothing": lambda _: None,
    "with gaps": lambda orders: orders.__setitem__(slice(None), [order * 5 + 3 for order in orders]),
    "one turn apart each": lambda orders: orders.__setitem__(slice(None), [order * 8 for order in orders]),
    "neighbours": _exchanged(2, 3),
    "neighbours in two turns": _exchanged(7, 8),
    "the ends of a turn": _exchanged(8, 15),
    "the ends of all": _exchanged(0, 29),
    "the first of two turns": _exchanged(0, 8),
    "within an aborted transaction": _exchanged(16, 17),
    "into an aborted transaction": _exchanged(14, 15),
    "the last one too early": _set(3, 40),
    "one again": _set(4, 3),
    "one again, later": _set(28, 3),
    "one again in the next turn's place": _set(10, 2),
    "backwards": lambda orders: orders.reverse(),
}


def _rises(plant: Plant) -> bool:
    orders = [row["send_order"] for row in plant.rows["log"] if _is_first(row)]
    return all(one < other for one, other in pairwise(orders))


def test_every_writer_whose_order_does_not_rise_is_looked_at(spark: SparkSession) -> None:
    """And no other writer: neither for gaps, nor for records of others between its own."""
    plants = [_sent(f"o{number:02d}", change) for number, change in enumerate(CHANGES.values())]
    assert {name for name, plant in zip(CHANGES, plants, strict=True) if _rises(plant)} == set(list(CHANGES)[:3])
    found = {row["run"] for row in looked_at(spark, frames(spark, plants)).toArrow().to_pylist()}
    assert sorted(found) == [plant.experiment.run for plant in plants if not _rises(plant)]


def looked_at(spark: SparkSession, evidence: Dataframes) -> DataFrame:
    """The stretches that are out of order."""
    from verification.fingerprints.sequence import out_of_order
    from verification.fingerprints.suspect_facts import aggregates

    aggregated = aggregates(evidence_of_frames(evidence))
    return out_of_order(aggregated.stretches)


@pytest.mark.deep
def test_what_is_left_of_a_sequence_proves_the_same(spark: SparkSession) -> None:
    """Both strategies find the same records out of order, after the same ones, and the short one keeps few of them."""
    from verification.fingerprints.sequence import out_of_order, sent, sequences
    from verification.fingerprints.suspect_facts import aggregates

    plants = [_sent(f"o{number:02d}", change) for number, change in enumerate(CHANGES.values())]
    evidence = frames(spark, plants)
    left, right = both(spark, evidence)
    assert left == right
    names = {plant.experiment.run: name for name, plant in zip(CHANGES, plants, strict=True)}
    reported = {names[run] for run, found in left[0].items() if any("reordered-write" in text for text in found)}
    passed = {
        "within an aborted transaction",
        "into an aborted transaction",
        *[name for name in CHANGES if "again" in name],
    }
    assert reported == set(list(CHANGES)[3:]) - passed
    whole = evidence_of_frames(evidence)
    aggregated = aggregates(whole)
    rows = sent(whole, out_of_order(aggregated.stretches))
    kept = sequences(rows, whole.claimed, aggregated.steps).groupBy("run").count().toArrow().to_pylist()
    assert {row["run"]: row["count"] for row in kept}[plants[3].experiment.run] == 2


def test_runs_that_claim_no_order_are_not_looked_at(spark: SparkSession) -> None:
    """In a run without the claim, no record is out of order if producers do not number their records."""
    plant = _sent("unclaimed", CHANGES["backwards"])
    for row in plant.rows["runs"]:
        row["order_claimed"] = False
    for row in plant.rows["log"]:
        row["sequence"] = None
    assert looked_at(spark, frames(spark, [plant])).isEmpty()
