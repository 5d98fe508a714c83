"""Acknowledgements of some operations: the lines of all others are not even parsed, by Spark or by workers."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tests.support.planted import files
from tests.support.planted.busy import busy
from verification.evidence.run_evidence import read_run
from verification.sources import schema
from verification.spark.dataframes import acks, local

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
KEY = ["run", "process", "operation"]


def _without_ends(path: Path, but: int) -> None:
    """Cut every line of acknowledgements, except those of one operation, after the number of its operation."""
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    kept = [line if f'"operation":{but},' in line.replace(" ", "") else line[: line.index(",") + 1] for line in lines]
    assert sum(line.endswith(",") for line in kept) == len(lines) - 1 > 1
    path.write_bytes(gzip.compress("".join(line + "\n" for line in kept).encode()))


def test_what_is_not_sought_is_not_parsed(spark: SparkSession, tmp_path: Path) -> None:
    """A line that is no JSON ends a judgement, but not if only other operations are sought."""
    plant = busy("acks").finish()
    run = read_run(files.write(plant, tmp_path / "run"))
    sought = plant.rows["acks"][0]
    expected = [row for row in plant.rows["acks"] if all(row[name] == sought[name] for name in KEY)]
    process = sought["process"]
    _without_ends(run.acks[process], sought["operation"])
    wanted = local(spark, [{name: sought[name] for name in KEY}], schema.OPERATIONS).select(*KEY)
    found = acks(spark, [run], [(run.run, process)], wanted).join(wanted, KEY, "left_semi")
    by_index = sorted(found.toArrow().to_pylist(), key=lambda row: int(row["index"]))
    assert by_index == sorted(expected, key=lambda row: int(row["index"]))
    with pytest.raises(Exception, match=r"MALFORMED_RECORD|FAILED_READ_FILE"):
        acks(spark, [run], [(run.run, process)]).toArrow()


def _as_they_are(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def test_workers_read_what_spark_reads(spark: SparkSession, tmp_path: Path) -> None:
    """Of some processes and of some operations; a process without a file has no acknowledgements."""
    from verification.fingerprints.ack_sums import ANSWERS
    from verification.fingerprints.inputs import answers_of

    plant = busy("workers").finish()
    run = read_run(files.write(plant, tmp_path / "run"))
    here = answers_of(spark, [run])
    assert here.files is not None
    elsewhere = replace(here, files=None)
    first, *_, last = processes = [(run.run, process) for process in run.acks]
    keys = [{name: plant.rows["acks"][at][name] for name in KEY} for at in (0, -1)]
    keys.append({"run": run.run, "process": 10_000, "operation": 1})
    wanted = local(spark, keys, schema.OPERATIONS).select(*KEY)

    def rows(frame: DataFrame) -> list[str]:
        return sorted(map(repr, frame.select(*ANSWERS.names).toArrow().to_pylist()))

    for asked in (processes, [first, last], [(run.run, 10_000)], []):
        told = [rows(each.scanned(asked, _as_they_are, ANSWERS)) for each in (here, elsewhere)]
        assert told[0] == told[1]
        assert bool(told[0]) == any(each in processes for each in asked)
    found = [each.of(wanted).join(wanted, KEY, "left_semi") for each in (here, elsewhere)]
    assert rows(found[0]) == rows(found[1]) != []
