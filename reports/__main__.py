"""`python -m reports RUN_DIR… [--out DIR]`: render saved evidence again, without Spark and without a cluster.

A RUN_DIR is a whole run's directory or one scenario's. Without --out the faces are written into it; with --out and
several directories each gets a subdirectory of its own name. The exit code is that of the decision, the highest in
the common table when there are several; 4 for a path that is no run directory, 5 when nothing can be written.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from pathlib import Path

from reports import terminal
from reports.errors import ReportError
from reports.load import load_run
from reports.words import EXIT_MEANING
from reports.write import write_all
from verification.command_line import Parser, end_with
from verification.verdict import PRECEDENCE, ExitCode, exit_code


def _parser() -> Parser:
    codes = " · ".join(f"{int(code)} {EXIT_MEANING[code]}" for code in PRECEDENCE)
    parser = Parser(
        prog="python -m reports",
        description="Render the report of saved runs again, from files alone.",
        epilog=f"Exit codes, the highest wins: {codes}.",
    )
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN_DIR", help="a whole run's directory, or a scenario's"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="write there instead of into RUN_DIR")
    return parser


def _target(run: Path, out: Path | None, *, several: bool) -> Path:
    if out is None:
        return run
    return out / run.resolve().name if several else out


def main(arguments: Sequence[str] | None = None) -> ExitCode:
    """Render each run; returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that knows no ✓ shows ?, which is better than no decision at all.
            stream.reconfigure(errors="replace")
    options = _parser().parse_args(arguments)
    several = len(options.runs) > 1
    targets = [_target(run, options.out, several=several).resolve() for run in options.runs]
    if len(set(targets)) < len(targets):
        print("python -m reports: two runs would be written to one directory; render them one by one", file=sys.stderr)
        return ExitCode.USAGE
    codes = [_render(run, target) for run, target in zip(options.runs, targets, strict=True)]
    return exit_code(codes)


def _render(run: Path, target: Path) -> ExitCode:
    try:
        report = load_run(run)
    except ReportError as error:
        print(f"python -m reports: {error}", file=sys.stderr)
        return ExitCode.USAGE
    try:
        written = write_all(report, target)
    except OSError as error:
        print(f"python -m reports: cannot write the report to {target}: {error}; try --out", file=sys.stderr)
        return ExitCode.ENVIRONMENT
    print(terminal.render(report, page=written.page, colour=terminal.colour_wanted(sys.stdout)), end="")
    return report.judgement.exit_code


if __name__ == "__main__":
    end_with(main, program="python -m reports", kept="a report that was not written yet is left out")
