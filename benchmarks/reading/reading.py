"""Reads one log with each source in one session, by turns: every row, with every column of its schema.

The rows go into Spark's sink for measurements (`noop`), so that no plan can skip columns. The ceiling (`prebuilt`)
takes its turn too. It returns as many rows but no real records, so its sums are not checked. Before the turns, the
records of each source are summed over columns that require every value to be decoded. The sums must be equal, and equal
to those of the written records: a reader that is fast because it leaves something out is an error and no figure.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.measuring.footprint import processor_s
from benchmarks.reading.errors import UnequalError
from benchmarks.reading.filling import PARTITIONS, RECORDS_PER_TRANSACTION, RUN, TOPIC
from benchmarks.reading.prebuilt import PREBUILT, register
from verification.sources.ranges import Range, encode
from verification.sources.reading import read
from verification.sources.source import SourceName

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SOURCES = (SourceName.WIRE, SourceName.CONNECTOR, SourceName.CLIENT)
#: What takes a turn: the sources, and the ceiling of those written in Python.
READ = (*SOURCES, PREBUILT)
STALL_S = 60.0
_SUMMED = ("offset", "timestamp_ms", "digest", "identity_digest", "operation", "index", "send_order", "source_offset")


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedLog:
    """The log to read: the broker, the definitions of its messages, and the pinned end of each partition."""

    bootstrap: str
    definitions: tuple[Path, ...]
    ends: Mapping[int, int]

    @property
    def records(self) -> int:
        """The number of records: the ends count a marker per transaction and partition too."""
        return sum(self.ends.values()) * RECORDS_PER_TRANSACTION // (RECORDS_PER_TRANSACTION + PARTITIONS)

    def options(self, tasks: int) -> dict[str, str]:
        """The options, as every source takes them."""
        ranges = [
            Range(topic=TOPIC, topic_index=0, partition=partition, start=0, end=end)
            for partition, end in self.ends.items()
        ]
        return {
            "bootstrap": self.bootstrap,
            "definitions": json.dumps([str(jar) for jar in self.definitions]),
            "run": RUN,
            "ranges": encode(ranges),
            "isolation": "read_uncommitted",
            "tasks": str(tasks),
            "timeout_s": str(STALL_S),
            "settings": "{}",
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """Seconds of the clock, and of all processors together in the JVM and its workers, without the broker's."""

    seconds: float
    processor_s: float


def by_turns(
    spark: SparkSession, log: PinnedLog, *, tasks: int, turns: int, say: Callable[[str], None]
) -> dict[str, list[Took]]:
    """The times of every source and the ceiling, turn by turn, after one turn that warms up. Raises UnequalError."""
    options = log.options(tasks)
    register(spark)
    found: dict[str, list[Took]] = {each: [] for each in READ}
    sums = {source: _summed(spark, source, options) for source in SOURCES}
    require_equal(sums, log.records)
    say(f"each source returned {sums[SourceName.WIRE]['records']} records with the same sums")
    for turn in range(turns + 1):
        for each in READ:
            began, spent = time.monotonic(), processor_s()
            _frame(spark, each, options).write.format("noop").mode("overwrite").save()
            took = Took(seconds=time.monotonic() - began, processor_s=processor_s() - spent)
            if turn:
                found[each].append(took)
            when = f"turn {turn}" if turn else "warming up"
            say(f"{when}, {each}: {took.seconds:.1f} s, processor {took.processor_s:.1f} s")
    return found


def _frame(spark: SparkSession, each: str, options: Mapping[str, str]) -> DataFrame:
    return spark.read.format(PREBUILT).options(**options).load() if each == PREBUILT else read(spark, each, options)


def require_equal(sums: Mapping[SourceName, Mapping[str, Any]], records: int) -> None:
    """Raise UnequalError unless every source returned so many records, with all their identities, and the same sums."""
    if len({tuple(each.items()) for each in sums.values()}) != 1:
        raise UnequalError(f"The sources read different records: {sums}.")
    for source, each in sums.items():
        if each["records"] != records or each["valid"] != records:
            had = f"{each['records']} records, {each['valid']} of them with an identity"
            raise UnequalError(f"{source} returned {had}; {records} were written, each with an identity.")


def _summed(spark: SparkSession, source: SourceName, options: Mapping[str, str]) -> dict[str, Any]:
    from pyspark.sql import functions as F  # noqa: N812

    given = read(spark, source, options)
    data = given.where("control is null") if "control" in given.columns else given
    # The sum of 10^7 timestamps in milliseconds is more than a long holds.
    sums = [F.sum(F.col(name).cast("decimal(20,0)")).alias(name) for name in _SUMMED]
    row = data.agg(F.count("*").alias("records"), F.count_if("valid").alias("valid"), *sums).first()
    assert row is not None
    return dict(row.asDict())
