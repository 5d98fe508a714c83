"""`python -m reports trend DIR… --out DIR`: show many runs on one page, for nights, releases or seeds next to each other.

It reads the `results.json` of each run and no evidence. It writes `trend.html`, `trend.json` and `trend.md`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from reports.comparing import trend as comparing
from reports.formats import trend_json, trend_page, trend_summary
from reports.loading import result_files
from reports.model.errors import UnfitTrendError
from reports.model.trend import Trend, UnreadRun, ViolationTrend
from reports.model.wording import counted, one_line
from verification.command_line import Parser
from verification.evidence.atomic_write import atomic_write

PAGE = "trend.html"
#: Characters of a text from outside, and lines per list; the page has more.
TEXT_MAX = 300
LINES_MAX = 20
UNREAD_MAX = 50


def parser() -> Parser:
    """The options of the command."""
    options = Parser(
        prog="python -m reports trend",
        description="Show many runs on one page: decisions, violations, flaky cases, requirements, duration, coverage.",
        epilog=(
            "Writes trend.html, trend.json and trend.md. A run that cannot be read is named, and the others are shown. "
            "Exit codes: 0 when the files were written, whatever the runs decided; "
            "4 invalid argument, or no run can be read; 5 --out cannot be written."
        ),
    )
    options.add_argument(
        "runs",
        nargs="+",
        type=Path,
        metavar="DIR",
        help="a run directory, a directory that contains run directories, or a results.json",
    )
    options.add_argument("--out", type=Path, metavar="DIR", required=True, help="output directory")
    return options


def of_paths(paths: Sequence[Path], directory: Path) -> Trend:
    """The trend of all runs below the paths; raises UnfitTrendError when none can be read."""
    read, unread = result_files.read_all(paths, directory)
    if not read:
        raise UnfitTrendError(f"no run can be read: {_first(unread)}")
    return comparing.trend(read, unread)


def _first(unread: Sequence[UnreadRun]) -> str:
    """The first unreadable run, and the number of the others."""
    rest = f" (and {len(unread) - 1} more)" if len(unread) > 1 else ""
    return f"{unread[0].source} {unread[0].why}{rest}"


def lines(trend: Trend) -> Iterator[str]:
    """The trend for a terminal: counts, violations of the last runs, and runs that cannot be read."""
    yield f"{counted(len(trend.runs), 'run')}, the last is {one_line(trend.last.title, TEXT_MAX)}: {trend.last.decision}"
    yield trend.sentence
    shown = [each for each in trend.violations if each.state.is_in_last_run]
    yield from (_line(each) for each in shown[:LINES_MAX])
    if len(shown) > LINES_MAX:
        yield f"  and {len(shown) - LINES_MAX} more"
    if trend.flaky:
        yield f"{counted(len(trend.flaky), 'flaky case')}"
    for each in trend.unread[:UNREAD_MAX]:
        yield f"not in the trend: {one_line(each.source)} {one_line(each.why, TEXT_MAX)}"
    if len(trend.unread) > UNREAD_MAX:
        yield f"not in the trend: {len(trend.unread) - UNREAD_MAX} more"


def _line(each: ViolationTrend) -> str:
    bug = f" ({each.known_bug})" if each.known_bug else ""
    where = one_line(f"{each.found}{bug} in {each.case}, {each.release}, {each.profile}", TEXT_MAX)
    return f"  {each.state:<17} {where}: {each.bad} of {each.decided} runs, the first is #{each.first_bad}"


def write(trend: Trend, directory: Path) -> Path:
    """Write all files; returns the page. Raises OSError when the directory cannot be written."""
    directory.mkdir(parents=True, exist_ok=True)
    atomic_write(directory / PAGE, trend_page.render(trend))
    atomic_write(directory / "trend.json", trend_json.dumps(trend))
    atomic_write(directory / "trend.md", trend_summary.render(trend))
    return directory / PAGE
