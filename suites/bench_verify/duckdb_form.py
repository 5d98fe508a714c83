"""The yardstick: `verify.sql` in DuckDB. `python -m suites.bench_verify.duckdb_form DIRECTORY THREADS FOUND`."""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb

from suites.bench_verify.found import Found
from suites.bench_verify.plan import RUN

QUERY = Path(__file__).with_name("verify.sql")


def run(directory: Path, threads: int, found: Path) -> None:
    """Find what is planted in a scenario's directory and write it as CSV; raises duckdb.Error."""
    with duckdb.connect(config={"threads": threads}) as database:
        # The order of rows within a file is no part of the question.
        database.execute("SET preserve_insertion_order = false")
        database.execute("SET VARIABLE evidence = ?", [str(directory)])
        database.execute("SET VARIABLE run = ?", [RUN])
        for statement in database.extract_statements(QUERY.read_text(encoding="utf-8")):
            database.execute(statement)
        names = ", ".join(f'"{name}"' for name in Found._fields)
        database.execute(f"COPY (SELECT {names} FROM found) TO '{found}' (HEADER)")  # noqa: S608 - names are ours


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
