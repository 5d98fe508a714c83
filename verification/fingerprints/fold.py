"""The log folded: one row per fragment, then what follows each fragment in its producer's part of the partition.

A **fragment** is what the log holds of one operation, by one producer, in one chunk of offsets of a partition. Whatever
is not surely a record of this run (a control record, a foreign value, a record of another run) is a fragment by itself.
Chunks keep a second copy, written much later, from making one fragment of all that stands in between. Columns of `steps`:

    FRAGMENT, control, n, first, last      key, how many records, lowest and highest offset
    content, content_sum                   XOR of the records' hashes, and the sum of their lower halves
    indexes, indexes_sum, index_max        the same of the records' indexes in their operation
    amiss                                  a record elsewhere than intended, or with an index beyond its own count
    epoch_min, epoch_max
    sequence_min, sequence_max             producers' own numbers
    shift_min, shift_max                   how far they are ahead of the records' send orders
    copies                                 a record is a copy
    outcome                                as `checks.places` has it; null for control records
    until                                  offset of the control record that decided it, null when none did
    odd                                    the fold says too little here, see below
    stale, raises                          an epoch below an earlier one; one above all earlier ones
    unjoined                               its numbers may not follow (`numbering`)

A fragment is **odd** when its outcome or its neighbour cannot be told from the fold: something else of its producer
stands between its records, a record of somebody else follows a transaction without a control record in between, or an
epoch went back. Of all others the next control record decides every record alike.

A record's hash is chained over its place and digests (`xxhash64` seeds each column's hash with the one before), so two
values that change places change it. Aggregates are over fixed-width values, because only those are aggregated in place;
sums take half a hash, because a sum of longs that overflows is an error in Spark.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from verification.checks.numbering import NUMBER_MAX
from verification.checks.places import PARTITION
from verification.identity import NO_SOURCE

PRODUCER = (*PARTITION, "producer_id")
FRAGMENT = (*PRODUCER, "transactional", "process", "operation", "chunk")
#: What a copy was made of, in blocks of offsets, and the output that it was made for; null for what is no copy.
COPIED = ("source_partition", "source_block", "output")
OPERATION = ("run", "process", "operation")

#: Offsets per chunk, as a power of two: some thousand records of some dozen clients.
CHUNK_BITS = 12
#: Offsets per block, as a power of two: a block's offsets are the bits of one long.
BLOCK_BITS = 6
BLOCK_MAX = (1 << BLOCK_BITS) - 1
#: The lower half of a hash.
HALF = (1 << 32) - 1

#: Whether a row is surely a record of this run, of an operation that it names.
SURE = "coalesce(valid and identity_run = run and process is not null and operation is not null, false)"
_DATA = f"control is null and {SURE}"
_KEYS = {
    "process": f"case when {_DATA} then process end",
    "operation": f"case when {_DATA} then operation end",
    "chunk": f"case when {_DATA} then shiftright(offset, {CHUNK_BITS}) else offset end",
}
CONTENT = "xxhash64(topic_index, partition, offset, coalesce(digest, -1L), coalesce(identity_digest, -1L))"
_INDEX = "xxhash64(index)"
BLOCK = f"shiftright(offset, {BLOCK_BITS})"


def bit(offset: str) -> str:
    """The bit of an offset within its block, as SQL."""
    return f"shiftleft(1L, cast({offset} & {BLOCK_MAX} as int))"


def half(number: str) -> str:
    """The lower half of a hash, as SQL."""
    return f"{number} & {HALF}L"


def fragment_key() -> Column:
    """One number for the fragment of a row of the log; equal to `xxhash64` over FRAGMENT of `folded`."""
    return F.expr(f"xxhash64({', '.join(_KEYS.get(name, name) for name in FRAGMENT)})")


def place_block(offset: str = "offset") -> str:
    """One number for (partition, block of offsets), as SQL."""
    return f"xxhash64({', '.join(PARTITION)}, shiftright({offset}, {BLOCK_BITS}))"


def folded(log: DataFrame) -> DataFrame:
    """One row per fragment and block of inputs that it was copied from: the only look at every record of the log."""
    copy = f"control is null and source_offset != {NO_SOURCE}"
    chosen = {
        **_KEYS,
        "source_partition": f"case when {copy} then source_partition end",
        "source_block": f"case when {copy} then shiftright(source_offset, {BLOCK_BITS}) end",
        "output": f"case when {copy} and {SURE} then intended_topic_index end",
        "hash": CONTENT,
        "index_hash": _INDEX,
        "amiss": "topic_index != intended_topic_index or partition != intended_partition or index >= count",
        "source_bit": bit("source_offset"),
        "shift": "sequence - send_order",
    }
    keys = (*FRAGMENT, "control", *COPIED)
    kept = ("offset", "producer_epoch", "index", "source_offset", "sequence", "shift")
    names = (*keys, *kept, "hash", "index_hash", "amiss", "source_bit")
    aggregates = (
        "count(*) as n",
        "min(offset) as first",
        "max(offset) as last",
        "bit_xor(hash) as content",
        f"sum({half('hash')}) as content_sum",
        "bit_xor(index_hash) as indexes",
        f"sum({half('index_hash')}) as indexes_sum",
        "max(index) as index_max",
        "max(coalesce(amiss, false)) as amiss",
        "min(producer_epoch) as epoch_min",
        "max(producer_epoch) as epoch_max",
        *[f"{end}({name}) as {name}_{end}" for name in ("sequence", "shift") for end in ("min", "max")],
        "bit_or(source_bit) as sources",
        "max(source_offset) as source_max",
    )
    return (
        log.selectExpr(*[f"{chosen.get(name, name)} as {name}" for name in names])
        .groupBy(*keys)
        .agg(*[F.expr(each) for each in aggregates])
    )


def _merged(fragments: DataFrame) -> DataFrame:
    """One row per fragment, partitioned by producer."""
    merge = {
        "n": "sum",
        "first": "min",
        "last": "max",
        "content": "bit_xor",
        "content_sum": "sum",
        "indexes": "bit_xor",
    }
    merge |= {"indexes_sum": "sum", "index_max": "max", "amiss": "max"}
    merge |= {f"{name}_{end}": end for name in ("epoch", "sequence", "shift") for end in ("min", "max")}
    return (
        fragments.repartition(*PRODUCER)
        .groupBy(*FRAGMENT, "control")
        .agg(
            *[F.expr(f"{how}({name}) as {name}") for name, how in merge.items()],
            F.expr("max(output is not null) as copies"),
        )
    )


#: Not surely one number after the other; null numbers are passed over by the aggregates.
_LOOSE = (
    "control is null and n > 1 and (amiss or epoch_min < epoch_max or sequence_min < 0"
    " or cast(sequence_max as bigint) - sequence_min + 1 != n or coalesce(shift_min < shift_max, true))"
)


#: The number that is due after the producer's earlier fragments; null where any may come.
_DUE = f"""case when highest is null then null when latest is null or latest.epoch_max != epoch_min then 0
    when latest.sequence_max >= 0 then (cast(latest.sequence_max as bigint) + 1) & {NUMBER_MAX} end"""


def steps(fragments: DataFrame) -> DataFrame:
    """Fragments and control records with what the module's docstring says follows from those around them."""
    producer = Window.partitionBy(*PRODUCER)
    # Both frames grow from their start: a frame that shrinks towards the end would be computed anew for every row.
    backward, forward = producer.orderBy(F.desc("last")), producer.orderBy("last")
    later = backward.rowsBetween(Window.unboundedPreceding, -1)
    earlier = forward.rowsBetween(Window.unboundedPreceding, -1)
    decision = "case when control in ('commit', 'abort') then {} end"
    around = {
        "settled": F.last(F.expr(decision.format("control")), ignorenulls=True).over(later),
        "until": F.last(F.expr(decision.format("last")), ignorenulls=True).over(later),
        "next_first": F.min("first").over(later),
        "before": F.lead("last").over(backward),
        **{f"next_{name}": F.lag(name).over(backward) for name in ("n", "control", "process", "operation")},
    }
    stale = "producer_id >= 0 and (epoch_min < epoch_max or coalesce(highest > epoch_min, false))"
    crossed = "coalesce(next_first <= last, false) or coalesce(before >= first, false)"
    same = "next_process <=> process and next_operation <=> operation"
    follows = f"next_n is not null and next_control is null and not ({same})"
    derived = {
        "outcome": "case when control is not null then null when not transactional then 'commit'"
        " else coalesce(settled, 'open') end",
        "stale": stale,
        "raises": "producer_id >= 0 and (highest is null or epoch_max > highest)",
        "odd": f"control is null and ((transactional or producer_id >= 0) and ({crossed}) or transactional and {follows}"
        f" or {stale})",
    }
    numbers = F.max(F.expr("case when control is null then struct(epoch_max, last, sequence_max, loose) end"))
    unjoined = (
        "control is null and producer_id >= 0 and coalesce(sequence_max >= 0, false)"
        f" and (odd or loose or coalesce(latest.loose, false) or coalesce(sequence_min != {_DUE}, false))"
    )
    return (
        _merged(fragments)
        .withColumns(around)
        .withColumn("loose", F.expr(_LOOSE))
        .withColumns({"highest": F.max("epoch_max").over(earlier), "latest": numbers.over(earlier)})
        .withColumns({name: F.expr(text) for name, text in derived.items()})
        .withColumn("unjoined", F.expr(unjoined))
        .withColumn("key", F.xxhash64(*FRAGMENT))
        .drop(*[name for name in around if name != "until"], "highest", "loose", "latest")
    )
