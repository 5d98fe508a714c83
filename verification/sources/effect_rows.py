"""Rows of a database as rows of the captures: records of a topic with one partition, outside of any transaction.

A row that a reader of the database sees is committed, so all three captures have it. Its offset is its number in the answer.
Free of pyspark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from verification.evidence.columns import CAPTURED, TYPES
from verification.evidence.run_directory import RunDirectory
from verification.sources.parse import identity_columns
from verification.vocabulary.experiment import Experiment

#: As the log has records of a producer without an identity.
_PRODUCER = {"producer_id": -1, "producer_epoch": -1, "sequence": -1, "control": None, "transactional": False}


def table(experiment: Experiment, name: str, values: Sequence[bytes | None], columns: Sequence[str]) -> pa.Table:
    """These columns of a capture, with the values of the topic `name` in the order of their offsets."""
    index = [topic.name for topic in experiment.topics].index(name)
    alike = {"run": experiment.run, "topic": name, "topic_index": index, "partition": 0, "timestamp_ms": 0}
    alike |= {**_PRODUCER, "leader_epoch": None}
    own = {**identity_columns(values), "offset": pa.array(range(len(values)), pa.int64())}
    found = {
        column: own[column] if column in own else pa.repeat(pa.scalar(alike[column], TYPES[column]), len(values))
        for column in columns
    }
    return pa.table({column: each.cast(TYPES[column]) for column, each in found.items()})


def write(directory: RunDirectory, experiment: Experiment, effects: Mapping[str, Sequence[bytes | None]]) -> None:
    """Add the rows of a database, by the name of their topic, to every capture."""
    for name, values in effects.items():
        for capture, columns in CAPTURED.items():
            pq.write_table(table(experiment, name, values, columns), directory.root / capture / f"{name}.parquet")
