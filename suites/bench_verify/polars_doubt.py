"""The yardstick in Polars: fingerprints held against each other, and what does not agree record by record."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from suites.bench_verify.found import Found
from suites.bench_verify.polars_evidence import (
    OPERATION,
    PARTITION,
    PLACE,
    PRODUCER,
    RECORD,
    Evidence,
    Folded,
    fingerprint,
    low,
)

_BLOCK = 256
_COLUMNS: dict[str, type[pl.DataType]] = {
    "anomaly": pl.String,
    **dict.fromkeys(Found._fields[1:-1], pl.Int64),
    "observer": pl.String,
}


def named(frame: pl.DataFrame, anomaly: str, observer: str | None = None) -> pl.DataFrame:
    """Rows as violations; columns that they lack are null."""
    if "index" in frame.columns:
        frame = frame.rename({"index": "record"})
    values = {name: pl.col(name) if name in frame.columns else pl.lit(None) for name in _COLUMNS}
    values |= {"anomaly": pl.lit(anomaly), "observer": pl.lit(observer)}
    return frame.select(**values).cast(_COLUMNS)


def negative(fingerprints: pl.LazyFrame) -> pl.LazyFrame:
    """Fingerprints that take away; what is added and taken away alike leaves zeros."""
    return fingerprints.with_columns(n=-pl.col("n"), s=-pl.col("s"))


def differing(frames: list[pl.LazyFrame], keys: list[str]) -> pl.DataFrame:
    """The keys whose fingerprints do not cancel out."""
    every = pl.concat([frame.select(*keys, "n", "x", "s") for frame in frames])
    return (
        every.group_by(keys)
        .agg(pl.col("n").sum(), pl.col("x").bitwise_xor(), pl.col("s").sum())
        .filter((pl.col("n") != 0) | (pl.col("x") != 0) | (pl.col("s") != 0))
        .select(keys)
        .collect(engine="streaming")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """What does not agree: operations, and blocks of offsets that an uncommitted reader was given otherwise."""

    operations: pl.DataFrame
    blocks: pl.DataFrame


def _block() -> pl.Expr:
    return (pl.col("offset") // _BLOCK).alias("block")


def _held(folded: Folded) -> pl.DataFrame:
    committed = pl.col("outcome") == "commit"
    return (
        folded.pieces.filter(pl.col("process").is_not_null())
        .group_by(OPERATION)
        .agg(
            pl.col("n").filter(committed).sum(),
            pl.col("indexes").filter(committed).sum(),
            pl.col("index_max", "carried").max(),
            pl.col("misrouted").any(),
        )
    )


def _index_sums(operations: pl.DataFrame) -> pl.DataFrame:
    sizes = pl.DataFrame({"size": range(1, int(operations["size"].max() or 0) + 1)}, schema={"size": pl.Int32})
    hashed = ((pl.col("size") - 1).hash() & 0xFFFFFFFF).cast(pl.Int64)
    return sizes.with_columns(expected=hashed.cum_sum())


def doubt(evidence: Evidence, folded: Folded) -> Doubt:
    """Hold fingerprints against each other and against what the clients were told."""
    keys = [*PARTITION, *OPERATION]
    delivered = evidence.committed.group_by(keys).agg(fingerprint())
    wanted = folded.pieces.lazy().filter(pl.col("outcome") == "commit")
    otherwise = differing([wanted, negative(delivered)], keys)
    blocks = [*PARTITION, _block()]
    data = evidence.log.filter(pl.col("control").is_null()).group_by(blocks).agg(fingerprint())
    given = negative(evidence.uncommitted.group_by(blocks).agg(fingerprint()))
    plain = evidence.operations.filter("plain")["process"].unique().to_list()
    promised = pl.DataFrame(
        schema={"process": pl.Int32, "operation": pl.Int64, "acked": pl.Int64, "told_indexes": pl.Int64}
    )
    if plain:
        sums = [pl.len().cast(pl.Int64).alias("acked"), low(pl.col("index").hash()).alias("told_indexes")]
        promised = evidence.acks(plain).group_by(OPERATION).agg(sums).collect(engine="streaming")
    told = (
        evidence.operations.join(_held(folded), on=OPERATION, how="full", coalesce=True)
        .join(promised, on=OPERATION, how="left")
        .join(_index_sums(evidence.operations), on="size", how="left")
        .with_columns(pl.col("n", "acked", "indexes", "told_indexes", "expected").fill_null(0))
    )
    partial = (pl.col("n") != pl.col("size")) | (pl.col("indexes") != pl.col("expected"))
    size = pl.when(pl.col("size") > 0).then("size").otherwise("carried")
    suspect = told.filter(
        pl.col("misrouted").fill_null(value=False)
        | pl.col("plain").is_null()
        | (pl.col("index_max") >= size).fill_null(value=False)
        | ((pl.col("told") == "committed") & (pl.col("size") > 0) & partial).fill_null(value=False)
        | ((pl.col("told") == "unknown") & (pl.col("n") > 0) & partial).fill_null(value=False)
        | ((pl.col("told") == "aborted") & (pl.col("n") > 0)).fill_null(value=False)
        | (pl.col("plain") & ((pl.col("n") != pl.col("acked")) | (pl.col("indexes") != pl.col("told_indexes"))))
    )
    known = otherwise.filter(pl.col("process").is_not_null())
    return Doubt(
        operations=pl.concat([suspect.select(OPERATION), known.select(OPERATION)]).unique(),
        blocks=differing([data, given], [*PARTITION, "block"]),
    )


def _doubtful(evidence: Evidence, doubts: Doubt) -> pl.DataFrame:
    """The places that are looked at."""
    suspects = doubts.operations.lazy()
    own = [frame.join(suspects, on=OPERATION, how="semi").select(PLACE) for frame in (evidence.log, evidence.committed)]
    foreign = evidence.log.filter(pl.col("control").is_null(), ~pl.col("genuine")).select(PLACE)
    strange = evidence.committed.filter(~pl.col("genuine")).select(PLACE)
    values = [*PLACE, "digest", "identity_digest"]
    near = [
        frame.with_columns(_block())
        .join(doubts.blocks.lazy(), on=[*PARTITION, "block"], how="semi")
        .select(*values, n=pl.lit(sign))
        for frame, sign in ((evidence.log.filter(pl.col("control").is_null()), 1), (evidence.uncommitted, -1))
    ]
    differs = pl.concat(near).group_by(values).agg(pl.col("n").sum()).filter(pl.col("n") != 0).select(PLACE)
    return pl.concat([*own, foreign, strange, differs]).unique().collect(engine="streaming")


def decided(rows: pl.DataFrame, folded: Folded) -> pl.DataFrame:
    """Records with their outcome: that of the producer's next control record in the partition."""
    decisions = folded.markers.filter(pl.col("decision").is_not_null()).select(*PRODUCER, "offset", "decision")
    found = rows.sort("offset").join_asof(
        decisions.sort("offset"),
        on="offset",
        by=PRODUCER,
        strategy="forward",
        allow_exact_matches=False,
        check_sortedness=False,
    )
    outcome = pl.when(~pl.col("transactional")).then(pl.lit("commit")).otherwise(pl.col("decision").fill_null("open"))
    return found.with_columns(outcome=pl.when(pl.col("control").is_null()).then(outcome)).drop("decision")


