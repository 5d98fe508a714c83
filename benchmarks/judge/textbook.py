"""The floor: `textbook.sql` on Spark. `python -m benchmarks.judge.textbook DIRECTORY FOUND KEY=VALUE…`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.judge.findings import FoundViolation, write
from verification.evidence.run_directory import RunDirectory
from verification.evidence.run_evidence import read_run
from verification.spark.dataframes import Dataframes, load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = Path(__file__).with_name("textbook.sql")
_DEFINED = re.compile(r"CREATE OR REPLACE TEMP VIEW (\w+)")


def statements() -> Iterator[str]:
    """The statements of the file, one by one; no statement contains a semicolon."""
    text = "\n".join(line for line in QUERIES.read_text(encoding="utf-8").splitlines() if not line.startswith("--"))
    yield from (each.strip() for each in text.split(";") if each.strip())


def find(spark: SparkSession, directory: RunDirectory) -> list[FoundViolation]:
    """All violations that the queries find in a scenario's directory; one job each, with nothing kept between them."""
    frames = load(spark, [read_run(directory)])
    views = [field.name for field in fields(Dataframes)]
    for name in views:
        getattr(frames, name).createOrReplaceTempView(name)
    found: list[FoundViolation] = []
    for statement in statements():
        frame = spark.sql(statement)
        if defined := _DEFINED.match(statement):
            views.append(defined[1])
        else:
            found += [FoundViolation(*row) for row in frame.collect()]
    for name in views:
        spark.catalog.dropTempView(name)
    return found


def main(directory: Path, found: Path, *options: str) -> None:
    """Start a session like the product's, run the queries, and write their violations as CSV."""
    from verification.spark.session import start

    spark = start(options=dict(option.split("=", 1) for option in options))
    write(found, find(spark, RunDirectory(directory)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
