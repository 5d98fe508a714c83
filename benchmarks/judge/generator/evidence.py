"""Writes evidence to disk, in the format of `docs/evidence.md`, without a cluster and block by block.

Log and deliveries are Parquet, one row group per block. History and acknowledgements are the usual JSON lines. Two
things differ from a run: there are no live observers, and digests are numbers mixed from the identity instead of the
CRC-32 of a value. Values are never made, and the judge only compares their digests.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from benchmarks.judge.findings import FoundViolation
from benchmarks.judge.generator import columns
from benchmarks.judge.generator.block import (
    DATA,
    OPEN_RECORDS,
    Carried,
    Rows,
    advance,
    beginning,
    copies,
    joined,
    lay_out,
    left_open,
    number,
    taken,
    written,
)
from benchmarks.judge.generator.capture import CaptureWriter
from benchmarks.judge.generator.operations import initialised, operations
from benchmarks.judge.generator.plan import COPIERS, INPUT, LEAVER, OUTPUTS, PARTITIONS, RUN, TOPICS, EvidencePlan
from benchmarks.judge.generator.planting import LAG, LAGGING, CopyFault, Planting
from benchmarks.judge.generator.plants import at
from verification.evidence.columns import CAPTURED
from verification.evidence.history_file import entry_line, footer_line, header_line
from verification.evidence.run_directory import RunDirectory
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.experiment import Experiment, ExperimentTopic, Floor
from verification.vocabulary.history import Entry
from verification.vocabulary.quiescent_state import (
    CoordinatorState,
    GroupOffset,
    OpenProducer,
    PartitionEnd,
    QuiescentState,
)

GROUP = "copiers"
STARTED = "2026-01-01T00:00:00+00:00"


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """The evidence that was made: the number of data records in the log, and every violation that must be found."""

    records: int
    planted: tuple[FoundViolation, ...]


class Writing:
    """The open files of one scenario's directory, to which blocks are appended."""

    def __init__(self, directory: RunDirectory, stack: ExitStack) -> None:
        directory.acks.mkdir(parents=True)
        directory.observations.mkdir()
        self._directory = directory
        self._stack = stack
        self._entries = 0
        self._captures = {name: CaptureWriter(directory.root / name, stack) for name in CAPTURED}
        self._history = stack.enter_context(directory.history.open("w", encoding="utf-8"))
        self._history.write(header_line(run=RUN, wall_clock_anchor=STARTED, anchor_ns=0) + "\n")
        self._acks: dict[int, gzip.GzipFile] = {}

    def entry(self, entry: Entry) -> None:
        """Append to the history."""
        self._history.write(entry_line(entry) + "\n")
        self._entries += 1

    def rows(self, rows: Rows) -> None:
        """Append a block to the captures and to the acknowledgements."""
        for name, capture in self._captures.items():
            times = rows["logged" if name == "log" else name]
            capture.append(taken(rows, np.repeat(np.arange(len(times)), times)))
        for process, lines in acknowledgements(rows):
            if process not in self._acks:
                path = self._directory.acks / f"{process}.jsonl.gz"
                self._acks[process] = self._stack.enter_context(gzip.GzipFile(path, "wb", compresslevel=1, mtime=0))
            self._acks[process].write(lines.encode())

    def finish(self, captures: QuiescentState) -> None:
        """Write the files that come last."""
        self._history.write(footer_line(self._entries) + "\n")
        captures.write(self._directory.captures)
        for capture in self._captures.values():
            capture.finish()


def acknowledgements(rows: Rows) -> Iterator[tuple[int, str]]:
    """Lines of `acks/<process>.jsonl.gz` by process: every record of a client was answered ok when it was written."""
    told = taken(rows, (rows["control"] == DATA) & (rows["genuine"] == 1) & (rows["again"] == 0))
    told = taken(told, np.lexsort((told["index"], told["operation"], told["process"])))
    names = ("index", "topic", "partition", "offset")
    values = zip(*(told[name].tolist() for name in names), strict=True)
    texts = [f'[{index},{topic},{partition},{offset},"ok"]' for index, topic, partition, offset in values]
    key = told["process"] * (1 << 40) + told["operation"]
    begins = np.flatnonzero(np.r_[True, key[1:] != key[:-1]]) if len(key) else np.zeros(0, dtype=np.int64)
    lines: dict[int, list[str]] = {}
    for begin, end in pairwise([*begins.tolist(), len(texts)]):
        operation = told["operation"][begin]
        line = f'{{"operation": {operation}, "acks": [{",".join(texts[begin:end])}]}}\n'
        lines.setdefault(int(told["process"][begin]), []).append(line)
    for process, several in lines.items():
        yield process, "".join(several)


def experiment(plan: EvidencePlan) -> Experiment:
    """The claims of the evidence: everything that it can show."""
    topics = tuple(
        ExperimentTopic(name=name, partitions=PARTITIONS, replication=3, min_in_sync=2, role=role)
        for name, role in TOPICS
    )
    return Experiment(
        run=RUN,
        scenario="bench/verification",
        claim="Every planted anomaly is found, and nothing else.",
        requirements=("TXN-25", "ISO-01"),
        seed=plan.seed,
        started=STARTED,
        release="",
        runtime="generated",
        client="generated",
        topics=topics,
        floors=(Floor(name="records", need=1), Floor(name="transactions", need=1), Floor(name="aborted", need=1)),
        order_claimed=True,
        group=GROUP,
        fan_out=1,
        workload=f"{plan.records} records, {plan.per_transaction} per transaction",
    )


