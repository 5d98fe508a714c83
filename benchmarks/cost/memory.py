"""Measures the memory of a read_committed consumer against a read_uncommitted one, while a long transaction is open.

Brokers deliver nothing from above the last stable offset. So a consumer does not gather a transaction: the broker holds it
back, and then delivers it as fast as the consumer reads. Each consumer is a process of its own (`reader_process.py`), and
its memory is the most that was resident.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

from benchmarks.cost import reader_process
from benchmarks.cost.cost_cluster import CostCluster
from benchmarks.cost.delivery import COMMITTED, UNCOMMITTED
from benchmarks.cost.producing import WITHIN_S, Batching, send, transactional_producer
from benchmarks.cost.rows import CostRow
from benchmarks.cost.throughput import PARTITIONS
from benchmarks.measuring.errors import WorthlessRateError
from benchmarks.measuring.ratio import Ratio, Unit
from runner.config import ROOT

#: Up to 200 MB, three times the queue of a consumer of librdkafka (64 MB).
SIZES = (1_000, 200_000)
#: To read 200 MB takes seconds; a reader that never gets there is ended.
READ_WITHIN_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderFigures:
    """The records that a reader had when the commit was requested, and the kilobytes that were resident at most."""

    at_commit: int
    most_kb: int


Turn = Mapping[str, ReaderFigures]


def measure(cluster: CostCluster, rounds: int, say: Callable[[str], None]) -> tuple[CostRow, ...]:
    """A row for each size. Raises WorthlessRateError, KafkaException and WireError."""
    found: dict[int, list[Turn]] = {each: [] for each in SIZES}
    for number in range(1, rounds + 1):
        for size in SIZES:
            with cluster.topic(f"cost-memory-{number}-{size}", PARTITIONS) as topic:
                found[size].append(_read(cluster, topic, size))
            said = ", ".join(f"{level} {each.most_kb / 1000:.0f} MB" for level, each in found[size][-1].items())
            say(f"round {number} of {rounds}, {size} records: {said}")
    return tuple(row(size, turns) for size, turns in found.items())


def row(size: int, turns: list[Turn]) -> CostRow:
    """Kilobytes of both readers in each turn as a row, and the records that each did not have yet at the commit."""
    name = f"a transaction of {Batching(records=size).name}"
    return CostRow(
        name=name,
        at=size,
        ratio=Ratio(
            subject=f"{COMMITTED}, {name}",
            against=UNCOMMITTED,
            unit=Unit.KILOBYTES,
            pairs=tuple((float(each[COMMITTED].most_kb), float(each[UNCOMMITTED].most_kb)) for each in turns),
        ),
        counts={
            behind(level): float(median(size - each[level].at_commit for each in turns))
            for level in (COMMITTED, UNCOMMITTED)
        },
    )


def behind(level: str) -> str:
    """The name of the records that a reader does not have at the commit."""
    return f"records behind, {level}"


def _read(cluster: CostCluster, topic: str, size: int) -> Turn:
    """Write a transaction of so many records while two processes read it."""
    by = transactional_producer(cluster, topic)
    readers = {level: _reader(cluster, topic, level, size) for level in (COMMITTED, UNCOMMITTED)}
    # A reader that hangs would hold up the lines that are read from it.
    ends = threading.Timer(READ_WITHIN_S, _end, readers.values())
    ends.start()
    try:
        for each in readers.values():
            _line(each)
        by.begin_transaction()
        for number in range(size):
            send(by, topic, number % PARTITIONS)
            by.poll(0)
        by.flush(WITHIN_S)
        had = {level: int(_line(each, ask=True)) for level, each in readers.items()}
        by.commit_transaction(WITHIN_S)
        return {level: ReaderFigures(at_commit=had[level], most_kb=int(_line(each))) for level, each in readers.items()}
    finally:
        ends.cancel()
        _end(*readers.values())


def _reader(cluster: CostCluster, topic: str, level: str, size: int) -> subprocess.Popen[str]:
    command = (
        sys.executable,
        "-m",
        reader_process.__name__,
        cluster.bootstrap,
        topic,
        str(PARTITIONS),
        level,
        str(size),
    )
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _end(*readers: subprocess.Popen[str]) -> None:
    for each in readers:
        each.kill()
        each.wait()


def _line(reader: subprocess.Popen[str], *, ask: bool = False) -> str:
    """The next line of a reader, for which it is asked or not. Raises WorthlessRateError when it has ended."""
    assert reader.stdin is not None, "it has pipes"
    assert reader.stdout is not None, "it has pipes"
    if ask:
        print(file=reader.stdin, flush=True)
    if not (line := reader.stdout.readline().strip()):
        raise WorthlessRateError(f"A reader ended with {reader.wait()} before it had all records.")
    return line
