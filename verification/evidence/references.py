"""Resolves references: outputs of a pipeline become copies that name their inputs.

A pipeline is a program that knows nothing of identities, so its outputs carry the identity of the input record. Right
after the captures are written, each of these outputs is given an identity of its own, in all three captures alike: it
depends on the identity of its input and on its topic alone. After that, pipelines are copiers to all judges. Nothing is
lost: the identity that an output had is that of its input, whose row holds it. The digests stay those of the value,
because live observers are compared by them.

Free of pyspark.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from verification.evidence.run_directory import RunDirectory
from verification.vocabulary.experiment import Experiment, TopicRole
from verification.vocabulary.identity import RecordKind

#: The columns that identify a record of a run.
_RECORD = ["process", "operation", "index"]


def resolve(directory: RunDirectory, experiment: Experiment, *, row_group_rows: int) -> None:
    """Rewrite the captures of an experiment with references, in row groups of `row_group_rows` at most.

    Outputs whose reference is not that of a record of the input topic stay as they are: they are phantoms. A second call
    changes nothing.
    """
    if not any(topic.reference for topic in experiment.topics):
        return
    inputs = _inputs(directory.log, experiment)
    for folder in (directory.log, directory.uncommitted, directory.committed):
        for path in sorted(folder.glob("*.parquet")):
            written = path.with_name(f".{path.name}.resolved")
            rows = resolved(pq.ParquetFile(path).read(), inputs, experiment)
            pq.write_table(rows, written, row_group_size=row_group_rows)
            # The checksum that Spark wrote next to the file is of the old one.
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
            written.replace(path)


def _inputs(log: Path, experiment: Experiment) -> pa.Table:
    """The records of the input topic: identity, place, and their number in the order of places.

    An identity that is found twice is that of its first record.
    """
    (topic,) = [index for index, each in enumerate(experiment.topics) if each.role is TopicRole.INPUT]
    genuine = (ds.field("topic_index") == topic) & (ds.field("identity_run") == experiment.run)
    rows = ds.dataset(log, format="parquet").to_table(columns=[*_RECORD, "partition", "offset"], filter=genuine)
    rows = rows.sort_by([("partition", "ascending"), ("offset", "ascending")])
    rows = rows.append_column("number", pa.array(np.arange(len(rows))))
    return rows.take(rows.group_by(_RECORD).aggregate([("number", "min")])["number_min"])


def resolved(rows: pa.Table, inputs: pa.Table, experiment: Experiment) -> pa.Table:
    """Rows of a capture, in which outputs of the inputs (`_inputs`) have become copies."""
    topics = [index for index, topic in enumerate(experiment.topics) if topic.reference]
    mine = pc.and_(pc.is_in(rows["topic_index"], pa.array(topics)), pc.equal(rows["identity_run"], experiment.run))
    own = np.flatnonzero(np.asarray(mine.fill_null(False)))
    named = rows.select(["topic_index", *_RECORD]).take(own).append_column("row", pa.array(own))
    found = named.join(inputs, _RECORD, join_type="inner").sort_by("row")
    where = np.zeros(len(rows), dtype=np.bool_)
    where[np.asarray(found["row"])] = True
    numbers = np.asarray(found["number"]) * len(experiment.topics) + np.asarray(found["topic_index"])
    largest = pc.max(inputs["number"]).as_py() or 0
    columns = {
        "process": experiment.pipeline,
        "operation": 0,
        "kind": str(RecordKind.PLAIN),
        "index": numbers,
        "count": (largest + 1) * len(experiment.topics),
        "intended_topic_index": found["topic_index"],
        "intended_partition": rows["partition"].filter(where),
        "send_order": 0,
        "source_partition": found["partition"],
        "source_offset": found["offset"],
    }
    for name, values in columns.items():
        place = rows.schema.get_field_index(name)
        field = rows.schema.field(place)
        given = pa.scalar(values, field.type) if isinstance(values, int | str) else pa.array(values).cast(field.type)
        column = pc.replace_with_mask(rows.column(place).combine_chunks(), pa.array(where), given)
        rows = rows.set_column(place, field, column)
    return rows
