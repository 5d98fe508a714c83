"""One row per place (run, topic, partition, offset): its record in the log, its readers, and the answer to its client.

All evidence about offsets is joined here, by partition: the log on one side, and on the other the records that the
captures and the live observers received. These facts are derived from the log alone:

* the **outcome** of a data record: `commit` when it is not transactional; otherwise the type of the next control
  record with the same (topic, partition, producer id) at a higher offset; `open` when there is none. Where a run has
  no log (an external subject that writes no control records) the records of its committed capture count as `commit`;
* the **epoch before**: the highest producer epoch, of data or control records, at a lower offset of the same
  (partition, producer id);
* whether a transaction was **adopted**: its last record there is followed by data of another operation of the same
  producer id, without a control record in between. Its own decision never arrived; the next one decided it. The
  operation of the next record (`next_process`, `next_operation`) is only a fact when that operation is known;
* the **number that was due** where a record's is not the producer's next (`checks.numbering`).

Columns, besides the place and the identity of the record there (the log's; where the log has nothing, one that
a reader received):

    in_log, control, transactional, producer_id, producer_epoch, outcome, epoch_before, adopted, next_*
    sequence, sequence_due, sequence_known    see `checks.numbering`; meaningless where the log is not whole
    genuine              the identity is valid and of this run
    committed, uncommitted   how often that capture has the place
    received, returned   observers (bit n: observer n) that received it; that received it after it or a later one
    previous_offset      the highest offset before such a return
    first_received_ns, first_observer    the earliest observer that declares read_committed
    inconsistent         readers received two contents, or one where the log has none; `gone_*` is the identity
                         that is not the log's
    high_watermark, last_stable_offset   of the partition
    has_log, order_claimed, fan_out      of the run
    known, told, plain, size, decided_ns, superseded_ns   of the operation (`checks.operations`)

All aggregates are over fixed-width values, because Spark aggregates only those by hash in place.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from verification.checks.numbering import NUMBERING, numbered
from verification.checks.operations import OPERATION
from verification.evidence.columns import IDENTITY
from verification.spark.dataframes import Dataframes

PARTITION = ("run", "topic_index", "partition")
PLACE = (*PARTITION, "offset")

#: Whether the transaction of a record was adopted, and by which one.
ADOPTION = ("adopted", "next_process", "next_operation")
_SPINE = (*PLACE, "control", "transactional", "producer_id", "producer_epoch", "sequence", *IDENTITY, "valid")
#: The columns that are read of the log, and of the captures.
LOGGED = (*_SPINE, "digest", "identity_digest")
GIVEN = (*PLACE, "identity_run", "process", "operation", "index", "valid", "digest", "identity_digest")
_SEEN = """
    run, topic_index, partition, offset, {committed} as committed, {uncommitted} as uncommitted, {observer} as observer,
    {received_ns} as received_ns, {previous} as previous, {digest} as digest, identity_digest,
    {foreign} as foreign_value,
    case when identity_run = run then process end as process,
    case when identity_run = run then operation end as operation,
    case when identity_run = run then index end as index
