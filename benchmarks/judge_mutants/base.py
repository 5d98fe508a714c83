"""A clean run as mutators see it: its rows, with facts about each record that the definitions of anomalies need.

All facts are taken directly from the clean run. Its records are visible if the committed capture has them. Its
transactions are committed if all their records are visible, and not if none is. Nothing is derived from producer ids,
epochs or control records: that is the judges' work.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from runner.config import ROOT
from verification.evidence.row_types import Row, Rows
from verification.evidence.rows import all_rows
from verification.evidence.run_directory import RunDirectory
from verification.evidence.run_evidence import read_run
from verification.vocabulary.experiment import EFFECT, TopicRole
from verification.vocabulary.violations import OperationKey, Partition, Place

#: Where the clean runs are kept.
RUNS = ROOT / "fixtures" / "sample_runs"


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanRecord:
    """One record of a clean run; `row` is the log's."""

    place: Place
    key: OperationKey
    index: int
    visible: bool
    row: Row

    @property
    def partition(self) -> Partition:
        """The partition of the record."""
        return self.place[:2]


def place_of(row: Row) -> Place:
    """The place of a row of the log, a capture, an observation or an acknowledgement."""
    return (row["topic_index"], row["partition"], row["offset"])


def by_partition(records: Iterable[CleanRecord]) -> list[list[CleanRecord]]:
    """Records, grouped by partition."""
    found: dict[Partition, list[CleanRecord]] = {}
    for record in records:
        found.setdefault(record.partition, []).append(record)
    return list(found.values())


class Base:
    """One clean run with an index of its records, operations and readers."""

    def __init__(
        self, name: str, rows: Rows, inputs: frozenset[int] = frozenset(), effects: frozenset[int] = frozenset()
    ) -> None:
        (self.run,) = rows["runs"]
        self.name = name
        self.rows = rows
        self.inputs = inputs
        self.effects = effects
        visible = {place_of(row) for row in rows["committed"]}
        self.records = [
            CleanRecord(
                place=place_of(row),
                key=(row["process"], row["operation"]),
                index=row["index"],
                visible=place_of(row) in visible,
                row=row,
            )
            for row in sorted(rows["log"], key=place_of)
            if row["control"] is None
        ]
        self.operations: dict[OperationKey, Row] = {
            (row["process"], row["operation"]): row for row in rows["operations"]
        }
        self.of: dict[OperationKey, list[CleanRecord]] = defaultdict(list)
        self.partitions: dict[Partition, list[CleanRecord]] = defaultdict(list)
        for record in self.records:
            self.of[record.key].append(record)
            self.partitions[record.partition].append(record)
        self.acked = {
            (row["process"], row["operation"], row["index"]) for row in rows["acks"] if row["outcome"] == "ok"
        }
        self.ends = {(row["topic_index"], row["partition"]): row for row in rows["ends"]}

    @property
    def order_claimed(self) -> bool:
        """Whether the subject promises send order."""
        return bool(self.run["order_claimed"])

    def told(self, record: CleanRecord) -> str | None:
        """The answer to a record's client about its transaction; None for a record outside a transaction."""
        told: str | None = self.operations[record.key]["told"]
        return told

    def transactions(self, told: str, *, visible: bool | None = None) -> list[OperationKey]:
        """Transactions with records in the log whose client got this answer; `visible` selects by their outcome."""
        return [
            key
            for key, records in self.of.items()
            if self.operations[key]["told"] == told and (visible is None or records[0].visible is visible)
        ]

    def promised(self) -> list[CleanRecord]:
        """Acknowledged records outside transactions."""
        return [each for each in self.records if self.told(each) is None and (*each.key, each.index) in self.acked]

    def copies(self) -> list[CleanRecord]:
        """Visible outputs of copiers."""
        return [each for each in self.records if each.row["source_offset"] >= 0 and each.visible]

    def given(self, observer_index: int, partition: Partition) -> list[Row]:
        """The records that an observer received of one partition, in order."""
        rows = [
            row
            for row in self.rows["observations"]
            if row["observer_index"] == observer_index and (row["topic_index"], row["partition"]) == partition
        ]
        return sorted(rows, key=lambda row: (row["poll"], row["position"]))

    def observers(self, *, committed: bool | None = None) -> list[Row]:
        """The observers, or those of one isolation level."""
        return [row for row in self.rows["observers"] if committed is None or row["committed_reader"] is committed]

    def seen(self, random: Random, *, committed: bool) -> tuple[Row, list[Row]]:
        """An observer of an isolation level, and its records of a partition from which it received more than two."""
        observer = random.choice(self.observers(committed=committed))
        every = [self.given(observer["observer_index"], partition) for partition in self.partitions]
        return observer, random.choice([rows for rows in every if len(rows) > 2])


def bases(root: Path = RUNS) -> list[Base]:
    """The clean runs of a directory; raises UnfitEvidenceError for one that cannot be judged."""
    return list(_read(root))


def _read(root: Path) -> Iterator[Base]:
    for folder in sorted(path for path in root.iterdir() if path.is_dir()):
        evidence = read_run(RunDirectory(folder))
        topics = list(enumerate(evidence.experiment.topics))
        inputs = frozenset(index for index, topic in topics if topic.role is TopicRole.INPUT)
        effects = frozenset(index for index, topic in topics if topic.shape == EFFECT)
        yield Base(folder.name, all_rows(evidence), inputs, effects)