def places(evidence: Evidence, folded: Folded, doubts: Doubt) -> pl.DataFrame:
    """What the log holds at doubtful places, who was given it, and what its client was told."""
    wanted = _doubtful(evidence, doubts).lazy()
    held = evidence.log.join(wanted, on=PLACE, how="semi").collect(engine="streaming").with_columns(in_log=True)
    seen = []
    for name, frame in (("committed", evidence.committed), ("uncommitted", evidence.uncommitted)):
        given = frame.join(wanted, on=PLACE, how="semi").select(*PLACE, *RECORD, "digest", "identity_digest")
        seen.append(given.with_columns(capture=pl.lit(name)))
    identity = pl.struct(RECORD).sort_by("identity_digest")
    given_to = (
        pl.concat(seen)
        .group_by(PLACE)
        .agg(
            *[(pl.col("capture") == name).sum().cast(pl.Int64).alias(name) for name in ("committed", "uncommitted")],
            *[getattr(pl.col(name), end)().alias(f"{name}_{end}") for name in _DIGESTS for end in ("min", "max")],
            late=identity.last(),
            early=identity.first(),
        )
        .collect(engine="streaming")
    )
    both = decided(held, folded).join(given_to, on=PLACE, how="full", coalesce=True)
    ends = evidence.small(evidence.captures.ends, high_watermark="high_watermark")
    return (
        both.with_columns(
            pl.col("in_log", "genuine").fill_null(value=False),
            pl.col("committed", "uncommitted").fill_null(0),
            inconsistent=_inconsistent(),
            gone=pl.when((pl.col("identity_digest_max") == pl.col("identity_digest")).fill_null(value=False))
            .then("early")
            .otherwise("late"),
        )
        .join(evidence.operations, on=OPERATION, how="left")
        .join(ends, on=PARTITION, how="left")
    )


_DIGESTS = ("digest", "identity_digest")


def _inconsistent() -> pl.Expr:
    differs = [pl.col(name) != pl.col(f"{name}_{end}") for name in _DIGESTS for end in ("min", "max")]
    differs += [pl.col(f"{name}_min") != pl.col(f"{name}_max") for name in _DIGESTS]
    differs.append(pl.col("control").is_not_null() & pl.col("committed").is_not_null())
    return pl.any_horizontal([each.fill_null(value=False) for each in differs]) | pl.col("in_log").is_null()


