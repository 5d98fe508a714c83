"""`tox -e track-record`: known bugs, each by its script, searched for on the releases that have it and on those that do not.

Each row of `suites/regressions` is performed on each release that it is for, request by request like a protocol case;
rows of one release that need the same cluster share it. What a row shows is compared with what it must show, both ways:
a bug that is missed is as much a failure as a false alarm.

A cell of the matrix is kept, and not performed again, while the commit is the same and its script is still there: a
matrix that was stopped goes on where it stopped. With uncommitted changes every cell is performed, for the same commit
then says nothing about the files. `docs/generated/track-record.json` holds every cell; the matrix in
`docs/generated/track-record.md`, between its two markers, and `docs/generated/track-record.html` are rendered from
that.
"""

from __future__ import annotations

import importlib
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fixtures.clusters.local.runtime import LocalRuntime
from fixtures.clusters.locks.releases import OLDEST_SCRIPTED, fetch_release, parse_release
from fixtures.downloads.progress import Downloads
from fixtures.errors import OnceproofError
from fixtures.machine import check_machine
from fixtures.tools.java import find_java
from runner import checkout
from runner.config import OUT, ROOT, SUITES
from runner.environment import Environment
from runner.errors import ENVIRONMENT_ERRORS
from runner.protocol.case_runner import CaseRunner, ProtocolCase
from runner.regressions import matrix
from runner.regressions.matrix import Cell
from runner.regressions.reproduction import REPRODUCTIONS, Reproduction, Result
from verification.command_line import Parser, end_with
from verification.evidence.run_directory import SCRIPT
from verification.scripts import script
from verification.vocabulary.verdict import ExitCode, Verdict, exit_code

