"""`python -m reports diff A B [--out DIR]`: what changed from A to B, printed, and as a page with --out.

Each side is a run's directory, whose evidence is read, or a `results.json`, which is enough, by itself or in a directory
that holds no evidence, such as that of a merged report.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from reports.comparing import baseline, results
from reports.comparing.baseline import Outcomes
from reports.comparing.compare import compare
from reports.formats import html
from reports.loading.run import load_run
from reports.model.change import Comparison
from reports.model.errors import UnfitRunError
from reports.model.wording import one_line, plain
from verification.command_line import Parser
from verification.evidence.atomic_write import atomic_write

PAGE = "diff.html"


def parser() -> Parser:
    """The options of the command."""
    options = Parser(
        prog="python -m reports diff",
        description="Name what changed from A to B: regressed, vanished, newly inconclusive, fixed, new.",
        epilog="Exit codes: 3 when something regressed or vanished, else 0; 4 usage; 5 when --out cannot be written.",
    )
    options.add_argument("before", type=Path, metavar="A", help="a run's directory or a results.json")
    options.add_argument("now", type=Path, metavar="B", help="a run's directory or a results.json")
    options.add_argument("--out", type=Path, metavar="DIR", help=f"write {PAGE} there")
    return options


def of_paths(before: Path, now: Path) -> Comparison:
    """Compare two sides; raises ReportError for one that cannot be read."""
    return compare(_side(before), _side(now))


def _side(path: Path) -> Outcomes:
    """The evidence itself where there is a directory of it; a results.json beside it may be older."""
    if not path.is_dir():
        return baseline.read(path)
    try:
        return baseline.of_results(results.results(load_run(path)))
    except UnfitRunError:
        if (path / baseline.RESULTS).exists():
            return baseline.read(path)
        raise


def lines(comparison: Comparison) -> Iterator[str]:
    """The difference for a terminal: both sides, the counts, then a line per change."""
    yield f"baseline  {one_line(comparison.baseline.title)}"
    yield f"now       {one_line(comparison.current.title)}"
    yield comparison.sentence
    for each in comparison.changes:
        accepted = ", accepted" if each.accepted else ""
        path = f"{each.before or 'absent'} → {each.now or 'absent'}{accepted}"
        yield plain(f"  {each.kind:<19} {each.case:<11} {one_line(each.id)}  {path}: {one_line(each.reason)}")


def write(comparison: Comparison, directory: Path) -> Path:
    """Write the page; raises OSError when the directory cannot be written."""
    directory.mkdir(parents=True, exist_ok=True)
    atomic_write(directory / PAGE, html.render_diff(comparison))
    return directory / PAGE