def _records(evidence: Evidence, doubts: Doubt, found: pl.DataFrame) -> pl.DataFrame:
    """Every record of a suspect operation that was promised or found, with what became of it."""
    suspects = evidence.operations.join(doubts.operations, on=OPERATION, how="semi")
    promised = (
        suspects.filter(pl.col("told").is_in(["committed", "unknown"]), pl.col("size") > 0)
        .select(*OPERATION, index=pl.int_ranges(0, "size", dtype=pl.Int32), expected=True)
        .explode("index")
    )
    answered = (
        promised.select(*RECORD)
        .clear()
        .with_columns(topic_index=pl.lit(0, pl.Int32), partition=pl.lit(0, pl.Int32), offset=pl.lit(0, pl.Int64))
    )
    if len(suspects):
        acks = evidence.acks(suspects["process"].unique().to_list())
        answered = acks.join(suspects.lazy(), on=OPERATION, how="semi").collect(engine="streaming")
    committed = pl.col("outcome") == "commit"
    there = (
        found.filter("in_log", "genuine", pl.col("control").is_null())
        .group_by(RECORD)
        .agg(
            copies=committed.sum(),
            visible=(committed & (pl.col("committed") > 0)).any(),
            open=(pl.col("outcome") == "open").any(),
            carried=pl.col("count").max(),
        )
    )
    every = promised.join(answered, on=RECORD, how="full", coalesce=True).join(
        there, on=RECORD, how="full", coalesce=True
    )
    return every.join(evidence.operations, on=OPERATION, how="inner").with_columns(
        pl.col("expected").fill_null(value=False),
        pl.col("copies").fill_null(0),
        acked=pl.col("offset").is_not_null(),
        seen=pl.col("visible").fill_null(value=False).sum().over(OPERATION),
        any_open=pl.col("open").fill_null(value=False).any().over(OPERATION),
        size=pl.when(pl.col("size") > 0).then("size").otherwise(pl.col("carried").max().over(OPERATION)),
    )


def of_records(evidence: Evidence, doubts: Doubt, found: pl.DataFrame) -> list[pl.DataFrame]:
    """What is wrong with suspect operations and doubtful places."""
    records = _records(evidence, doubts, found)
    promised = (pl.col("told") == "committed") & pl.col("expected") & (pl.col("seen") == 0) & ~pl.col("any_open")
    lost = promised.fill_null(value=False) | (pl.col("plain") & pl.col("acked"))
    torn = records.filter(
        pl.col("told").is_in(["committed", "unknown"]), pl.col("seen") > 0, pl.col("seen") < pl.col("size")
    )
    seen = records.filter(pl.col("told").is_not_null(), pl.col("seen") > 0)
    data = found.filter("in_log", pl.col("control").is_null())
    committed = data.filter("genuine", pl.col("outcome") == "commit")
    aborted = (pl.col("outcome") == "abort") | (pl.col("told") == "aborted").fill_null(value=False)
    size = pl.when(pl.col("size") > 0).then("size").otherwise("count")
    elsewhere = (pl.col("topic_index") != pl.col("intended_topic_index")) | (
        pl.col("partition") != pl.col("intended_partition")
    )
    phantom = ~pl.col("genuine") | pl.col("plain").is_null() | (pl.col("index") >= size) | elsewhere
    single = committed.join(evidence.operations, on=OPERATION, how="semi").filter(pl.col("source_offset") == -1)
    gone = found.filter("inconsistent").select(*PLACE, pl.col("gone").struct.unnest())
    return [
        named(records.filter(pl.col("copies") == 0, lost), "lost-write"),
        named(torn.select(OPERATION).unique(), "torn-transaction"),
        named(committed.filter(pl.col("committed") == 0).join(seen, on=OPERATION, how="anti"), "hidden-committed"),
        named(found.filter("genuine", pl.col("committed") > 0, aborted), "aborted-read", "committed"),
        named(gone, "inconsistent-offset"),
        named(found.filter(pl.col("committed") > 1), "nonmonotonic-poll", "committed"),
        named(found.filter(pl.col("uncommitted") > 1), "nonmonotonic-poll", "uncommitted"),
        named(
            data.filter(pl.col("uncommitted") == 0, pl.col("offset") < pl.col("high_watermark")),
            "poll-skip",
            "uncommitted",
        ),
        named(data.filter(phantom), "phantom-record"),
        named(second(single, RECORD), "duplicate"),
    ]


def second(rows: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """The second of the rows with the same keys, by place."""
    return rows.sort(PLACE).filter(pl.int_range(pl.len()).over(keys) == 1)
