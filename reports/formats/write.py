"""Write a report in every output format into a directory, each file atomically.

Equal reports in equal directories give equal bytes: time, host and user have no influence. Characters that UTF-8 cannot
encode (lone surrogates) are replaced; they never make it fail.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from reports.comparing import results
from reports.formats import badge, ctrf, html, junit, summary, trace
from reports.model.report import Report
from verification.evidence.atomic_write import atomic_write


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The path of the page, and of every file that was written."""

    page: Path
    files: tuple[Path, ...]


def write_all(report: Report, directory: Path) -> Written:
    """Write all formats into `directory`, which is created if it is missing.

    Raises OSError when the directory cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    target = directory.resolve()
    formats: tuple[tuple[str, Callable[[], str]], ...] = (
        ("report.html", lambda: html.render(report, target)),
        ("results.json", lambda: results.dumps(report)),
        ("junit.xml", lambda: junit.render(report)),
        ("ctrf.json", lambda: ctrf.dumps(report)),
        ("summary.md", lambda: summary.render(report)),
        ("badge.json", lambda: badge.dumps(report)),
    )
    if not report.is_protocol_run:
        # A protocol run has no history for a trace.
        formats = (*formats, ("trace.json", lambda: trace.dumps(report)))
    for name, render in formats:
        atomic_write(directory / name, render())
    return Written(page=directory / formats[0][0], files=tuple(directory / name for name, _ in formats))
