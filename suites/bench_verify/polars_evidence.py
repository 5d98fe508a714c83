"""A scenario's directory as Polars frames, and its log folded to one row per partition, operation and outcome."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from suites.bench_verify.plan import RUN
from verification.evidence.run_directory import RunDirectory
from verification.vocabulary import experiment as experiment_file
from verification.vocabulary import quiescent_state as captures_file
from verification.vocabulary.experiment import Experiment
from verification.vocabulary.quiescent_state import Captures

PARTITION = ["topic_index", "partition"]
PLACE = [*PARTITION, "offset"]
PRODUCER = [*PARTITION, "producer_id"]
OPERATION = ["process", "operation"]
RECORD = [*OPERATION, "index"]
#: Coordinator states in which a transaction may be open.
RUNNING = ("Ongoing", "PrepareCommit", "PrepareAbort")
_LOW = 0xFFFFFFFF
_HISTORY = {
    "type": pl.String,
    "process": pl.Int32,
    "operation": pl.Int64,
    "action": pl.String,
    "outcome": pl.String,
    "intent": pl.String,
    "transactional_id": pl.String,
    "records": pl.Int32,
    "decided_ns": pl.Int64,
    "completed_ns": pl.Int64,
}
_ACKS = {"operation": pl.Int64, "acks": pl.List(pl.List(pl.String))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The captures as they lie on disk, with null identities where a record is not of this run; the small files read."""

    directory: RunDirectory
    experiment: Experiment
    captures: Captures
    log: pl.LazyFrame
    uncommitted: pl.LazyFrame
    committed: pl.LazyFrame
    operations: pl.DataFrame

    def small(self, entries: tuple[Any, ...], **columns: str) -> pl.DataFrame:
        """Entries of `captures.json` with a topic: its index, the partition, and further columns by field."""
        indexes = {topic.name: index for index, topic in enumerate(self.experiment.topics)}
        rows = [
            {"topic_index": indexes[each.topic], "partition": each.partition}
            | {name: getattr(each, field) for name, field in columns.items()}
            for each in entries
        ]
        types: dict[str, Any] = {"topic_index": pl.Int32, "partition": pl.Int32, **dict.fromkeys(columns, pl.Int64)}
        return pl.DataFrame(rows, schema=types)

    def acks(self, processes: list[int]) -> pl.LazyFrame:
        """Acknowledged records of some processes: RECORD and where each was told to stand."""
        files = [self.directory.acks / f"{process}.jsonl.gz" for process in processes]
        told = (
            pl.scan_ndjson(files, schema=_ACKS, include_file_paths="file")
            .explode("acks")
            .filter(pl.col("acks").list.get(4) == "ok")
        )
        names = (("index", pl.Int32), ("topic_index", pl.Int32), ("partition", pl.Int32), ("offset", pl.Int64))
        return told.select(
            pl.col("file").str.extract(r"(\d+)\.jsonl\.gz$").cast(pl.Int32).alias("process"),
            "operation",
            *[pl.col("acks").list.get(at).cast(kind).alias(name) for at, (name, kind) in enumerate(names)],
        )


def content() -> pl.Expr:
    """A hash of offset and content, chained: one that is merely combined lets a swap cancel out."""
    whole = pl.col("digest").cast(pl.UInt64) * (_LOW + 1)
    return (pl.col("offset").hash() ^ (whole | pl.col("identity_digest").cast(pl.UInt64))).hash()


def low(hashed: pl.Expr) -> pl.Expr:
    """The sum of the lower halves of hashes; 2^31 of them fit."""
    return (hashed & _LOW).cast(pl.Int64).sum()


def fingerprint() -> list[pl.Expr]:
    """How many records, and two sums over their contents."""
    return [
        pl.len().cast(pl.Int64).alias("n"),
        content().bitwise_xor().alias("x"),
        low(content()).alias("s"),
    ]


