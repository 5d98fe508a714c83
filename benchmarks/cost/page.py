"""The page `docs/generated/cost.md` and its plots, from the figures of all parts. Pure: every number is a measured one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version

from benchmarks.cost import (
    completion,
    delivery,
    idempotence,
    loading,
    pending,
    producer_ids,
    protocols,
    replication,
    sentences,
    streams,
    throughput,
)
from benchmarks.cost.plot import Plot, PlotCurve, curve_of
from benchmarks.cost.producing import CELL_S, QUEUED_MAX, RECORD_BYTES
from benchmarks.cost.rows import CostRow, PartFigures
from benchmarks.cost.sentences import Rows, milliseconds, records_of
from benchmarks.measuring.table import aligned, render
from reports.formats.chart_file import svg
from reports.model.timeline import Latency
from reports.model.wording import number as grouped

CLAIM = (
    "Confluent's article *Transactions in Apache Kafka* (2017) claims 3 % lower throughput for a producer of 1 KB records "
    "at full speed that commits every 100 ms."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """How the page shows a part: title, the sentence above its tables, how it is measured, its plot if there is one."""

    title: str
    says: Callable[[Rows], str]
    measured: str
    plot: Callable[[Rows], Plot] | None = None


def page(parts: Mapping[str, PartFigures]) -> str:
    """The text of the page: the parts that were measured, each with its machine."""
    shown = [(SECTIONS[name], name, parts[name]) for name in SECTIONS if name in parts]
    return "\n".join([_HEAD, *(line for each in shown for line in _section(*each))])


def plots(parts: Mapping[str, PartFigures]) -> dict[str, str]:
    """The files of all plots by name."""
    return {
        plot_file(name): svg(section.plot(parts[name].rows).draw(), section.title)
        for name, section in SECTIONS.items()
        if section.plot is not None and name in parts
    }


def plot_file(part: str) -> str:
    """The name of the plot of a part, next to the page."""
    return f"cost-{part}.svg"


def tables(part: PartFigures) -> tuple[str, ...]:
    """The ratios of a part, and its latencies and counts, as Markdown."""
    ratios = render([each.ratio for each in part.rows])
    named = [each for each in part.rows if each.latencies or each.counts]
    return (ratios, aligned([_columns(named[0]), *map(_cells, named)])) if named else (ratios,)


def _section(section: Section, name: str, figures: PartFigures) -> list[str]:
    drawn = [f"![{section.title}]({plot_file(name)})", ""] if section.plot is not None else []
    text = ["", f"## {section.title}", "", f"**{section.says(figures.rows)}**", "", section.measured, "", *drawn]
    text += [line for table in tables(figures) for line in (table, "")]
    return [*text, *(f"* {line}" for line in figures.machine)]


def _columns(row: CostRow) -> tuple[str, ...]:
    quantiles = [f"{name} {quantile}" for name in row.latencies for quantile in ("p50", "p99")]
    return ("setting", *quantiles, *(["measured"] if row.latencies else []), *row.counts)


def _cells(row: CostRow) -> tuple[str, ...]:
    quantiles = [milliseconds(value) for each in row.latencies.values() for value in (each.p50_ms, each.p99_ms)]
    measured = [" + ".join(grouped(each.count) for each in row.latencies.values())] if row.latencies else []
    return (row.name, *quantiles, *measured, *(f"{value:g}" for value in row.counts.values()))


def _records_plot(rows: Rows) -> Plot:
    sizes = [each for each in rows if each.at]
    return Plot(
        settings=tuple(records_of(each) for each in sizes),
        axis="records in a transaction",
        unit="times",
        curves=(
            PlotCurve(
                name="throughput without transactions divided by throughput with them, least … median … greatest",
                kind="subject",
                values=tuple(each.ratio.median for each in sizes),
                spread=tuple((each.ratio.least, each.ratio.most) for each in sizes),
            ),
        ),
    )


def _latencies_plot(rows: Rows, axis: str, names: Mapping[str, str]) -> Plot:
    def values(name: str, of: Callable[[Latency], float | None]) -> list[float | None]:
        return [of(each.latencies[name]) for each in rows]

    curves = [
        each
        for name, kind in names.items()
        for each in (
            curve_of(f"{name} p50", kind, values(name, lambda latency: latency.p50_ms)),
            curve_of(f"{name} p99", f"{kind} tail", values(name, lambda latency: latency.p99_ms)),
        )
    ]
    return Plot(settings=tuple(_setting(each) for each in rows), axis=axis, unit="ms", curves=tuple(curves))


def _setting(row: CostRow) -> str:
    return row.name.removeprefix("a commit ").removeprefix("transactions that write to ")


def _partitions_plot(rows: Rows) -> Plot:
    return _latencies_plot(rows, f"partitions of a transaction of {throughput.RECORDS} records", {"commit": "subject"})


def _delivery_plot(rows: Rows) -> Plot:
    kinds = {delivery.COMMITTED: "subject", delivery.UNCOMMITTED: "against"}
    drawn = _latencies_plot(rows, "records in a transaction, or time between commits", kinds)
    timed = [place for place, each in enumerate(rows) if not each.name.endswith(("record", "records"))]
    plain = [each.latencies[delivery.IDEMPOTENT].p50_ms for each in rows]
    curves = (*drawn.curves, curve_of(f"{delivery.IDEMPOTENT} p50", "plain", plain))
    return replace(drawn, breaks=tuple(timed[:1]), curves=curves)


SECTIONS: Mapping[str, Section] = {
    "throughput": Section(
        title="Throughput by records in a transaction",
        says=sentences.by_records,
        measured=(
            f"An idempotent producer and a transactional one write by turns for {CELL_S:g} s each, at full speed, to "
            f"{throughput.PARTITIONS} partitions. The ratio is the idempotent throughput divided by the transactional "
            "one. One producer sends its transactions one after the other; several producers, each with a transactional id "
            f"of its own, commit at the same time. {CLAIM} That is a claim to compare with, measured on another cluster."
        ),
        plot=_records_plot,
    ),
    "partitions": Section(
        title="Commits and markers by partitions in a transaction",
        says=sentences.by_partitions,
        measured=(
            f"The same with {throughput.RECORDS} records in each transaction, spread over all partitions. *commit* is "
            "the time of `commit_transaction`, which also flushes. *markers* are offsets per transaction that are no "
            "records, counted when the last stable offset has reached the high watermark."
        ),
        plot=_partitions_plot,
    ),
    "replication": Section(
        title="Replicas and acknowledgements",
        says=sentences.by_replication,
        measured=(
            f"As above, with transactions of {replication.BATCHING.name}, on topics of one replica and of three. "
            "The log of the coordinator has three in both cases. A transactional producer has acks=all, as an "
            "idempotent one. Plain producers with acks=1 and acks=all write by turns to the topic of three "
            "replicas."
        ),
    ),
    "protocols": Section(
        title="Transaction protocol 2 against protocol 1",
        says=sentences.by_protocols,
        measured=(
            f"The wire client sends {protocols.TRANSACTIONS} transactions of each protocol by turns on one cluster, one "
            "after the other. Protocol 1 asks the coordinator to add the partitions, protocol 2 leaves that to their "
            "leaders. *protocol* is the time from the first request to the answered commit, *commit* that of EndTxn alone. "
            "The time for which the transaction before is not complete counts. Then, by protocol 1, the client repeats its "
            f"request after {protocols.PAUSE_S * 1000:g} ms, as librdkafka does. By protocol 2 the leader does that itself, "
            "after `add.partitions.to.txn.retry.backoff.ms`, by default 20 ms."
        ),
    ),
    "completion": Section(
        title="From the commit to the last marker",
        says=sentences.by_completion,
        measured=(
            f"The wire client commits {completion.TRANSACTIONS} transactions of protocol 2 with a record in each "
            "partition. Both times run from the request to commit: *answer* until the coordinator has answered, "
            "*last marker* until read_committed readers may read every partition to its end. The leaders are "
            "asked without a pause. With many partitions a look takes some milliseconds itself."
        ),
    ),
    "delivery": Section(
        title="Delivery to a read_committed consumer",
        says=sentences.by_delivery,
        measured=(
            f"A producer sends {grouped(delivery.RECORDS_PER_S)} records per second to "
            f"{throughput.PARTITIONS} partitions and commits after so many records, or when so much time has "
            "passed. Two consumers receive the same records at the same time, one under each isolation level. The time "
            "runs from sending to delivery. The ratio compares the medians of each round. While a commit lasts nothing "
            "is sent. Under read_committed a record is delivered when its transaction has ended, so it waits for the "
            "rest of it. *idempotent* is a producer without transactions at that pace, whose consumer reads read_committed. "
            "It is measured after each setting, and has no commits, so its times differ only by chance. Nothing makes it "
            "wait, so it keeps the whole pace, where a producer of small transactions sends less."
        ),
        plot=_delivery_plot,
    ),
    "memory": Section(
        title="A consumer behind a long transaction",
        says=sentences.by_memory,
        measured=(
            "Two consumers, each a process of its own, read a topic while one transaction is written to it at full speed. "
            "*records behind* are those that a consumer does not have when the commit is requested. The memory is the most "
            "that was resident. When the transaction has ended all its records come at once, and a consumer of librdkafka "
            "queues up to 64 MB of them."
        ),
    ),
    "idempotence": Section(
        title="Idempotence without transactions",
        says=sentences.by_idempotence,
        measured=(
            f"Both have acks=all and five requests in flight, and write by turns: for {CELL_S:g} s at full speed, and then "
            f"{grouped(idempotence.RECORDS_PER_S)} records per second for the time of acknowledgement, where the ratio "
            "compares the p99 of each round."
        ),
    ),
    "streams": Section(
        title="Kafka Streams: exactly_once_v2 against at_least_once",
        says=sentences.by_streams,
        measured=(
            f"An application of Kafka Streams {streams.LIBRARY} with one thread copies {grouped(streams.RECORDS)} "
            "records that were written before, by turns under each guarantee. The time runs from its first "
            "committed offsets until all are committed. By default the intervals differ: 100 ms with "
            "exactly_once_v2, 30 s with at_least_once."
        ),
    ),
    "producer-ids": Section(
        title="Producer ids that a broker remembers",
        says=sentences.by_producer_ids,
        measured=(
            f"Each id writes one batch to one of {producer_ids.PARTITIONS} partitions of three replicas. One broker is "
            "stopped cleanly and started again, by turns without the topic and with it. The time runs from its start until "
            "it is in sync again. The live heap is counted then, after a collection of garbage. Snapshots are those of the "
            "stopped broker. A million ids need more heap than the brokers of this suite have. An id that writes to several "
            "partitions is remembered in each, until "
            "`producer.id.expiration.ms` (a day by default) after its last batch."
        ),
    ),
    "loading": Section(
        title="Transactional ids that a coordinator loads",
        says=sentences.by_loading,
        measured=(
            "One partition of `__transaction_state` has so many ids, another has none. By turns each is moved to its next "
            f"replica, {loading.MOVES} times in a row, by a preferred election. The time runs from the request to elect "
            "until the new coordinator answers for the ids of that partition."
        ),
    ),
    "pending": Section(
        title="OffsetFetch while offsets are pending",
        says=sentences.by_pending,
        measured=(
            "The wire client leaves so many transactions open, each with an offset of the same group. Then it asks "
            f"{pending.REQUESTS} times with require_stable and {pending.REQUESTS} times without, by turns, for a "
            "partition that none of them touches."
        ),
    ),
}

_HEAD = f"""\
# Cost of transactions

Written by `tox -e cost`. It measures the cost of transactions on three brokers of one machine: three replicas, two of them
in sync, acks=all, records of {RECORD_BYTES} bytes, no compression. The clients are those of confluent-kafka
{version("confluent-kafka")} with its defaults, except a queue of {QUEUED_MAX} records. It speaks transaction protocol 1 also
with brokers that offer protocol 2, so only the section on both protocols is about protocol 2.

Each ratio compares two things that one run measured by turns on one cluster. It is the median over the pairs, next to their
spread. The figures *seen here* belong to that machine in that minute and promise nothing. Brokers and clients share its
processors, no network lies between them, and the JVMs of the brokers are those of the suite (256 MB of heap, first compiler
only). Brokers with processors of their own may be faster, and a network makes each commit slower. These costs have no bound,
so they decide no verdict."""
