"""The yardstick in Polars. `python -m suites.bench_verify.polars_form DIRECTORY FOUND`, threads by POLARS_MAX_THREADS.

The same plan as `verify.sql`, step by step: fold the log (`polars_evidence`), hold fingerprints against each other and
look record by record at what does not agree (`polars_doubt`, `polars_numbers`), and, here, what has no fingerprint.
"""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl

from suites.bench_verify.polars_doubt import decided, doubt, named, of_records, places, second
from suites.bench_verify.polars_evidence import (
    OPERATION,
    PARTITION,
    PLACE,
    PRODUCER,
    RECORD,
    RUNNING,
    Evidence,
    Folded,
    fold,
    read,
)
from suites.bench_verify.polars_numbers import WRITER, going_back, placed, unsequenced

_OUTPUT = "intended_topic_index"


def reordered(evidence: Evidence, folded: Folded, back: pl.DataFrame) -> pl.DataFrame:
    """First copies that stand behind a higher send order; a window over all records says where to look."""
    back_in = back.select(WRITER).unique()
    rows = placed(evidence).join(back_in.lazy(), on=WRITER, how="semi").collect(engine="streaming")
    kept = decided(rows, folded).filter(pl.col("outcome") == "commit").sort(PLACE)
    late = pl.col("send_order") < pl.col("send_order").cum_max().shift(1).over(WRITER)
    return kept.filter(late, pl.int_range(pl.len()).over([*WRITER, "send_order"]) == 0)


def of_copies(evidence: Evidence, folded: Folded) -> list[pl.DataFrame]:
    """Copies against their inputs, by blocks of source offsets."""
    fan_out = evidence.experiment.fan_out
    if fan_out is None:
        return []
    source = ["source_partition", "source_offset"]
    written = evidence.log.filter("genuine", pl.col("source_offset") != -1).collect(engine="streaming")
    copies = decided(written, folded).filter(pl.col("outcome") == "commit")
    offsets = evidence.small(
        tuple(each for each in evidence.captures.group_offsets if each.group == evidence.experiment.group),
        committed_offset="offset",
    ).with_columns(pl.col("committed_offset").clip(lower_bound=0))
    by_source = offsets.select("committed_offset", source_partition="partition")
    copies = copies.join(by_source, on="source_partition", how="left").with_columns(
        pl.col("committed_offset").fill_null(0)
    )
    beyond = copies.filter(pl.col("source_offset") >= pl.col("committed_offset"))
    inputs = (
        evidence.committed.join(offsets.lazy(), on=PARTITION, how="inner")
        .filter(pl.col("offset") < pl.col("committed_offset"))
        .select(*PLACE, *RECORD, source_partition="partition", source_offset="offset")
        .collect(engine="streaming")
    )
    outputs = copies.select(*source, _OUTPUT).group_by(source).agg(outputs=pl.col(_OUTPUT).n_unique(), copies=pl.len())
    short = inputs.join(outputs, on=source, how="left").filter(pl.col("outputs").fill_null(0) < fan_out)
    more = outputs.filter(pl.col("copies") > pl.col("outputs"))
    return [
        named(beyond, "output-without-offset"),
        named(short, "offset-without-output"),
        named(second(copies.join(more, on=source, how="semi"), [*source, _OUTPUT]), "duplicate"),
    ]


def standing(evidence: Evidence, folded: Folded) -> list[pl.DataFrame]:
    """Zombies, transactions that hang, and last stable offsets that stand."""
    late = folded.pieces.filter(pl.col("outcome") == "commit").join(
        evidence.operations.filter("superseded"), on=OPERATION, how="semi"
    )
    stale = folded.odd_records.filter(
        "genuine", pl.col("outcome") == "commit", pl.col("producer_epoch") < pl.col("epoch_before")
    )
    both = pl.concat([late.select(*OPERATION, *PARTITION, offset="first"), stale.select(*OPERATION, *PLACE)])
    zombies = both.sort(PLACE).unique(OPERATION, keep="first", maintain_order=True)
    opened = evidence.small(evidence.captures.open_producers, producer_id="producer_id", offset="first_offset")
    running = [each.producer_id for each in evidence.captures.coordinator_states if each.state in RUNNING]
    open_pieces = folded.pieces.filter(pl.col("outcome") == "open").select(*PRODUCER, offset="first")
    hung = (
        pl.concat([open_pieces, opened.select(open_pieces.columns)])
        .filter(~pl.col("producer_id").is_in(running))
        .group_by(PRODUCER)
        .agg(pl.col("offset").min())
    )
    known = evidence.operations.select(next_process="process", next_operation="operation")
    adopted = folded.ends.join(evidence.operations, on=OPERATION, how="semi").join(
        known, on=["next_process", "next_operation"], how="semi"
    )
    stands = pl.concat([hung.select(PLACE), adopted.select(PLACE)])
    wanted = pl.concat([stands, zombies.select(PLACE)]).unique().lazy()
    at = evidence.log.join(wanted, on=PLACE, how="semi").select(*PLACE, *RECORD).collect(engine="streaming")
    ends = evidence.small(evidence.captures.ends, offset="last_stable_offset", high_watermark="high_watermark")
    stuck = ends.filter(pl.col("offset") < pl.col("high_watermark")).join(hung, on=PARTITION, how="anti")
    return [
        named(zombies.join(at, on=[*PLACE, *OPERATION], how="inner"), "zombie-write"),
        named(stands.join(at, on=PLACE, how="left"), "hung-transaction"),
        named(stuck, "stuck-lso"),
    ]


def find(root: Path) -> pl.DataFrame:
    """Everything that is wrong with a scenario's evidence, in the columns of `Found`."""
    evidence = read(root)
    folded = fold(evidence)
    doubts = doubt(evidence, folded)
    found = places(evidence, folded, doubts)
    back = going_back(evidence)
    return pl.concat(
        [
            *of_records(evidence, doubts, found),
            named(reordered(evidence, folded, back), "reordered-write"),
            named(unsequenced(evidence, folded, back), "broken-sequence"),
            *of_copies(evidence, folded),
            *standing(evidence, folded),
        ]
    )


if __name__ == "__main__":
    find(Path(sys.argv[1])).write_csv(sys.argv[2])
