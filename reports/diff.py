"""`python -m reports diff A B [--out DIR]`: print the changes from A to B; with --out also write a page.

Each side is a run directory, whose evidence is read, or a `results.json`. That file may be alone or in a directory
without evidence, such as that of a merged report.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from reports.comparing import baseline, results
from reports.comparing.baseline import Outcomes
from reports.comparing.compare import compare
from reports.formats import html
from reports.loading.run import load_run
from reports.model.change import BaselineComparison
from reports.model.errors import UnfitRunError
from reports.model.wording import one_line, plain
from verification.command_line import Parser
from verification.evidence.atomic_write import atomic_write

PAGE = "diff.html"


def parser() -> Parser:
    """The options of the command."""
    options = Parser(
        prog="python -m reports diff",
        description="List the changes from A to B: regressed, vanished, newly inconclusive, fixed, new.",
        epilog="Exit codes: 3 if a case regressed or vanished, else 0; 4 invalid argument; 5 --out cannot be written.",
    )
    options.add_argument("before", type=Path, metavar="A", help="a run directory or a results.json")
    options.add_argument("now", type=Path, metavar="B", help="a run directory or a results.json")
    options.add_argument("--out", type=Path, metavar="DIR", help=f"directory for {PAGE}")
    return options


def of_paths(before: Path, now: Path) -> BaselineComparison:
    """Compare two sides; raises ReportError for one that cannot be read."""
    return compare(_side(before), _side(now))


def _side(path: Path) -> Outcomes:
    """The results of one side: from evidence if there is any, because a results.json may be older."""
    if not path.is_dir():
        return baseline.read(path)
    try:
        return baseline.of_results(results.results(load_run(path)))
    except UnfitRunError:
        if (path / baseline.RESULTS).exists():
            return baseline.read(path)
        raise


def lines(comparison: BaselineComparison) -> Iterator[str]:
    """The comparison for a terminal: both runs, the counts, then a line per change."""
    yield f"baseline  {one_line(comparison.baseline.title)}"
    yield f"now       {one_line(comparison.current.title)}"
    yield comparison.sentence
    for each in comparison.changes:
        accepted = ", accepted" if each.accepted else ""
        path = f"{each.before or 'absent'} → {each.now or 'absent'}{accepted}"
        yield plain(f"  {each.kind:<19} {each.case:<11} {one_line(each.id)}  {path}: {one_line(each.reason)}")


def write(comparison: BaselineComparison, directory: Path) -> Path:
    """Write the page; raises OSError when the directory cannot be written."""
    directory.mkdir(parents=True, exist_ok=True)
    atomic_write(directory / PAGE, html.render_diff(comparison))
    return directory / PAGE