"""
_CAPTURED = {
    "observer": "cast(null as int)",
    "received_ns": "cast(null as bigint)",
    "previous": "cast(null as bigint)",
    "digest": "digest",
    "foreign": "not valid",
}
_OBSERVED = {
    "committed": "0",
    "uncommitted": "0",
    "observer": "observer_index",
    "received_ns": "case when committed_reader then received_ns end",
    "previous": "previous",
    "digest": "cast(null as bigint)",
    # Other values are compared by digest: what an observer received of them need not have the identity of their record.
    "foreign": "not valid and identity_digest is null",
}


def _selected(frame: DataFrame, template: str, **values: str) -> DataFrame:
    columns = template.format(**values).split(",")
    return frame.selectExpr(*[column.strip() for column in columns])


def _spine(frames: Dataframes) -> DataFrame:
    """The log with outcome and epoch before; for runs without a log, their committed capture."""
    log = frames.log.select(*LOGGED).repartition(*PARTITION)
    producer = Window.partitionBy(*PARTITION, "producer_id")
    # Both windows grow from their start: Spark would compute a window that shrinks towards its end anew for every row.
    later = producer.orderBy(F.desc("offset")).rowsBetween(Window.unboundedPreceding, -1)
    in_order = producer.orderBy("offset")
    earlier = in_order.rowsBetween(Window.unboundedPreceding, -1)
    decision = F.expr("case when control in ('commit', 'abort') then control end")
    outcome = (
        "case when control is not null then null when not transactional then 'commit'"
        " else coalesce(decision, 'open') end"
    )
    epoch_before = "case when producer_id >= 0 then highest end"
    adopted = (
        "coalesce(transactional and control is null and next_control is null"
        " and (process != next_process or operation != next_operation), false)"
    )
    derived = (
        numbered(log, (*PARTITION, "producer_id"))
        .withColumn("decision", F.last(decision, ignorenulls=True).over(later))
        .withColumn("highest", F.max("producer_epoch").over(earlier))
        .withColumns({f"next_{name}": F.lead(name).over(in_order) for name in ("control", "process", "operation")})
        .withColumns({"outcome": F.expr(outcome), "epoch_before": F.expr(epoch_before), "adopted": F.expr(adopted)})
    )
    without_log = frames.committed.join(frames.runs.where("not has_log").select("run"), "run", "left_semi")
    # A record that was received twice stands in the log once.
    once = without_log.repartition(*PARTITION).dropDuplicates(list(PLACE))
    delivered = once.withColumns({"transactional": F.lit(False), "outcome": F.lit("commit")})
    columns = (*LOGGED, *NUMBERING[1:], "epoch_before", "outcome", *ADOPTION)
    return derived.select(*columns).unionByName(
        delivered.select(*[name for name in columns if name in delivered.columns]), allowMissingColumns=True
    )


def _seen(frames: Dataframes) -> DataFrame:
    """The readers of each place: one row per place that any reader received."""
    polls = Window.partitionBy(*PARTITION, "observer_index").orderBy("poll", "position")
    observed = frames.observations.repartition(*PARTITION).withColumn("previous", F.lag("offset").over(polls))
    captured = _selected(frames.committed, _SEEN, committed="1", uncommitted="0", **_CAPTURED).unionByName(
        _selected(frames.uncommitted, _SEEN, committed="0", uncommitted="1", **_CAPTURED)
    )
    every = captured.repartition(*PARTITION).unionByName(_selected(observed, _SEEN, **_OBSERVED))
    sums = ["sum(committed) as committed", "sum(uncommitted) as uncommitted", "true as given"]
    # A foreign value that was observed without a text has no digest to compare.
    sums.append("max(foreign_value) as foreign_value")
    masks = [
        "bit_or(shiftleft(1L, observer)) as received",
        "bit_or(case when previous >= offset then shiftleft(1L, observer) end) as returned",
        "max(case when previous >= offset then previous end) as previous_offset",
        "min(received_ns) as first_received_ns",
        # Earliest to the microsecond, then the lower number: nanoseconds and a number do not fit into one long.
        "min(received_ns div 1000 * 64 + observer) % 64 as first_observer",
    ]
    contents = [f"{end}({name}) as {name}_{end}" for name in ("digest", "identity_digest") for end in ("min", "max")]
    identities = [
        f"{end}_by({name}, identity_digest) as {name}_{end}"
        for name in ("process", "operation", "index")
        for end in ("min", "max")
    ]
    return every.groupBy(*PLACE).agg(*[F.expr(each) for each in (*sums, *masks, *contents, *identities)])


def _joined(frames: Dataframes) -> DataFrame:
    """Log and deliveries, place by place."""
    spine, seen = _spine(frames).withColumn("on_spine", F.lit(True)), _seen(frames)
    both = spine.join(seen, list(PLACE), "full_outer").join(F.broadcast(frames.runs), "run")
    digests_differ = " or ".join(
        f"{name} != {name}_{end}" for name in ("digest", "identity_digest") for end in ("min", "max")
    )
    differs = f"{digests_differ} or digest_min != digest_max or identity_digest_min != identity_digest_max"
    stray = "identity_digest_max != identity_digest or on_spine is null"
    columns = {
        "in_log": "has_log and on_spine is not null",
        "genuine": "case when on_spine then valid and identity_run = run else process_max is not null end",
        "inconsistent": f"coalesce({differs}, false) or coalesce(control is not null and given, false)"
        " or (has_log and (on_spine is null or coalesce(valid and foreign_value and identity_digest != 0, false)))",
        "committed": "coalesce(committed, 0)",
        "uncommitted": "coalesce(uncommitted, 0)",
        "received": "coalesce(received, 0)",
        "returned": "coalesce(returned, 0)",
    }
    for name in ("process", "operation", "index"):
        columns[name] = f"case when on_spine then {name} else {name}_max end"
        columns[f"gone_{name}"] = (
            f"case when coalesce({stray}, control is not null) then {name}_max else {name}_min end"
        )
    shaped = both.withColumns({name: F.expr(text) for name, text in columns.items()})
    kept: tuple[str, ...] = (*PLACE, "in_log", "control", "transactional", "producer_id", "producer_epoch")
    kept += (*NUMBERING, "outcome", "epoch_before", *ADOPTION)
    kept += (
        *[name for name in IDENTITY if name not in ("identity_run", "kind")],
        "genuine",
        "committed",
        "uncommitted",
    )
    kept += ("received", "returned", "previous_offset", "first_received_ns", "first_observer", "inconsistent")
    kept += ("gone_process", "gone_operation", "gone_index", "has_log", "order_claimed", "fan_out")
    return shaped.select(*kept)


def places(frames: Dataframes, operations: DataFrame) -> DataFrame:
    """The dataframe that the module's docstring describes, partitioned by (run, topic_index, partition)."""
    return (
        _joined(frames)
        .join(F.broadcast(frames.ends.drop("start")), list(PARTITION), "left")
        .join(operations, list(OPERATION), "left")
    )
