"""The sentence that a user reads from the figures of each part. Pure: every number is a measured one."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.cost import completion, delivery, memory
from benchmarks.cost.rows import CostRow, next_to
from benchmarks.measuring.table import number
from reports.model.wording import number as grouped

Rows = Sequence[CostRow]


def milliseconds(value: float | None) -> str:
    """Milliseconds, or seconds from ten of them on."""
    if value is None:
        return "none"
    return f"{number(value / 1000)} s" if value >= 10_000 else f"{number(value)} ms"


def _p99(row: CostRow, name: str) -> str:
    return milliseconds(row.latencies[name].p99_ms)


def _p50(row: CostRow, name: str) -> str:
    return milliseconds(row.latencies[name].p50_ms)


def by_records(rows: Rows) -> str:
    """Throughput by records in a transaction, and in the setting of the published claim."""
    sizes, timed = [each for each in rows if each.at], [each for each in rows if not each.at]
    costs = ", ".join(f"{number(each.ratio.median)} times as many as with {records_of(each)}" for each in sizes)
    losses = ", ".join(
        f"{next_to(each.ratio)} with a commit every {each.name.removeprefix('transactions of ')}" for each in timed
    )
    first = sizes[0]
    completed = number(first.ratio.seen[1] / first.counts["records"])
    return (
        f"Records per second of one producer without transactions: {costs} in a transaction. "
        f"Of transactions with {records_of(first)} a producer completes {completed} per second. "
        f"Next to the throughput without transactions, that with them is {losses}."
    )


def records_of(row: CostRow) -> str:
    """The number of records in a transaction, with its noun if it is one."""
    return "1 record" if row.at == 1 else grouped(round(row.at))


def by_partitions(rows: Rows) -> str:
    """Commits and markers by partitions."""
    commits = ", ".join(f"{_p50(each, 'commit')} with {each.at:g}" for each in rows)
    markers = ", ".join(
        f"{each.counts['markers']:g} with {each.at:g} ({_marker_share(each):.0f} % of the offsets)" for each in rows
    )
    return (
        f"Median time of a commit by partitions in the transaction: {commits}. Markers that it leaves in the logs: "
        f"{markers}, each of {rows[-1].counts['marker bytes']:g} bytes."
    )


def _marker_share(row: CostRow) -> float:
    """The markers in percent of all offsets."""
    markers = row.counts["markers"]
    return 100 * markers / (markers + row.counts["records"])


def by_replication(rows: Rows) -> str:
    """Transactions by replicas, and acks."""
    *factors, acks = rows
    costs = ", ".join(f"{number(each.ratio.median)} times with {each.name}" for each in factors)
    return (
        f"Throughput without transactions against that with them: {costs}. A plain producer with {acks.name} writes "
        f"{number(acks.ratio.median)} times as many records per second as with acks=all."
    )


def by_completion(rows: Rows) -> str:
    """The last marker against the answer."""
    times = "; ".join(
        f"with {each.name} {_p50(each, completion.LAST)} and {_p99(each, completion.LAST)}, where the answer takes "
        f"{_p50(each, completion.ANSWER)} and {_p99(each, completion.ANSWER)}"
        for each in rows
    )
    return f"The last marker is there after (median and 99 %): {times}."


def by_memory(rows: Rows) -> str:
    """Memory and lag behind a long transaction."""
    last = rows[-1]
    behind, other = (
        grouped(round(last.counts[memory.behind(each)])) for each in (delivery.COMMITTED, delivery.UNCOMMITTED)
    )
    return (
        f"Behind {last.name} a read_committed consumer took {last.ratio.seen[0] / 1000:.0f} MB of memory, "
        f"{number(last.ratio.median)} times as much as a read_uncommitted one. When the commit was requested it was "
        f"{behind} records behind, the other one {other}."
    )


def by_streams(rows: Rows) -> str:
    """Both guarantees by interval."""
    costs = ", ".join(f"{number(1 / each.ratio.median)} times as many with {each.name}" for each in rows)
    return f"Records per second of Kafka Streams with at_least_once, against exactly_once_v2: {costs}."


def by_protocols(rows: Rows) -> str:
    """Protocol 2 against protocol 1."""
    took = "; ".join(
        f"with {each.name} {_p50(each, 'protocol 2')} against {_p50(each, 'protocol 1')}, "
        f"{number(each.ratio.median)} times as long"
        for each in rows
    )
    last = rows[-1]
    return (
        f"Median time of a transaction by protocol 2 against protocol 1, with a record in each partition: {took}. "
        f"EndTxn alone takes {_p50(last, 'commit 2')} against {_p50(last, 'commit 1')} with {last.name}."
    )


def by_delivery(rows: Rows) -> str:
    """Delay of readers under both isolation levels."""
    sized = [each for each in rows if each.name.endswith(("record", "records"))]
    timed = [each for each in rows if each not in sized]
    waits = ", ".join(f"{_p99(each, delivery.COMMITTED)} with {each.name}" for each in timed)
    first, last = sized[0], timed[-1]
    return (
        f"A read_committed reader has 99 % of the records within {waits}. A read_uncommitted reader has 99 % of the same "
        f"records within {_p99(last, delivery.UNCOMMITTED)} even with {last.name}. With {first.name} in a transaction the "
        f"medians are {_p50(first, delivery.COMMITTED)} and {_p50(first, delivery.UNCOMMITTED)}. Records of an idempotent "
        f"producer without transactions take {_p50(last, delivery.IDEMPOTENT)}, and 99 % of them "
        f"{_p99(last, delivery.IDEMPOTENT)}."
    )


def by_idempotence(rows: Rows) -> str:
    """Idempotent against plain."""
    speed, tail = rows
    return (
        f"An idempotent producer writes {number(speed.ratio.median)} times as many records per second as a plain one "
        f"({number(speed.ratio.least)} … {number(speed.ratio.most)}), and its p99 of acknowledgement is "
        f"{number(tail.ratio.median)} times as long ({number(tail.ratio.least)} … {number(tail.ratio.most)})."
    )


def by_pending(rows: Rows) -> str:
    """OffsetFetch with and without require_stable."""
    first, last = rows[0], rows[-1]
    return (
        f"OffsetFetch takes {number(last.ratio.median)} times as long with require_stable as without when "
        f"{last.name.replace(' pending', '')} hold pending offsets, and {number(first.ratio.median)} times without any."
    )


def by_producer_ids(rows: Rows) -> str:
    """Restart and heap with the most ids, and the bytes of each."""
    restart, heap = rows[-2:]
    return (
        f"With {restart.name} a broker takes {number(restart.ratio.median)} times as long to start "
        f"({number(restart.ratio.least)} … {number(restart.ratio.most)}), and its live heap is {number(heap.ratio.median)} "
        f"times as large. Each id takes {restart.counts['bytes of heap per id']:g} bytes of heap and "
        f"{restart.counts['bytes of snapshot per id']:g} bytes of a snapshot in each partition and replica."
    )


def by_loading(rows: Rows) -> str:
    """The time until a new coordinator answers."""
    times = ", ".join(f"{_p50(each, 'with ids')} with {each.name}" for each in rows)
    return f"A new coordinator answers after {times}, and after {_p50(rows[-1], 'without')} without any (medians)."
