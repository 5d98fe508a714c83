"""Cuts a real run directory down to a few of its operations, so that it is small enough to be kept.

Each operation is kept or left out as a whole: its acknowledgements, its records in the log and in all captures, its
control records, and the records of it that observers received. The copy has no samples, no metrics, no floors (which
counted the whole run), and no facts about the machine. Offsets, times, producer ids and epochs stay the same. So the log has
holes, as every log has at its control records. Only producers' sequence numbers are closed up, because a missing number is a
violation. The transaction log is kept whole: a hole there would be a step that cannot be judged.

The inputs of copies are kept, and nothing else of the input topic. A copy keeps every other copy of its inputs. The outputs
of a pipeline belong to no operations; they are kept with their inputs, whose operations are kept as a whole.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from verification.evidence import history_file
from verification.evidence.capture_reader import MARKER
from verification.evidence.columns import CAPTURED, TYPES
from verification.evidence.row_types import Row
from verification.evidence.rows import all_rows
from verification.evidence.run_directory import RunDirectory
from verification.evidence.run_evidence import RunEvidence, read_run
from verification.vocabulary.experiment import TopicRole
from verification.vocabulary.history import Action, Entry, Intent, Metric, Operation, Outcome, Sample
from verification.vocabulary.violations import OperationKey, Place

#: Kept per process and kind of ending: more show nothing new.
PER_KIND = 3
#: Inputs kept per partition that were not copied any more.
BEYOND = 3
#: Acks and observations are lists of [index or topic index, topic index or partition, …]; see `docs/evidence.md`.
Line = dict[str, Any]


class _Cut:
    """The kept part of one run."""

    def __init__(self, evidence: RunEvidence, per_kind: int) -> None:
        self.evidence = evidence
        self.rows = all_rows(evidence)
        self.data = [row for row in self.rows["log"] if row["control"] is None and row["valid"]]
        self.inputs = {index for index, topic in enumerate(evidence.experiment.topics) if topic.role is TopicRole.INPUT}
        self.pipeline = any(topic.reference for topic in evidence.experiment.topics)
        self.operations = self._operations(per_kind)
        if self.pipeline:
            fed = [row for row in self.data if row["topic_index"] in self.inputs and _key(row) in self.operations]
            sources = {(row["partition"], row["offset"]) for row in fed}
            self.places = {_place(row) for row in fed} | {_place(row) for row in self.data if _source(row) in sources}
        else:
            self.places = self._of_operations()

    def _of_operations(self) -> set[Place]:
        """The records of the kept operations, and their inputs; adds the operations that belong to these."""
        sources = {_source(row) for row in self.data if row["source_offset"] >= 0 and _key(row) in self.operations}
        # Operations that copied the same inputs, aborted ones included, belong together.
        self.operations |= {_key(row) for row in self.data if _source(row) in sources}
        fed = [row for row in self.data if row["topic_index"] in self.inputs]
        sources |= {_source(row) for row in self.data if _key(row) in self.operations}
        places = {_place(row) for row in fed if (row["partition"], row["offset"]) in sources}
        places |= self._not_copied(fed)
        self.operations |= {_key(row) for row in fed if _place(row) in places}
        return places | {
            _place(row) for row in self.data if _key(row) in self.operations and row["topic_index"] not in self.inputs
        }

    def _operations(self, per_kind: int) -> set[OperationKey]:
        """All initialisations, and the smallest operations of every process and kind of ending."""
        kept: set[OperationKey] = set()
        kinds: dict[tuple[Any, ...], list[Operation]] = defaultdict(list)
        wrote = {_key(row) for row in self.data if self.pipeline or row["topic_index"] not in self.inputs}
        for each in self.evidence.history.of(Operation):
            if each.action is Action.INIT:
                kept.add((each.process, each.operation))
            elif (each.process, each.operation) in wrote or each.outcome is not Outcome.OK:
                kinds[each.process, each.action, each.outcome, each.intent].append(each)
        for several in kinds.values():
            # The last ones end near a succession; the small ones keep the files small, and so do few aborted ones.
            small = 0 if several[0].intent is Intent.ABORT else per_kind - 1
            chosen = [*sorted(several, key=lambda each: each.records)[:small], several[-1]]
            kept |= {(each.process, each.operation) for each in chosen}
        return kept

    def _not_copied(self, fed: list[Row]) -> set[Place]:
        """The first inputs of each partition that the group had not reached when the run ended."""
        found: set[Place] = set()
        for group in self.rows["group_offsets"]:
            partition = (group["topic_index"], group["partition"])
            beyond = sorted(
                _place(row) for row in fed if _place(row)[:2] == partition and row["offset"] >= group["offset"]
            )
            found |= set(beyond[:BEYOND])
        return found

    def acks(self, process: int, line: Line) -> Line | None:
        """The kept part of a line of acknowledgements."""
        if (process, line["operation"]) not in self.operations:
            return None
        acks = [ack for ack in line["acks"] if ack[1] not in self.inputs or tuple(ack[1:4]) in self.places]
        return {**line, "acks": acks}

    def poll(self, line: Line) -> Line | None:
        """The kept part of a line of observations."""
        records = [record for record in line["records"] if tuple(record[:3]) in self.places]
        return {**line, "records": records} if records else None

    def markers(self) -> set[Place]:
        """The control records that decide kept records."""
        found: set[Place] = set()
        pending: set[tuple[int, int, int]] = set()
        for row in sorted(self.rows["log"], key=_place):
            producer = (row["topic_index"], row["partition"], row["producer_id"])
            if row["control"] is not None and producer in pending:
                found.add(_place(row))
                pending.discard(producer)
            elif _place(row) in self.places and row["transactional"]:
                pending.add(producer)
        return found


def closed_up(every: list[Row], kept: Collection[Place]) -> list[Row]:
    """The kept rows of the log; each sequence number is lowered by the count of removed numbers before it."""
    left_out: Counter[tuple[int, int, int, int]] = Counter()
    found = []
    for row in sorted(every, key=_place):
        numbering = (row["topic_index"], row["partition"], row["producer_id"], row["producer_epoch"])
        numbered = row["control"] is None and row["sequence"] is not None and row["sequence"] >= 0
        if _place(row) in kept:
            found.append({**row, "sequence": row["sequence"] - left_out[numbering]} if numbered else row)
        elif numbered:
            left_out[numbering] += 1
    return found


def _key(row: Row) -> OperationKey:
    return (row["process"], row["operation"])


def _source(row: Row) -> tuple[int, int]:
    return (row["source_partition"], row["source_offset"])


def _place(row: Row) -> Place:
    return (row["topic_index"], row["partition"], row["offset"])


def _parquet(folder: Path, rows: list[Row]) -> None:
    folder.mkdir()
    schema = pa.schema([(name, pa.type_for_alias(TYPES[name])) for name in CAPTURED[folder.name]])
    pq.write_table(
        pa.Table.from_pylist(rows, schema=schema), folder / "part-0.parquet", compression="zstd", compression_level=19
    )
    (folder / MARKER).touch()


def _lines(source: Path, target: Path, keep: Callable[[Line], Line | None]) -> None:
    """The lines of a compressed file that `keep` keeps, as it returns them."""
    target.parent.mkdir(exist_ok=True)
    with gzip.open(source, "rt", encoding="utf-8") as lines:
        kept = [line for each in lines if (line := keep(json.loads(each))) is not None]
    # Without a time and a name in its header, equal content gives equal bytes.
    with target.open("wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
        packed.write("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in kept).encode())


def _history(cut: _Cut) -> Iterator[str]:
    entries: list[Entry] = []
    for each in cut.evidence.history.entries:
        if isinstance(each, Sample | Metric) or (
            isinstance(each, Operation) and (each.process, each.operation) not in cut.operations
        ):
            continue
        entries.append(each)
    whole = cut.evidence.history
    return history_file.lines(
        run=whole.run, wall_clock_anchor=whole.wall_clock_anchor, anchor_ns=whole.anchor_ns, entries=entries
    )


def cut(source: Path, target: Path, *, per_kind: int = PER_KIND) -> RunDirectory:
    """Write a smaller copy of a scenario's directory; raises UnfitEvidenceError if the source cannot be judged."""
    kept = _Cut(read_run(RunDirectory(source)), per_kind)
    directory = RunDirectory(target)
    target.mkdir(parents=True)
    experiment = replace(kept.evidence.experiment, floors=(), replay="", configuration={})
    experiment.write(directory.experiment)
    directory.history.write_text("".join(line + "\n" for line in _history(kept)), encoding="utf-8")
    for process, path in kept.evidence.acks.items():
        _lines(path, directory.acks / path.name, partial(kept.acks, process))
    for path in kept.evidence.observations.values():
        _lines(path, directory.observations / path.name, kept.poll)
    if kept.evidence.transaction_log is not None:
        _lines(kept.evidence.directory.transaction_log, directory.transaction_log, lambda line: line)
    places = {"log": kept.places | kept.markers(), "uncommitted": kept.places, "committed": kept.places}
    rows = {name: [row for row in kept.rows[name] if _place(row) in wanted] for name, wanted in places.items()}
    rows["log"] = closed_up(kept.rows["log"], places["log"])
    for name, mine in rows.items():
        _parquet(target / name, sorted(mine, key=_place))
    counted = {name: len(mine) for name, mine in rows.items()}
    replace(kept.evidence.captures, rows=counted).write(directory.captures)
    return directory
