"""`tox -e soak -- --hours N`: equal runs again and again under different loads, to find false verdicts of this suite.

The run that was made least often is next: releases first, then loads, then seeds. Each is a process of its own, and a
line of `docs/generated/soak.jsonl`. `docs/generated/soak.md` is rendered from the lines after each run. No run begins
after the given hours, and a later call goes on with the same ledger. Without hours it only renders the page.

The directory of a run stays only if something in it has no explanation. `--explain KEY REASON` writes into the newest
line with such a sentence about KEY what the cause was.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from argparse import Namespace
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from fixtures.errors import OnceproofError, UsageError
from runner import checkout, matrix_run
from runner.config import OUT, ROOT
from runner.matrix_run import MatrixRunError
from runner.resumable_matrix import CellStore, stored_lines
from runner.soak.ledger import PROTOCOL, RUN, SoakRun, line_of, next_run, runs, unexplained
from runner.soak.load import under
from runner.soak.page import render
from verification.command_line import Parser, end_with
from verification.evidence.atomic_write import atomic_write
from verification.vocabulary.verdict import ExitCode

#: Both are kept in the repository, so that a soak goes on on another machine.
LINES = ROOT / "docs" / "generated" / "soak.jsonl"
PAGE = ROOT / "docs" / "generated" / "soak.md"
#: A folder of its own: of the runs next to it only the last ones are kept.
KEPT = OUT / "soak"
#: A run takes 10 minutes on two idle processors. Next to 24 hogs it has a fraction of them; longer is a run that hangs.
RUN_WITHIN_S = 7_200.0
#: So many runs in a row without results are a machine that cannot run anything.
BROKEN_IN_A_ROW = 3
SUITES = {RUN: "suites", PROTOCOL: "suites/protocol"}

Stored = CellStore[str, dict[str, Any]]


def perform(run: SoakRun) -> dict[str, Any]:
    """Perform one run under its load and return its line, which says where a run with something unexplained is kept."""
    directory = KEPT / f"{run.name}-{datetime.now(tz=UTC):%Y%m%dT%H%M%SZ}"
    options = [f"--kafka={run.release}", "--runtime=local", f"--seed={run.seed}", "--repeat=5"]
    began = time.monotonic()
    try:
        with under(run.load):
            start, results = matrix_run.perform(
                run.name, [SUITES[run.what], *options], within_s=RUN_WITHIN_S, directory=directory
            )
            line = line_of(run, start, results)
    except MatrixRunError as error:
        seconds = round(time.monotonic() - began)
        broken = {"commit": checkout.commit(), "date": f"{datetime.now(tz=UTC):%Y-%m-%d}", "seconds": seconds}
        line = {**asdict(run), **broken, "broke": str(error)}
    line |= {"directory": directory.name, "load_average": round(os.getloadavg()[1], 1)}
    if not unexplained(line):
        shutil.rmtree(directory, ignore_errors=True)
    return line


def explain(stored: Stored, key: str, reason: str) -> None:
    """Write the cause of a verdict into the newest line that has it unexplained. Raises UsageError where none has."""
    for line in reversed(stored.cells):
        if any(key in sentence for sentence in unexplained(line)):
            stored.put({**line, "explained": {**line.get("explained", {}), key: reason}})
            return
    raise UsageError(f"No run has anything about {key} that is not explained.")


def soak(stored: Stored, options: Namespace) -> None:
    """Make runs until the time is over. Raises MatrixRunError when several in a row left no results."""
    end_s = time.monotonic() + options.hours * 3_600
    chosen = matrix_run.chosen(runs(options.what), options.only)
    while time.monotonic() < end_s:
        stored.put(line := perform(next_run(stored.cells, chosen)))
        say(f"{line['directory']}: {'; '.join(unexplained(line)) or 'nothing without an explanation'}")
        if len(stored.cells) >= BROKEN_IN_A_ROW and all("broke" in each for each in stored.cells[-BROKEN_IN_A_ROW:]):
            raise MatrixRunError(f"{BROKEN_IN_A_ROW} runs in a row left no results: {line['broke']}")


def say(text: str) -> None:
    """Print a line of the command."""
    print(text, file=sys.stderr)


def read() -> Stored:
    """The stored lines; each one that is put rewrites them and the page."""
    return stored_lines(LINES, key=lambda line: line["directory"], show=lambda lines: atomic_write(PAGE, render(lines)))


def main(arguments: list[str] | None = None) -> int:
    """Soak; exit code 1 for anything without an explanation, 5 for a machine on which no run has results."""
    parser = Parser(prog="python -m runner.soak", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--hours", type=float, default=0.0, help="begin no run after this time")
    parser.add_argument("--what", choices=sorted(SUITES), default=RUN, help="whole runs, or protocol cases alone")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="TEXT",
        help="only runs with this text in their name: 4.2.2-quiet",
    )
    parser.add_argument(
        "--explain", nargs=2, metavar=("KEY", "REASON"), help="run nothing; note the cause of a verdict"
    )
    options = parser.parse_args(arguments)
    stored = read()
    try:
        if options.explain:
            explain(stored, *options.explain)
        else:
            soak(stored, options)
    except OnceproofError as error:
        say(str(error))
        return int(error.exit_code)
    stored.save()
    return int(ExitCode.VIOLATION if any(map(unexplained, stored.cells)) else ExitCode.CONFORMANT)


if __name__ == "__main__":
    end_with(main, program="python -m runner.soak", kept=f"the results so far are in {LINES.relative_to(ROOT)}")
