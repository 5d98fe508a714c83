"""`tox -e demo-report`: the report of a release's whole night, and the one that says what an upgrade to it changes.

Both are made of real runs: of those that are named, or else of new ones, which take three hours on two cores: every
scenario of the profile and every protocol case, on the release and on the one before the upgrade. What lies in
`reports/out/demo/` afterwards is what a user would keep; its sizes and the time to make it are printed. The exit code
says whether the reports could be made, and not what they say: a release with known bugs is still worth showing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fixtures.clusters.releases import parse_release
from fixtures.errors import OnceproofError
from reports import baseline, diff, results
from reports.compare import against
from reports.errors import ReportError
from reports.load import load_run
from reports.merge import merge
from reports.model import Report
from reports.write import write_text
from suites.child_run import OverdueRunError, perform
from suites.config import OUT, ROOT, Profile
from suites.weighing import weigh
from verification.command_line import Parser, end_with
from verification.verdict import ExitCode

PROGRAM = "python -m suites.demo_report"
DEMO = OUT / "demo"
#: The last release with a ZooKeeper and the last but one: the upgrade that most people have before them.
FROM, TO = "3.9.2", "4.3.1"
SEED = 1
#: A nightly takes an hour on two cores and a sweep five minutes; three times that is a run that hangs.
RUN_WITHIN_S = 11_000.0


class DemoError(OnceproofError):
    """A run that the demonstration needs did not come about."""

    default_hint = "What it printed says why; name directories of runs that exist to do without it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The directories of one release's runs."""

    runs: tuple[Path, ...]

    def report(self, target: Path) -> Report:
        """Its runs as one report; `target` is where that will be written. Raises ReportError."""
        return load_run(self.runs[0]) if len(self.runs) == 1 else merge(self.runs, target)


def performed(release: str, profile: Profile, stamp: str) -> Side:
    """Run every scenario and every protocol case on a release. Raises DemoError when one of the runs left nothing."""
    runs = []
    for kind, tests, options in (
        ("scenarios", "suites", (f"--profile={profile}", f"--seed={SEED}")),
        ("protocol", "suites/protocol", ()),
    ):
        directory = DEMO / "runs" / f"{release}-{kind}-{stamp}"
        arguments = [tests, f"--kafka={release}", f"--run-dir={directory}", *options]
        try:
            code = perform(arguments, within_s=RUN_WITHIN_S)
        except OverdueRunError as error:
            raise DemoError(f"The run {directory.name} did not end within {RUN_WITHIN_S:.0f} s.") from error
        if not (directory / baseline.RESULTS).is_file():
            raise DemoError(f"The run {directory.name} ended with exit code {code} and left no {baseline.RESULTS}.")
        runs.append(directory)
    return Side(runs=tuple(runs))


def make(now: Side, before: Side, out: Path) -> Iterator[str]:
    """Write both reports and say what they are and what they cost. Raises ReportError, OSError."""
    nightly, upgrade = out / "nightly", out / "upgrade"
    whole = weigh(lambda: now.report(nightly), nightly)
    yield f"the night: {whole.page}"
    yield from whole.lines()
    upgrade.mkdir(parents=True, exist_ok=True)
    kept = upgrade / "results-before.json"
    write_text(kept, results.dumps(before.report(upgrade)))
    compared = weigh(lambda: against(now.report(upgrade), baseline.read(kept)), upgrade)
    yield f"the upgrade: {compared.page}"
    yield from compared.lines()
    apart = diff.of_paths(kept, nightly / baseline.RESULTS)
    yield f"the difference alone: {diff.write(apart, upgrade)}"
    yield f"  {apart.baseline.release} to {apart.current.release}: {apart.sentence}"


def _side(release: str, runs: Sequence[Path], profile: Profile, stamp: str) -> Side:
    return Side(runs=tuple(runs)) if runs else performed(parse_release(release).version, profile, stamp)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make both reports; exit code 0, 4 for directories that are no runs, 5 when a run or a file did not come about."""
    parser = Parser(prog=PROGRAM, description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN_DIR", help="runs of the release (default: new ones)")
    parser.add_argument("--kafka", default=TO, metavar="VERSION", help=f"release of new runs ({TO})")
    parser.add_argument("--from", default=FROM, dest="before", metavar="VERSION", help=f"that before it ({FROM})")
    parser.add_argument(
        "--before", action="append", default=[], type=Path, dest="runs_before", metavar="RUN_DIR", help="runs before it"
    )
    parser.add_argument("--profile", type=Profile, default=Profile.NIGHTLY, help="of new runs (default: nightly)")
    parser.add_argument("--out", type=Path, default=DEMO, metavar="DIR", help="where the reports go")
    options = parser.parse_args(arguments)
    stamp = f"{datetime.now(tz=UTC):%Y%m%dT%H%M%SZ}"
    try:
        now = _side(options.kafka, options.runs, options.profile, stamp)
        before = _side(options.before, options.runs_before, options.profile, stamp)
        for line in make(now, before, options.out):
            print(line, flush=True)  # noqa: T201 - the voice of a command
    except ReportError as error:
        parser.error(str(error))
    except OnceproofError as error:
        print(error, file=sys.stderr)  # noqa: T201 - the voice of a command
        return int(error.exit_code)
    except OSError as error:
        print(f"{PROGRAM}: {error.filename or options.out} cannot be written: {error.strerror}", file=sys.stderr)  # noqa: T201
        return int(ExitCode.ENVIRONMENT)
    return int(ExitCode.CONFORMANT)


if __name__ == "__main__":
    end_with(main, program=PROGRAM, kept=f"what has been run is in {(DEMO / 'runs').relative_to(ROOT)}")
