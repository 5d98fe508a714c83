"""`python -m reports RUN_DIR… [--strict] [--baseline FILE] [--out DIR]`: render saved evidence; `… diff A B`: compare.

A RUN_DIR is the directory of a run, or of one scenario or protocol case. The report of one directory is written into
it, or to --out. Several directories are merged into one report, written to --out, or to `merged` next to the first one.
The exit code is that of the decision; 3 is a regression from the baseline. 4 means that a path is no run directory or
the baseline is unreadable; 5 that the report cannot be written. With --strict every violation that was not accepted
decides (docs/decision.md); a run that was made with --strict needs no option.

`python -m reports diff A B [--out DIR]` lists the changes from A to B, each a run directory or a `results.json`. The
exit code is 3 for a regression, else 0, independent of the verdicts. With --out it also writes a page.

`python -m reports trend DIR… --out DIR` writes one page over many runs. The exit code is 0 when it was written, 4 when
no run can be read.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from pathlib import Path

from reports import diff, trend
from reports.comparing import baseline
from reports.comparing.baseline import Outcomes
from reports.comparing.compare import against
from reports.formats import terminal
from reports.formats.write import write_all
from reports.loading.merge import merge
from reports.loading.run import load_run
from reports.model.errors import ReportError
from reports.model.report import Report
from reports.model.wording import EXIT_MEANING
from verification.command_line import Parser, end_with
from verification.vocabulary.verdict import PRECEDENCE, ExitCode

MERGED = "merged"


def _parser() -> Parser:
    codes = " · ".join(f"{int(code)} {EXIT_MEANING[code]}" for code in PRECEDENCE)
    parser = Parser(
        prog="python -m reports",
        description="Write the report of saved runs again, without a cluster. Several runs give one merged report.",
        epilog=(
            "`python -m reports diff A B` compares two runs, `python -m reports trend DIR…` shows many. "
            f"Exit codes, in order of precedence: {codes}."
        ),
    )
    parser.add_argument(
        "runs",
        nargs="+",
        type=Path,
        metavar="RUN_DIR",
        help="directory of a run, or of a scenario or case below its runs/",
    )
    parser.add_argument("--strict", action="store_true", help="any violation that was not accepted is a NO-GO")
    parser.add_argument("--baseline", type=Path, metavar="FILE", help="results.json of an earlier run to compare with")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help=f"output directory (default: RUN_DIR, or {MERGED}/ next to the first of several)",
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> ExitCode:
    """Render, compare or show a trend; returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal without ✓ shows ?, which is better than no decision.
            stream.reconfigure(errors="replace")
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["diff"]:
        return _diff(given[1:])
    if given[:1] == ["trend"]:
        return _trend(given[1:])
    options = _parser().parse_args(given)
    runs: list[Path] = options.runs
    several = len(runs) > 1
    target: Path = options.out or (runs[0].resolve().parent / MERGED if several else runs[0])
    try:
        before = baseline.read(options.baseline) if options.baseline else None
        strict: bool = options.strict
        report = merge(runs, target, strict=strict) if several else load_run(runs[0], strict=strict)
    except ReportError as error:
        print(f"python -m reports: {error}", file=sys.stderr)
        return ExitCode.USAGE
    return _write(report, before, target)


def _write(report: Report, before: Outcomes | None, target: Path) -> ExitCode:
    if before is not None:
        report = against(report, before)
    try:
        written = write_all(report, target)
    except OSError as error:
        print(
            f"python -m reports: cannot write the report to {target}: {error}; give another directory with --out",
            file=sys.stderr,
        )
        return ExitCode.ENVIRONMENT
    print(terminal.render(report, page=written.page, colour=terminal.colour_wanted(sys.stdout)), end="")
    return report.judgement.exit_code


def _diff(arguments: Sequence[str]) -> ExitCode:
    options = diff.parser().parse_args(arguments)
    try:
        comparison = diff.of_paths(options.before, options.now)
    except ReportError as error:
        print(f"python -m reports diff: {error}", file=sys.stderr)
        return ExitCode.USAGE
    print("\n".join(diff.lines(comparison)))
    if options.out is not None:
        try:
            print(f"page: {diff.write(comparison, options.out)}")
        except OSError as error:
            print(f"python -m reports diff: cannot write to {options.out}: {error}", file=sys.stderr)
            return ExitCode.ENVIRONMENT
    return ExitCode.REGRESSION if comparison.regressions else ExitCode.CONFORMANT


def _trend(arguments: Sequence[str]) -> ExitCode:
    options = trend.parser().parse_args(arguments)
    try:
        made = trend.of_paths(options.runs, options.out)
    except ReportError as error:
        print(f"python -m reports trend: {error}", file=sys.stderr)
        return ExitCode.USAGE
    try:
        page = trend.write(made, options.out)
    except OSError as error:
        print(f"python -m reports trend: cannot write to {options.out}: {error}", file=sys.stderr)
        return ExitCode.ENVIRONMENT
    print("\n".join(trend.lines(made)))
    print(f"page: {page}")
    return ExitCode.CONFORMANT


if __name__ == "__main__":
    end_with(main, program="python -m reports", kept="an unfinished report is not written")
