"""Evidence → DataFrames: one per kind of evidence, each with a `run` column, schemas in `sources.schema`.

The entries of the history are few and become local relations, which Spark broadcasts. Spark reads the bulk (acks,
observations, captures) from the files of all runs at once. So many runs cost one job, and a cluster that sees the files
can judge a run that is larger than the memory of one machine.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from verification.evidence.row_types import Rows
from verification.evidence.rows import operation_columns, rows_without_operations
from verification.evidence.run_directory import RunDirectory
from verification.evidence.run_evidence import RunEvidence
from verification.sources import schema as schemas
from verification.sources.identity_sql import identity_columns
from verification.spark.remote_evidence import escaped, without_scheme
from verification.vocabulary.history import Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataframes:
    """All evidence of some runs. Column by column: `verification.sources.schema`."""

    runs: DataFrame
    observers: DataFrame
    operations: DataFrame
    acks: DataFrame
    observations: DataFrame
    log: DataFrame
    uncommitted: DataFrame
    committed: DataFrame
    ends: DataFrame
    settled: DataFrame
    open_producers: DataFrame
    coordinator_states: DataFrame
    group_offsets: DataFrame


#: Dataframe → its schema, in the order of `Dataframes`.
FRAME_SCHEMAS: dict[str, StructType] = {
    "runs": schemas.RUNS,
    "observers": schemas.OBSERVERS,
    "operations": schemas.OPERATIONS,
    "acks": schemas.ACKS,
    "observations": schemas.OBSERVATIONS,
    "log": schemas.LOG,
    "uncommitted": schemas.DELIVERED,
    "committed": schemas.DELIVERED,
    "ends": schemas.ENDS,
    "settled": schemas.SETTLED,
    "open_producers": schemas.OPEN_PRODUCERS,
    "coordinator_states": schemas.COORDINATOR_STATES,
    "group_offsets": schemas.GROUP_OFFSETS,
}


def local(spark: SparkSession, rows: Sequence[Mapping[str, Any]], schema: StructType) -> DataFrame:
    """A dataframe of rows of this process; columns that a row lacks are null."""
    table = pa.Table.from_pylist(list(rows), schema=to_arrow_schema(schema))
    return spark.createDataFrame(table, schema)


def _operations(spark: SparkSession, runs: Sequence[RunEvidence]) -> DataFrame:
    schema = to_arrow_schema(schemas.OPERATIONS)
    columns = (operation_columns(run.run, run.history.of(Operation)) for run in runs)
    tables = [pa.Table.from_pydict(each, schema) for each in columns]
    return spark.createDataFrame(pa.concat_tables([schema.empty_table(), *tables]), schemas.OPERATIONS)


def _captured(spark: SparkSession, folders: Sequence[str], schema: StructType) -> DataFrame:
    if not folders:
        return local(spark, [], schema)
    return spark.read.schema(schema).parquet(*map(escaped, folders))


#: The labels of the lines of a file: the run, and the process or the observer's index.
_LABELS = StructType(
    [StructField("file", StringType()), StructField("run", StringType()), StructField("owner", IntegerType())]
)


#: Spark writes a local file as `file:///a` in one place and as `file:/a` in another.
_LOCAL = "^file:/+"


#: A line that is no JSON must end the judgement. By default Spark reads it as nulls, which no check would find.
_STRICT = {"mode": "FAILFAST"}


def _labelled(lines: DataFrame, files: Mapping[str, tuple[str, int]]) -> DataFrame:
    """Lines read from files, with the labels (run, owner) of their file."""
    labels = []
    # The key is the name of a file as Spark writes it, with its escapes; only the slashes differ between the two places.
    for spelled in lines.inputFiles():
        run, owner = files[without_scheme(unquote(spelled))]
        labels.append({"file": spelled, "run": run, "owner": owner})
    named = F.regexp_replace("_metadata.file_path", _LOCAL, "file:///")
    labelled = lines.withColumn("file", named).join(
        F.broadcast(local(lines.sparkSession, labels, _LABELS)), "file", "left"
    )
    # Evidence of an unknown run must never be dropped in silence.
    unknown = F.raise_error(F.concat(F.lit("evidence of no run: "), F.col("file"))).cast("string")
    return labelled.withColumn("run", F.coalesce("run", unknown)).drop("file")


def _lines_of(lines: DataFrame, operations: DataFrame) -> DataFrame:
    """Labelled lines of acknowledgements of these operations, parsed; also lines that do not begin with their operation."""
    head = F.substring("value", 1, 64)
    said = F.regexp_extract(head, r'^\s*\{\s*"operation"\s*:\s*(\d{1,18})\s*,', 1)
    named = F.broadcast(
        operations.select("run", "process", "operation").distinct().withColumn("is_sought", F.lit(True))
    )
    # Spark moves filters on parsed columns before the join, and would then parse every line. So the parsed text has to
    # depend on the join.
    sought = "is_sought or operation is null"
    body = F.from_json(F.expr(f"case when {sought} then value end"), schemas.ACKS_LINE, _STRICT)
    return (
        lines.withColumnRenamed("owner", "process")
        .withColumn("operation", said.try_cast("long"))
        .join(named, ["run", "process", "operation"], "left")
        .where(sought)
        .select("run", F.col("process").alias("owner"), body.alias("body"))
        .select("run", "owner", "body.*")
    )


def acks(
    spark: SparkSession,
    runs: Sequence[RunEvidence],
    processes: Collection[tuple[str, int]] | None = None,
    operations: DataFrame | None = None,
) -> DataFrame:
    """The acknowledgements of records; with `processes` (run, process) only theirs.

    With `operations` (run, process, operation) most lines of other operations are not parsed, which takes a quarter of the
    time for lines of ten acknowledgements.
    """
    files = {
        without_scheme(run.directory.location(path)): (run.run, process)
        for run in runs
        for process, path in run.acks.items()
        if processes is None or (run.run, process) in processes
    }
    if not files:
        return local(spark, [], schemas.ACKS)
    paths = [escaped(path) for path in files]
    if operations is None:
        lines = _labelled(spark.read.schema(schemas.ACKS_LINE).json(paths, **_STRICT), files)
    else:
        lines = _lines_of(_labelled(spark.read.text(paths), files), operations)
    ack = F.col("ack")
    return lines.withColumn("ack", F.explode("acks")).select(
        "run",
        F.col("owner").alias("process"),
        "operation",
        ack[0].cast("int").alias("index"),
        ack[1].cast("int").alias("topic_index"),
        ack[2].cast("int").alias("partition"),
        ack[3].cast("long").alias("offset"),
        ack[4].alias("outcome"),
    )


def _observations(spark: SparkSession, runs: Sequence[RunEvidence], observers: DataFrame) -> DataFrame:
    files = {
        without_scheme(run.directory.location(run.observations[observer.name])): (run.run, index)
        for run in runs
        for index, observer in enumerate(run.experiment.observers)
    }
    if not files:
        return local(spark, [], schemas.OBSERVATIONS)
    record = F.col("record")
    lines = spark.read.schema(schemas.OBSERVATIONS_LINE).json([escaped(path) for path in files], **_STRICT)
    rows = _labelled(lines, files).select(
        "run",
        F.col("owner").alias("observer_index"),
        "poll",
        "received_ns",
        F.posexplode("records").alias("position", "record"),
    )
    types = {field.name: field.dataType for field in schemas.OBSERVATIONS.fields}
    identity = identity_columns(record[3].cast("binary"))
    columns = {
        "topic_index": record[0].cast("int"),
        "partition": record[1].cast("int"),
        "offset": record[2].cast("long"),
        **{name: column.cast(types[name]) for name, column in identity.items() if name in types},
        # As `identity.text_digest`, but an empty text may also stand for a foreign value.
        "identity_digest": F.when(record[3].rlike(r"\A[\x00-\xff]+\z"), F.crc32(F.encode(record[3], "ISO-8859-1"))),
    }
    declared = F.broadcast(observers.drop("observer"))
    return rows.join(declared, ["run", "observer_index"]).withColumns(columns).select(*schemas.OBSERVATIONS.names)


#: Dataframes with a row per record.
BULK = frozenset({"acks", "observations", "log", "uncommitted", "committed"})


def load(spark: SparkSession, runs: Sequence[RunEvidence], *, bulk: Collection[str] = BULK) -> Dataframes:
    """The dataframes of all runs; the ids of the runs must be distinct (`run_evidence.check_distinct`).

    Dataframes of `BULK` that are not in `bulk` are empty: for callers that read some of their rows themselves, or none.
    """
    small: Rows = {}
    for run in runs:
        for name, rows in rows_without_operations(run).items():
            small.setdefault(name, []).extend(rows)
    directories = [run.directory for run in runs]
    with_log = [run.directory for run in runs if run.experiment.has_log]

    def captured(name: str, of: Sequence[RunDirectory]) -> DataFrame:
        folders = [each.location(each.root / name) for each in of] if name in bulk else []
        return _captured(spark, folders, FRAME_SCHEMAS[name])

    held = {name: local(spark, rows, FRAME_SCHEMAS[name]) for name, rows in small.items()}
    return Dataframes(
        **held,
        operations=_operations(spark, runs),
        acks=acks(spark, runs, None if "acks" in bulk else ()),
        observations=_observations(spark, runs if "observations" in bulk else (), held["observers"]),
        log=captured("log", with_log),
        uncommitted=captured("uncommitted", with_log),
        committed=captured("committed", directories),
    )
