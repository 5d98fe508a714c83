"""Write every face of a report into a directory; each file appears whole or not at all.

Equal reports written to equally placed directories give equal bytes: nothing here asks for the time, the host or the
user. Text from outside may hold what UTF-8 cannot encode (lone surrogates); it is replaced, never a reason to fail.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from reports import html, junit, results, summary
from reports.model import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Where the faces are."""

    page: Path
    results: Path
    junit: Path
    summary: Path


def write_all(report: Report, directory: Path) -> Written:
    """Write report.html, results.json, junit.xml and summary.md into `directory`, which is made when it is missing.

    Raises OSError when the directory cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    target = directory.resolve()
    faces: tuple[tuple[str, Callable[[], str]], ...] = (
        ("report.html", lambda: html.render(report, target)),
        ("results.json", lambda: results.dumps(report)),
        ("junit.xml", lambda: junit.render(report)),
        ("summary.md", lambda: summary.render(report)),
    )
    for name, render in faces:
        _write(directory / name, render())
    page, results_, junit_, summary_ = (directory / name for name, _ in faces)
    return Written(page=page, results=results_, junit=junit_, summary=summary_)


def _write(path: Path, text: str) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_bytes(text.encode("utf-8", "replace"))
    beside.replace(path)
