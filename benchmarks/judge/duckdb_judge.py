"""The yardstick: `verify.sql` and `surroundings.sql` in DuckDB.

`python -m benchmarks.judge.duckdb_judge DIRECTORY THREADS FOUND` writes its findings, and next to them the records
around their examples (`log_context.context_file`).
"""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb

from benchmarks.judge.findings import FoundViolation
from benchmarks.judge.generator.plan import RUN
from benchmarks.judge.log_context import context_file

QUERIES = tuple(Path(__file__).with_name(name) for name in ("verify.sql", "surroundings.sql"))


def run(directory: Path, threads: int, found: Path) -> None:
    """Find the violations in a scenario's directory and write them as CSV, the records around them as Parquet.

    Raises duckdb.Error.
    """
    with duckdb.connect(config={"threads": threads}) as database:
        # The order of rows within a file does not matter.
        database.execute("SET preserve_insertion_order = false")
        database.execute("SET VARIABLE evidence = ?", [str(directory)])
        database.execute("SET VARIABLE run = ?", [RUN])
        for query in QUERIES:
            for statement in database.extract_statements(query.read_text(encoding="utf-8")):
                database.execute(statement)
        names = ", ".join(f'"{name}"' for name in FoundViolation._fields)
        database.execute(f"COPY (SELECT {names} FROM found) TO '{found}' (HEADER)")  # noqa: S608 - names are ours
        database.execute(f"COPY surroundings TO '{context_file(found)}' (FORMAT parquet)")


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