def _capture(directory: Path) -> pl.LazyFrame:
    rows = pl.scan_parquet(directory / "*.parquet").with_columns(
        genuine=(pl.col("valid") & (pl.col("identity_run") == RUN)).fill_null(value=False)
    )
    return rows.with_columns([pl.when("genuine").then(name).alias(name) for name in RECORD])


def _operations(history: Path) -> pl.DataFrame:
    entries = pl.scan_ndjson(history, schema=_HISTORY).filter(pl.col("type") == "operation")
    takes = (pl.col("action") == "init") & (pl.col("outcome") == "ok")
    is_init = pl.col("action") == "init"
    bound = (pl.col("action") == "transaction") | (
        (pl.col("action") == "copy") & pl.col("transactional_id").is_not_null()
    )
    aborted = pl.col("intent").ne_missing("commit") | (pl.col("outcome") == "fail") | pl.col("decided_ns").is_null()
    told = pl.when(aborted).then(pl.lit("aborted"))
    told = told.when(pl.col("outcome") == "ok").then(pl.lit("committed")).otherwise(pl.lit("unknown"))
    return (
        entries.with_columns(
            at_ns=pl.when(is_init).then("completed_ns").otherwise("decided_ns"),
            is_init=is_init,
            owner=pl.when(takes).then("process"),
        )
        .sort("at_ns", "is_init", nulls_last=False)
        .with_columns(owner=pl.col("owner").shift(1).forward_fill().over("transactional_id"))
        .select(
            *OPERATION,
            size=pl.col("records").fill_null(0),
            told=pl.when(bound).then(told),
            plain=(pl.col("action") == "append") | ((pl.col("action") == "copy") & ~bound),
            superseded=(
                pl.col("transactional_id").is_not_null()
                & pl.col("decided_ns").is_not_null()
                & (pl.col("owner") != pl.col("process"))
            ).fill_null(value=False),
        )
        .collect()
    )