def captures(carried: Carried, lagging: int | None) -> QuiescentState:
    """The cluster's state at quiescence: one transaction is left open, and one partition's LSO is low without one.

    If `lagging` is None, neither is so, and no group lags.
    """
    ends = []
    for (topic_index, partition), end in np.ndenumerate(carried.ends):
        stable = int(end)
        if lagging is not None and (topic_index, partition) == (OUTPUTS[-1], PARTITIONS - 1):
            stable -= OPEN_RECORDS
        if lagging is not None and (topic_index, partition) == STUCK:
            stable -= 1
        ends.append(
            PartitionEnd(
                topic=TOPICS[topic_index][0],
                partition=partition,
                start=0,
                high_watermark=int(end),
                last_stable_offset=stable,
            )
        )
    offsets = [int(each) for each in carried.ends[INPUT]]
    if lagging is not None:
        offsets[LAGGING] = lagging
    left = int(carried.ends[OUTPUTS[-1], PARTITIONS - 1]) - OPEN_RECORDS
    number = columns.producer_id(LEAVER)
    opened = OpenProducer(
        topic=TOPICS[OUTPUTS[-1]][0],
        partition=PARTITIONS - 1,
        producer_id=number,
        producer_epoch=1,
        first_offset=left,
    )
    quiet = QuiescentState(
        ends=tuple(ends),
        group_offsets=tuple(
            GroupOffset(group=GROUP, topic=TOPICS[INPUT][0], partition=partition, offset=offset)
            for partition, offset in enumerate(offsets)
        ),
    )
    if lagging is None:
        return quiet
    return replace(
        quiet,
        coordinator_states=(
            CoordinatorState(transactional_id="t-30", state="Empty", producer_id=number, producer_epoch=1),
        ),
        open_producers=(opened,),
    )


#: The partition whose last stable offset is below its last control record.
STUCK = (OUTPUTS[-1], PARTITIONS - 2)


class Maker:
    """Makes the evidence block by block."""

    def __init__(self, plan: EvidencePlan, writing: Writing) -> None:
        self.plan = plan
        self.writing = writing
        self.random = np.random.default_rng(plan.seed)
        self.carried = beginning(plan.numbers_from)
        self.copying = CopyFault(self.random, [])
        self.planted: list[FoundViolation] = []
        self.records = 0

    def block(self, slots: int, rounds: int) -> None:
        """Make so many slots with so many rounds of plants."""
        planting = Planting(self.random, slots=slots, rounds=rounds)
        rows = planting.before(written(self.random, self.plan, slots))
        rows = lay_out(joined([rows, self._copies()]), self.carried)
        self.planted += [*planting.spoil(rows), *self.copying.found(rows)]
        self._write(rows, planting.superseded())
        advance(self.carried, rows)
        self.planted += self.copying.spoil(self.carried, rows, rounds)

    def last(self) -> int | None:
        """Make the remaining copies and a transaction that stays open; returns the offset up to which the group lags.

        Without plants it makes the copies alone, and returns None.
        """
        copied = self._copies()
        if not self.plan.rounds:
            self._write(lay_out(copied, self.carried), frozenset())
            return None
        slot = int(copied["slot"].max(initial=0)) + 1
        rows = lay_out(joined([copied, left_open(slot)]), self.carried)
        self.planted += self.copying.found(rows)
        first = int(np.flatnonzero(rows["process"] == LEAVER)[0])
        self.planted.append(at(rows, first, Anomaly.HUNG_TRANSACTION))
        topic, partition = STUCK
        stands = int(self.carried.ends[STUCK]) - 1
        self.planted.append(
            FoundViolation(str(Anomaly.STUCK_LSO), topic_index=topic, partition=partition, offset=stands),
        )
        behind = np.flatnonzero((rows["process"] == COPIERS[LAGGING]) & (rows["control"] == DATA))
        behind = behind[np.argsort(rows["source_offset"][behind])][-LAG:]
        self.planted += [at(rows, int(row), Anomaly.OUTPUT_WITHOUT_OFFSET) for row in behind]
        rows["committed"][rows["process"] == LEAVER] = 0
        self._write(rows, frozenset())
        return int(rows["source_offset"][behind[0]])

    def _copies(self) -> Rows:
        return copies(self.random, self.plan, self.carried.fed_partition, self.carried.fed_offset)

    def _write(self, rows: Rows, superseded: frozenset[tuple[int, int]]) -> None:
        number(rows, self.carried)
        for entry in operations(rows, superseded):
            self.writing.entry(entry)
        self.writing.rows(rows)
        self.records += int(((rows["control"] == DATA) * rows["logged"]).sum())


def make(directory: RunDirectory, plan: EvidencePlan) -> Made:
    """Write the evidence of a plan into a directory that does not exist yet.

    `EvidencePlan.block_records` bounds the memory, for any number of records. Equal plans make equal evidence.
    Raises EvidenceSizeError before anything is written, and OSError.
    """
    blocks = plan.blocks()
    with ExitStack() as stack:
        writing = Writing(directory, stack)
        experiment(plan).write(directory.experiment)
        for entry in initialised():
            writing.entry(entry)
        maker = Maker(plan, writing)
        for slots, rounds in blocks:
            maker.block(slots, rounds)
        lagging = maker.last()
        writing.finish(captures(maker.carried, lagging))
    return Made(records=maker.records, planted=tuple(sorted(maker.planted, key=repr)))
