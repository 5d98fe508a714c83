"""Write every face of a report into a directory; each file appears whole or not at all.

Equal reports written to equally placed directories give equal bytes: nothing here asks for the time, the host or the
user. Text from outside may hold what UTF-8 cannot encode (lone surrogates); it is replaced, never a reason to fail.
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
    """Where the page is, and every file that was written."""

    page: Path
    files: tuple[Path, ...]


def write_all(report: Report, directory: Path) -> Written:
    """Write every face into `directory`, which is made when it is missing.

    Raises OSError when the directory cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    target = directory.resolve()
    faces: tuple[tuple[str, Callable[[], str]], ...] = (
        ("report.html", lambda: html.render(report, target)),
        ("results.json", lambda: results.dumps(report)),
        ("junit.xml", lambda: junit.render(report)),
        ("ctrf.json", lambda: ctrf.dumps(report)),
        ("summary.md", lambda: summary.render(report)),
        ("badge.json", lambda: badge.dumps(report)),
    )
    if not report.is_sweep:
        # Scripts have no history that a trace could show.
        faces = (*faces, ("trace.json", lambda: trace.dumps(report)))
    for name, render in faces:
        atomic_write(directory / name, render())
    return Written(page=directory / faces[0][0], files=tuple(directory / name for name, _ in faces))
