"""`tox -e track-record`: runs the script of each known bug on the releases that have the bug, and on those that do not.

Each reproduction of `suites/regressions` is performed on each release that it is for, request by request like a
protocol case. Reproductions of one release that need the same cluster share it. The result is compared with the
expected one, both ways: a bug that is missed is as much a failure as a false alarm.

A stored result stays valid while the commit is the same and its script exists. So a matrix that was stopped goes on
where it stopped. With uncommitted changes every cell is performed: the commit then does not say which files were used.
`docs/generated/track-record.json` holds every result. The matrix in `docs/generated/track-record.md`, between its two
markers, and `docs/generated/track-record.html` are rendered from it.
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
from runner.regressions.matrix import ReproductionResult
from runner.regressions.reproduction import REPRODUCTIONS, Reproduction, Result
from runner.resumable_matrix import CellStore, add_resuming_options
from verification.command_line import Parser, end_with
from verification.evidence.run_directory import SCRIPT
from verification.known_bugs.measured import CELLS
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
    # A reproduction names its releases: one that cannot be performed on them is wrong itself.
    Verdict.NOT_APPLICABLE: Result.ERROR,
    Verdict.ERROR: Result.ERROR,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasePlan:
    """The reproductions to perform on one release."""

    release: str
    reproductions: tuple[Reproduction, ...]


def reproductions() -> tuple[Reproduction, ...]:
    """Every reproduction that the files of `suites/regressions` declare, by name."""
    for path in sorted((SUITES / "regressions").glob("test_*.py")):
        importlib.import_module(f"suites.regressions.{path.stem}")
    return tuple(sorted(REPRODUCTIONS, key=lambda each: each.name))


def plans(releases: Sequence[str], bugs: Sequence[str]) -> list[ReleasePlan]:
    """The reproductions for each release, those with the same cluster in a row. Raises ValueError for a wrong name."""
    known = reproductions()
    unknown = [name for name in bugs if not any(name in (each.bug, each.name) for each in known)]
    if unknown:
        raise ValueError(f"--bugs {unknown[0]} is no row; there are {', '.join(each.name for each in known)}")
    wanted = [each for each in known if not bugs or each.bug in bugs or each.name in bugs]
    wanted.sort(key=lambda each: (each.needs.brokers, each.needs.describe()))
    found = [
        ReleasePlan(release=release, reproductions=tuple(each for each in wanted if each.is_for(release)))
        for release in releases
    ]
    return [plan for plan in found if plan.reproductions]


class TrackRecordRun:
    """One call of the command: its directory, its commit and the stored results. Several threads use it."""

    def __init__(self, directory: Path, commit: str, *, rerun: bool) -> None:
        self.directory, self.commit, self.rerun = directory, commit, rerun
        self.results = CellStore(
            matrix.read(), key=lambda each: each.key, save=lambda results: matrix.write(results, reproductions())
        )
        self.stopped = threading.Event()

    def outstanding(self, plan: ReleasePlan) -> list[Reproduction]:
        """The reproductions of a release that must be performed."""
        keys = {(each.name, plan.release): each for each in plan.reproductions}
        return [keys[key] for key in self.results.outstanding(keys, valid=self._valid, rerun=self.rerun)]

    def _valid(self, result: ReproductionResult) -> bool:
        same = result.commit == self.commit and checkout.names_a_state(self.commit)
        return result.decided and same and (ROOT / result.evidence).is_file()

    def keep(self, reproduction: Reproduction, result: ReproductionResult) -> None:
        """Store a result and print it."""
        self.results.put(result)
        mismatch = reproduction.mismatch(result.release, result.seen)
        note = f"  MISMATCH: {mismatch}" if mismatch else "" if result.decided else f"  {result.note}"
        say(f"{result.release:8} {result.row:24} {result.seen:12} {result.seconds:5.1f} s{note}")


def say(text: str) -> None:
    """Print a line at once: other threads print too."""
    print(f"{text}\n", end="", flush=True)  # noqa: T201 - the voice of a command


def perform(plan: ReleasePlan, run: TrackRecordRun) -> None:
    """Perform the reproductions of a release that have no valid result yet. Raises the errors of the environment."""
    missing = run.outstanding(plan)
    if not missing or run.stopped.is_set():
        return
    directory = run.directory / plan.release
    downloads = Downloads()
    java = find_java(downloads=downloads)
    files = fetch_release(parse_release(plan.release, oldest=OLDEST_SCRIPTED), downloads=downloads)
    brokers = LocalRuntime.prepare(files, java, downloads=downloads)
    environment = Environment(brokers=brokers, files=files, java=java, clusters_directory=directory / "clusters")
    runner = CaseRunner(environment, directory, release=plan.release)
    try:
        for reproduction in missing:
            if run.stopped.is_set():
                return
            run.keep(reproduction, _perform(runner, reproduction, run.commit))
    finally:
        runner.close()


def _perform(runner: CaseRunner, reproduction: Reproduction, commit: str) -> ReproductionResult:
    case = ProtocolCase(
        key=reproduction.key,
        claim=reproduction.claim,
        requirements=(),
        transaction_version=reproduction.generation,
        needs=reproduction.needs,
        play=reproduction.play,
        replay=f"tox -e track-record -- --releases {runner.release} --bugs {reproduction.name}",
    )
    evidence = runner.directory / "runs" / reproduction.key / SCRIPT
    began = time.monotonic()
    try:
        verdict = runner.perform(case)
        seen, note = _SEEN[verdict.verdict], verdict.reason
    except ENVIRONMENT_ERRORS as error:
        seen, note = Result.ERROR, str(error)
    if reproduction.race and seen in (Result.HELD, Result.VIOLATED):
        note = str(script.read(evidence).statements[-1].observed)
    return ReproductionResult(
        row=reproduction.name,
        release=runner.release,
        seen=seen,
        seconds=round(time.monotonic() - began, 1),
        note=note,
        evidence=str(evidence.relative_to(ROOT)) if evidence.is_relative_to(ROOT) else str(evidence),
        commit=commit,
    )


def conclude(chosen: Sequence[ReleasePlan], results: Sequence[ReproductionResult]) -> ExitCode:
    """The exit code: a mismatch counts as a violation, a cell without a result is no pass."""
    found = {each.key: each.seen for each in results}
    codes = []
    for plan in chosen:
        for reproduction in plan.reproductions:
            seen = found.get((reproduction.name, plan.release), Result.ERROR)
            if reproduction.mismatch(plan.release, seen):
                codes.append(ExitCode.VIOLATION)
            elif seen is Result.INCONCLUSIVE:
                codes.append(ExitCode.INCONCLUSIVE)
            else:
                codes.append(ExitCode.ENVIRONMENT if seen is Result.ERROR else ExitCode.CONFORMANT)
    return exit_code(codes)


def _perform_all(chosen: Sequence[ReleasePlan], jobs: int, *, rerun: bool) -> ExitCode:
    """Perform the plans, `jobs` releases at a time. Raises the first error that keeps a release from beginning."""
    directory = OUT / f"track-record-{datetime.now(tz=UTC):%Y%m%dT%H%M%SZ}"
    run = TrackRecordRun(directory, checkout.commit(), rerun=rerun)
    began = time.monotonic()
    check_machine(evidence=directory)
    # The longest first: begun last, it would be the only one that runs at the end.
    ordered = sorted(chosen, key=lambda plan: -len(plan.reproductions))
    with ThreadPoolExecutor(jobs) as workers:
        try:
            for done in [workers.submit(perform, plan, run) for plan in ordered]:
                done.result()
        except BaseException:
            # The other releases finish the reproduction that they are at, and end their clusters.
            run.stopped.set()
            raise
    code = conclude(chosen, run.results.cells)
    count = sum(len(plan.reproductions) for plan in chosen)
    say(f"{count} cells, {time.monotonic() - began:.0f} s, exit code {int(code)}")
    return code


def _render() -> ExitCode:
    matrix.write(matrix.read(), reproductions())
    say(f"written: {matrix.PAGE.relative_to(ROOT)}")
    return ExitCode.CONFORMANT


def main(arguments: list[str] | None = None) -> int:
    """Perform the cells without a valid result; exit code 1 for a mismatch, 2 and 5 for an undecided cell."""
    parser = Parser(prog=PROGRAM, description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--releases", metavar="LIST", help="such as 4.0.0,4.3.1 (default: every one of the matrix)")
    parser.add_argument("--bugs", default="", metavar="LIST", help="such as KB-05,KB-03/TV1 (default: all)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="releases at a time (default 2)")
    add_resuming_options(parser)
    options = parser.parse_args(arguments)
    try:
        names = RELEASES if options.releases is None else tuple(filter(None, options.releases.split(",")))
        for name in names:
            parse_release(name, oldest=OLDEST_SCRIPTED)
        chosen = plans(names, tuple(filter(None, options.bugs.split(","))))
    except (OnceproofError, ValueError) as error:
        parser.error(str(error))
    if options.jobs < 1:
        parser.error("--jobs needs a number of releases at a time, at least 1")
    try:
        return int(_render() if options.render_only else _perform_all(chosen, options.jobs, rerun=options.rerun))
    except OnceproofError as error:
        print(error, file=sys.stderr)  # noqa: T201 - the voice of a command
        return int(error.exit_code)


if __name__ == "__main__":
    end_with(main, program=PROGRAM, kept=f"the results so far are in {CELLS.relative_to(ROOT)}")