def read(root: Path) -> Evidence:
    """The evidence of one scenario; raises what reading raises."""
    directory = RunDirectory(root)
    return Evidence(
        directory=directory,
        experiment=experiment_file.read(directory.experiment),
        captures=captures_file.read(directory.captures),
        log=_capture(directory.log),
        uncommitted=_capture(directory.uncommitted),
        committed=_capture(directory.committed),
        operations=_operations(directory.history),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """The log folded: `pieces` by partition, operation and outcome, `markers`, and what needs every record.

    `odd_records` are the data records of producers whose runs cross or whose epochs go back in a partition, with their
    outcome, the highest epoch before, the number before it of its epoch, and what follows; `ends` are the last records of
    runs that another run follows; `numbered` are the runs of producers that number, without those that are odd.
    """

    pieces: pl.DataFrame
    markers: pl.DataFrame
    odd_records: pl.DataFrame
    ends: pl.DataFrame
    numbered: pl.DataFrame


_ELSEWHERE = (pl.col("topic_index") != pl.col("intended_topic_index")) | (
    pl.col("partition") != pl.col("intended_partition")
)
_DECISION = pl.when(pl.col("control").is_in(["commit", "abort"])).then("control")


def _sums() -> list[pl.Expr]:
    return [
        *fingerprint(),
        pl.col("offset").min().alias("first"),
        pl.col("offset").max().alias("last"),
        pl.col("producer_epoch").min().alias("epoch_min"),
        pl.col("producer_epoch").max().alias("epoch_max"),
        low(pl.col("index").hash()).alias("indexes"),
        pl.col("index").max().alias("index_max"),
        pl.col("count").max().alias("carried"),
        _ELSEWHERE.any().alias("misrouted"),
    ]


def _numbers() -> list[pl.Expr]:
    lowest, highest, step = (
        pl.col("sequence").min(),
        pl.col("sequence").max(),
        pl.col("sequence") - pl.col("send_order"),
    )
    in_step = (step.min() == step.max()).fill_null(value=False)
    many = highest.cast(pl.Int64) - lowest == pl.len().cast(pl.Int64) - 1
    return [
        lowest.alias("number_min"),
        highest.alias("number_max"),
        (_ELSEWHERE.any().fill_null(value=True) | ~in_step | ~many).alias("loose"),
    ]


def _outcome(transactional: pl.Expr, decision: pl.Expr) -> pl.Expr:
    later = decision.shift(-1).backward_fill().over(PRODUCER).fill_null("open")
    return pl.when(~transactional).then(pl.lit("commit")).otherwise(later).alias("outcome")


def _steps(runs: pl.DataFrame, markers: pl.DataFrame) -> pl.DataFrame:
    """Runs and control records of each producer in each partition, in turn."""
    points = markers.select(
        *PRODUCER,
        transactional=True,
        first="offset",
        last="offset",
        epoch_min="producer_epoch",
        epoch_max="producer_epoch",
        decision="decision",
        marker=True,
    )
    turns = pl.concat([runs.with_columns(marker=False), points], how="diagonal").sort(*PRODUCER, "first")
    following = [pl.col(name).shift(-1).over(PRODUCER).alias(f"next_{name}") for name in ("marker", *OPERATION)]
    before = {name: pl.col(name).cum_max().shift(1).over(PRODUCER) for name in ("last", "epoch_max")}
    return turns.with_columns(
        *following,
        _outcome(pl.col("transactional"), pl.col("decision")),
        odd=(
            (before["last"] > pl.col("first"))
            | (pl.col("epoch_min") < pl.col("epoch_max"))
            | (before["epoch_max"] > pl.col("epoch_min"))
        ).fill_null(value=False)
        & (pl.col("producer_id") >= 0),
    )


def _odd_records(log: pl.LazyFrame, odd: pl.DataFrame) -> pl.DataFrame:
    return (
        log.join(odd.lazy(), on=PRODUCER, how="semi")
        .sort(*PRODUCER, "offset")
        .with_columns(
            _outcome(pl.col("transactional"), _DECISION),
            *[pl.col(name).shift(-1).over(PRODUCER).alias(f"next_{name}") for name in ("control", *OPERATION)],
            epoch_before=pl.col("producer_epoch").cum_max().shift(1).over(PRODUCER),
            number_before=pl.col("sequence").shift(1).over([*PRODUCER, "producer_epoch", pl.col("control").is_null()]),
        )
        .filter(pl.col("control").is_null())
        .collect(engine="streaming")
    )


def fold(evidence: Evidence) -> Folded:
    """Fold the log; what overlaps is looked at record by record."""
    keys = [*PRODUCER, *OPERATION, "transactional"]
    data = evidence.log.filter(pl.col("control").is_null())
    runs = data.group_by(keys).agg([*_sums(), *_numbers()]).collect(engine="streaming")
    markers = (
        evidence.log.filter(pl.col("control").is_not_null())
        .select(*PRODUCER, "offset", "producer_epoch", decision=_DECISION)
        .collect(engine="streaming")
    )
    steps = _steps(runs, markers)
    odd = steps.filter("odd").select(PRODUCER).unique()
    kept = steps.filter(~pl.col("marker")).join(odd, on=PRODUCER, how="anti")
    records = _odd_records(evidence.log, odd)
    again = records.group_by([*keys, "outcome"]).agg(_sums())
    columns = again.columns
    other = (pl.col("process") != pl.col("next_process")) | (pl.col("operation") != pl.col("next_operation"))
    followed = kept.filter("transactional", pl.col("next_marker") == False, pl.col("outcome") != "open", other)  # noqa: E712 - null is neither
    crossed = records.filter(
        "genuine", "transactional", pl.col("next_control").is_null(), pl.col("outcome") != "open", other
    )
    names = [*PARTITION, *OPERATION, "next_process", "next_operation"]
    return Folded(
        pieces=pl.concat([kept.select(columns), again]),
        markers=markers,
        odd_records=records,
        ends=pl.concat([followed.select(*names, offset="last"), crossed.select(*names, "offset")]),
        numbered=kept.filter(pl.col("producer_id") >= 0, pl.col("number_min") >= 0),
    )
