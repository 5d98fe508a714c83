"""The yardstick in Polars: producers' own numbers, by the rule of `verification.checks.numbering`.

As in `verify.sql`: in a run numbers count up by one per record if they are as many as they span, keep step with send orders,
and these rise; else the run is loose. One that is loose, that comes after a loose one, or that does not begin where the one
before it ends is read; what is odd is read already. `verify.sql` says which cases of that rule cannot be here.
"""

from __future__ import annotations

import polars as pl

from suites.bench_verify.block import NUMBER_MAX
from suites.bench_verify.polars_evidence import OPERATION, PARTITION, PLACE, PRODUCER, RECORD, Evidence, Folded

WRITER = [*PARTITION, "process"]


def placed(evidence: Evidence) -> pl.LazyFrame:
    """The records of which order is asked."""
    return evidence.log.filter(
        "genuine",
        pl.col("topic_index") == pl.col("intended_topic_index"),
        pl.col("partition") == pl.col("intended_partition"),
    )


def going_back(evidence: Evidence) -> pl.DataFrame:
    """The places (WRITER, offset) of records with a lower send order than their writer's record before them."""
    back = (pl.col("send_order") < pl.col("send_order").shift(1)).over(WRITER, order_by="offset")
    rows = placed(evidence).select(*WRITER, "offset", "send_order").filter(back)
    return rows.select(*WRITER, "offset").collect(engine="streaming")


def _next(number: pl.Expr) -> pl.Expr:
    return (number.cast(pl.Int64) + 1) & NUMBER_MAX


def _unjoined(folded: Folded, back: pl.DataFrame) -> pl.DataFrame:
    """The runs whose records are read, with what stood before them."""
    data = folded.numbered.sort(*PRODUCER, "first")
    among = data.join(back, on=WRITER, how="inner").filter(pl.col("offset").is_between("first", "last"))
    disordered = among.select(*PRODUCER, "first").unique().with_columns(disordered=True)
    runs = data.join(disordered, on=[*PRODUCER, "first"], how="left", maintain_order="left").with_columns(
        loose=pl.col("loose") | pl.col("disordered").fill_null(value=False)
    )
    before = {f"{name}_before": pl.col(name).shift(1).over(PRODUCER) for name in ("epoch_max", "number_max", "loose")}
    same = (pl.col("epoch_max_before") == pl.col("epoch_min")).fill_null(value=False)
    due = pl.when(same).then(_next(pl.col("number_max_before"))).otherwise(0)
    read = pl.col("loose") | pl.col("loose_before").fill_null(value=False) | (pl.col("number_min") != due)
    return (
        runs.with_columns(**before)
        .with_columns(read=read)
        .with_columns(follows=pl.col("read").shift(1).over(PRODUCER).fill_null(value=False))
        .filter("read")
        .select(*PRODUCER, *OPERATION, "first", "epoch_max_before", "number_max_before", "follows")
    )


def unsequenced(evidence: Evidence, folded: Folded, back: pl.DataFrame) -> pl.DataFrame:
    """The records whose number does not follow."""
    runs = _unjoined(folded, back)
    marked = folded.markers.group_by(PRODUCER).agg(marked=pl.col("offset").min())
    rows = (
        evidence.log.filter(pl.col("control").is_null())
        .select(*PLACE, *RECORD, "producer_id", "producer_epoch", "sequence")
        .join(runs.lazy(), on=[*PRODUCER, *OPERATION], how="inner", nulls_equal=True)
        .collect(engine="streaming")
        .join(marked, on=PRODUCER, how="left")
        .sort(PLACE)
    )
    before = {name: pl.col(name).shift(1).over(PRODUCER) for name in ("producer_epoch", "sequence")}
    within = pl.when(before["producer_epoch"] == pl.col("producer_epoch")).then(_next(before["sequence"])).otherwise(0)
    known = pl.col("epoch_max_before").is_not_null() | (pl.col("marked") < pl.col("offset"))
    joining = (
        pl.when(pl.col("epoch_max_before") == pl.col("producer_epoch"))
        .then(_next(pl.col("number_max_before")))
        .when(known)
        .then(0)
    )
    begins = (pl.col("offset") == pl.col("first")) & ~pl.col("follows")
    broken = rows.with_columns(due=pl.when(begins).then(joining).otherwise(within))
    odd = folded.odd_records.filter(
        pl.col("sequence") >= 0, pl.col("producer_epoch") >= pl.col("epoch_before")
    ).with_columns(due=_next(pl.col("number_before")).fill_null(0))
    return pl.concat(
        [each.filter(pl.col("sequence") != pl.col("due")).select(*PLACE, *RECORD) for each in (broken, odd)]
    )
