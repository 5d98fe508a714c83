"""A planted run as a run directory, in the real file formats."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.planted.histories import Plant
from verification.evidence import counts_file, transaction_log_file
from verification.evidence import history_file as histories
from verification.evidence.columns import CAPTURED, TYPES
from verification.evidence.counts_file import PartitionCounts
from verification.evidence.row_types import Row
from verification.evidence.run_directory import RunDirectory
from verification.vocabulary.experiment import Experiment
from verification.vocabulary.history import Settled
from verification.vocabulary.quiescent_state import (
    CoordinatorState,
    GroupOffset,
    KeptCount,
    OpenProducer,
    PartitionEnd,
    QuiescentState,
)

#: The wall clock at time 0 of a planted run.
ANCHOR = "2026-11-21T09:00:00+00:00"


def _parquet(folder: Path, rows: list[Row]) -> None:
    folder.mkdir()
    schema = pa.schema([(name, pa.type_for_alias(TYPES[name])) for name in CAPTURED[folder.name]])
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), folder / "part-0.parquet")
    (folder / "_SUCCESS").touch()


def _lines(path: Path, bodies: Iterable[Any]) -> None:
    path.parent.mkdir(exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as lines:
        lines.writelines(json.dumps(body) + "\n" for body in bodies)


def _acks(plant: Plant, directory: RunDirectory) -> None:
    directory.acks.mkdir()
    rows = sorted(plant.rows["acks"], key=lambda row: (row["process"], row["operation"]))
    for process, mine in groupby(rows, key=lambda row: row["process"]):
        bodies = []
        for operation, acks in groupby(mine, key=lambda row: row["operation"]):
            names = ("index", "topic_index", "partition", "offset", "outcome")
            bodies.append({"operation": operation, "acks": [[ack[name] for name in names] for ack in acks]})
        _lines(directory.acks / f"{process}.jsonl.gz", bodies)


def _observations(plant: Plant, directory: RunDirectory) -> None:
    for observer in plant.rows["observers"]:
        mine = [row for row in plant.rows["observations"] if row["observer_index"] == observer["observer_index"]]
        mine.sort(key=lambda row: (row["poll"], row["position"]))
        bodies = [
            {
                "poll": number,
                "received_ns": row["received_ns"],
                "records": [
                    [
                        row["topic_index"],
                        row["partition"],
                        row["offset"],
                        "" if row["identity_digest"] is None else (row["_value"] or b"")[:96].decode("latin-1"),
                    ]
                ],
            }
            for number, row in enumerate(mine)
        ]
        _lines(directory.observations / f"{observer['observer']}.jsonl.gz", bodies)


def _captures(plant: Plant) -> QuiescentState:
    def named(row: Row) -> dict[str, Any]:
        return {"topic": plant.experiment.topics[row["topic_index"]].name, "partition": row["partition"]}

    return QuiescentState(
        ends=tuple(
            PartitionEnd(
                **named(row),
                start=row["start"],
                high_watermark=row["high_watermark"],
                last_stable_offset=row["last_stable_offset"],
            )
            for row in plant.rows["ends"]
        ),
        group_offsets=tuple(
            GroupOffset(group=plant.experiment.group or "", **named(row), offset=row["offset"])
            for row in plant.rows["group_offsets"]
        ),
        coordinator_states=tuple(
            CoordinatorState(
                transactional_id=row.get("transactional_id", ""),
                state=row["state"],
                producer_id=row["producer_id"],
                producer_epoch=0,
            )
            for row in plant.rows["coordinator_states"]
        ),
        open_producers=tuple(
            OpenProducer(**named(row), producer_id=row["producer_id"], producer_epoch=0, first_offset=row["offset"])
            for row in plant.rows["open_producers"]
        ),
        kept_counts=tuple(KeptCount(**row) for row in plant.rows.get("kept_counts", ())),
        rows={name: len(plant.rows[name]) for name in _captured(plant)},
    )


def _counts(plant: Plant) -> Iterable[PartitionCounts]:
    for topic_index, partition in sorted(counts_file.places(plant.experiment)):
        here = [
            row for row in plant.rows["counts"] if (row["topic_index"], row["partition"]) == (topic_index, partition)
        ]
        counted = tuple((row["offset"], row["key"], row["count"]) for row in here)
        yield PartitionCounts(topic_index=topic_index, partition=partition, counts=counted)


def _captured(plant: Plant) -> Iterable[str]:
    return CAPTURED if plant.experiment.has_log else ("committed",)


def _settled(row: Row, experiment: Experiment) -> Settled:
    return Settled(
        topic=experiment.topics[row["topic_index"]].name,
        partition=row["partition"],
        bound_s=10.0,
        waited_s=10.0,
        high_watermark=row["high_watermark"],
        last_stable_offset=row["last_stable_offset"],
        before_fencing=row["before_fencing"],
    )


def write(plant: Plant, root: Path) -> RunDirectory:
    """A run directory with all of a planted run's evidence."""
    directory = RunDirectory(root)
    root.mkdir(parents=True)
    plant.experiment.write(directory.experiment)
    settled = [_settled(row, plant.experiment) for row in plant.rows["settled"]]
    entries = [*plant.operations, *plant.entries, *settled]
    text = histories.lines(run=plant.experiment.run, wall_clock_anchor=ANCHOR, anchor_ns=0, entries=entries)
    directory.history.write_text("".join(line + "\n" for line in text), encoding="utf-8")
    _captures(plant).write(directory.captures)
    for row in plant.rows.get("transaction_log", ()):
        transaction_log_file.write(directory.transaction_log, row["log"])
    if plant.rows.get("counts"):
        counts_file.write(directory.counts, _counts(plant))
    _acks(plant, directory)
    _observations(plant, directory)
    for name in _captured(plant):
        _parquet(root / name, plant.rows[name])
    return directory