PROGRAM = "python -m runner.regressions.track_record"
#: Releases around each boundary at which one of the bugs begins or ends.
RELEASES = (
    *("2.4.0", "2.4.1", "2.5.1", "2.6.0", "2.7.2", "2.8.0", "2.8.1", "2.8.2", "3.0.0", "3.1.0", "3.2.0", "3.2.1"),
    *("3.5.2", "3.6.0", "3.6.2", "3.7.0", "3.7.1", "3.8.1", "3.9.2"),
    *("4.0.0", "4.0.1", "4.0.2", "4.1.2", "4.2.0", "4.2.1", "4.3.1", "4.4.0"),
)
_SEEN = {
    Verdict.FAIL: Result.VIOLATED,
    Verdict.PASS: Result.HELD,
    Verdict.INCONCLUSIVE: Result.INCONCLUSIVE,
    # A row says itself which releases it is for: one that a broker cannot perform is a mistake of the row.
    Verdict.NOT_APPLICABLE: Result.ERROR,
    Verdict.ERROR: Result.ERROR,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be performed on one release."""

    release: str
    rows: tuple[Reproduction, ...]


def rows() -> tuple[Reproduction, ...]:
    """Every row that the files of `suites/regressions` declare, by name."""
    for path in sorted((SUITES / "regressions").glob("test_*.py")):
        importlib.import_module(f"suites.regressions.{path.stem}")
    return tuple(sorted(REPRODUCTIONS, key=lambda row: row.name))


def plans(chosen: Sequence[str], bugs: Sequence[str]) -> list[Plan]:
    """The rows for each release, those that share a cluster next to each other. Raises ValueError for a wrong name."""
    known = rows()
    unknown = [name for name in bugs if not any(name in (row.bug, row.name) for row in known)]
    if unknown:
        raise ValueError(f"--bugs {unknown[0]} is no row; there are {', '.join(row.name for row in known)}")
    wanted = [row for row in known if not bugs or row.bug in bugs or row.name in bugs]
    wanted.sort(key=lambda row: (row.needs.brokers, row.needs.describe()))
    found = [Plan(release=each, rows=tuple(row for row in wanted if row.is_for(each))) for each in chosen]
    return [plan for plan in found if plan.rows]


class Record:
    """The cells so far, on disk after each one; used by several threads."""

    def __init__(self, directory: Path, commit: str, *, again: bool) -> None:
        self.directory, self.commit, self.again = directory, commit, again
        self.cells = {(cell.row, cell.release): cell for cell in matrix.read()}
        self.stopped = threading.Event()
        self._lock = threading.Lock()

    def has(self, row: Reproduction, release: str) -> Cell | None:
        """The cell of a row on a release, when it need not be performed."""
        cell = self.cells.get((row.name, release))
        if cell is None or self.again or not cell.decided:
            return None
        same = cell.commit == self.commit and checkout.names_a_state(self.commit)
        return cell if same and (ROOT / cell.evidence).is_file() else None

    def keep(self, row: Reproduction, cell: Cell) -> None:
        """Write a cell down and say so."""
        with self._lock:
            self.cells[cell.row, cell.release] = cell
            matrix.write(list(self.cells.values()), rows())
            mismatch = row.mismatch(cell.release, Result(cell.seen))
            note = (
                f"  SURPRISE: {mismatch}" if mismatch else "" if cell.seen in ("HELD", "VIOLATED") else f"  {cell.note}"
            )
            self.say(f"{cell.release:8} {cell.row:24} {cell.seen:12} {cell.seconds:5.1f} s{note}")

    def say(self, text: str) -> None:
        """To whoever is watching."""
        print(text, flush=True)  # noqa: T201 - the voice of a command


def perform(plan: Plan, record: Record) -> None:
    """Perform the rows of a release that have no answer yet. Raises what the equipment raises."""
    missing = [row for row in plan.rows if record.has(row, plan.release) is None]
    if not missing or record.stopped.is_set():
        return
    directory = record.directory / plan.release
    downloads = Downloads()
    java = find_java(downloads=downloads)
    files = fetch_release(parse_release(plan.release, oldest=OLDEST_SCRIPTED), downloads=downloads)
    brokers = LocalRuntime.prepare(files, java, downloads=downloads)
    environment = Environment(brokers=brokers, files=files, java=java, clusters_directory=directory / "clusters")
    sweep = CaseRunner(environment, directory, release=plan.release)
    try:
        for row in missing:
            if record.stopped.is_set():
                return
            record.keep(row, _cell(sweep, row, record.commit))
    finally:
        sweep.close()


def _cell(sweep: CaseRunner, row: Reproduction, commit: str) -> Cell:
    """Perform one row; its place in the matrix."""
    case = ProtocolCase(
        key=row.key,
        claim=row.claim,
        requirements=(),
        transaction_version=row.generation,
        needs=row.needs,
        play=row.play,
        replay=f"tox -e track-record -- --releases {sweep.release} --bugs {row.name}",
    )
    evidence = sweep.directory / "runs" / row.key / SCRIPT
    began = time.monotonic()
    try:
        verdict = sweep.perform(case)
        seen, note = _SEEN[verdict.verdict], verdict.reason
    except ENVIRONMENT_ERRORS as error:
        seen, note = Result.ERROR, str(error)
    if row.race and seen in (Result.HELD, Result.VIOLATED):
        note = str(script.read(evidence).statements[-1].observed)
    return Cell(
        row=row.name,
        release=sweep.release,
        seen=seen,
        seconds=round(time.monotonic() - began, 1),
        note=note,
        evidence=str(evidence.relative_to(ROOT)) if evidence.is_relative_to(ROOT) else str(evidence),
        commit=commit,
    )


def conclude(chosen: Sequence[Plan], cells: Sequence[Cell]) -> ExitCode:
    """The one table's code: a surprise is a violation, a cell without an answer is no pass."""
    found = {(cell.row, cell.release): Result(cell.seen) for cell in cells}
    codes = []
    for plan in chosen:
        for row in plan.rows:
            seen = found.get((row.name, plan.release), Result.ERROR)
            if row.mismatch(plan.release, seen):
                codes.append(ExitCode.VIOLATION)
            elif seen is Result.INCONCLUSIVE:
                codes.append(ExitCode.INCONCLUSIVE)
            else:
                codes.append(ExitCode.ENVIRONMENT if seen is Result.ERROR else ExitCode.CONFORMANT)
    return exit_code(codes)


def _run(chosen: Sequence[Plan], record: Record, jobs: int) -> None:
    """Perform the plans, so many releases at a time. Raises the first thing that kept a release from being begun."""
    # The longest first: at the end one of them would be waited for alone.
    ordered = sorted(chosen, key=lambda plan: -len(plan.rows))
    with ThreadPoolExecutor(jobs) as workers:
        try:
            for done in [workers.submit(perform, plan, record) for plan in ordered]:
                done.result()
        except BaseException:
            # The others end the row that they are at, and their clusters.
            record.stopped.set()
            raise


def _render() -> int:
    try:
        matrix.write(matrix.read(), rows())
    except OnceproofError as error:
        print(error, file=sys.stderr)  # noqa: T201 - the voice of a command
        return int(error.exit_code)
    print(f"written: {matrix.PAGE.relative_to(ROOT)}")  # noqa: T201 - the voice of a command
    return int(ExitCode.CONFORMANT)


def main(arguments: list[str] | None = None) -> int:
    """Perform what has no answer yet; exit code 1 for a surprise, 2 and 5 for what could not be decided."""
    parser = Parser(prog=PROGRAM, description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--releases", metavar="LIST", help="such as 4.0.0,4.3.1 (default: every one of the matrix)")
    parser.add_argument("--bugs", default="", metavar="LIST", help="such as KB-05,KB-03/TV1 (default: all)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="releases at a time (default 2)")
    parser.add_argument(
        "--rerun", "--again", action="store_true", help="run all rows again, also those with a stored result"
    )
    parser.add_argument(
        "--render-only", "--render", action="store_true", help="run nothing; rebuild the pages from stored results"
    )
    options = parser.parse_args(arguments)
    if options.render_only:
        return _render()
    try:
        names = RELEASES if options.releases is None else tuple(filter(None, options.releases.split(",")))
        for name in names:
            parse_release(name, oldest=OLDEST_SCRIPTED)
        chosen = plans(names, tuple(filter(None, options.bugs.split(","))))
    except (OnceproofError, ValueError) as error:
        parser.error(str(error))
    if options.jobs < 1:
        parser.error("--jobs needs a number of releases at a time, at least 1")
    directory = OUT / f"track-record-{datetime.now(tz=UTC):%Y%m%dT%H%M%SZ}"
    record = Record(directory, checkout.commit(), again=options.rerun)
    began = time.monotonic()
    try:
        check_machine(evidence=directory)
        _run(chosen, record, options.jobs)
    except OnceproofError as error:
        print(error, file=sys.stderr)  # noqa: T201 - the voice of a command
        return int(error.exit_code)
    code = conclude(chosen, list(record.cells.values()))
    count = sum(len(plan.rows) for plan in chosen)
    record.say(f"{count} cells, {time.monotonic() - began:.0f} s, exit code {int(code)}")
    return int(code)


if __name__ == "__main__":
    end_with(main, program=PROGRAM, kept=f"what has been performed is in {matrix.CELLS.relative_to(ROOT)}")
