"""Find the `results.json` of many runs: files, run directories, and directories that contain run directories.

The search goes one level deep, as in a directory of nightly artifacts. A run that is found twice, by a symlink such as
`latest`, as an equal copy, or as another report of the same evidence, counts once: such a report may be that of another
judge, and a difference would look flaky.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from reports.comparing import run_outcomes
from reports.comparing.baseline import RESULTS
from reports.comparing.trend import ReadRun
from reports.model.errors import UnfitBaselineError
from reports.model.trend import UnreadRun
from verification.evidence.run_directory import RUN_RECORD

PAGE = "report.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """A results file; `searched` is True when a search found it, False when it or its directory was given."""

    path: Path
    searched: bool


def read_all(paths: Iterable[Path], directory: Path) -> tuple[list[ReadRun], list[UnreadRun]]:
    """Read every run below the paths; references to their pages are relative to `directory`."""
    read: list[ReadRun] = []
    unread: list[UnreadRun] = []
    taken: dict[bytes | frozenset[str], str] = {}
    for file in _once(_files(paths, unread)):
        source = file.path.as_posix()
        try:
            outcomes, content = run_outcomes.read(file.path)
        except UnfitBaselineError as error:
            unread.append(UnreadRun(source=source, why=str(error).removeprefix(f"{file.path} ")))
            continue
        digest = hashlib.sha256(content).digest()
        marks = (digest, outcomes.evidence or digest)
        if same := [taken[mark] for mark in marks if mark in taken]:
            unread.append(UnreadRun(source=source, why=f"is a report of the same run as {same[0]}, which counts once"))
        elif file.searched and outcomes.parts:
            why = "is a merged report, whose runs count by themselves; give its own path to add it"
            unread.append(UnreadRun(source=source, why=why))
        else:
            taken.update(dict.fromkeys(marks, source))
            read.append(
                ReadRun(source=source, report=_reference(file.path.parent / PAGE, directory), outcomes=outcomes)
            )
    return read, unread


def _files(paths: Iterable[Path], unread: list[UnreadRun]) -> Iterator[_File]:
    for path in paths:
        try:
            found = list(_below(path)) if path.is_dir() else [_File(path=path, searched=False)]
        except OSError as error:
            unread.append(UnreadRun(source=path.as_posix(), why=f"cannot be read: {error.strerror}"))
            continue
        if not found:
            why = f"has no {RESULTS}, and no directory in it has one; give directories of runs"
            unread.append(UnreadRun(source=path.as_posix(), why=why))
        yield from found


def _below(path: Path) -> Iterator[_File]:
    """The results of a run directory, or those of the run directories in it; a run without them is named too."""
    if _is_run(path):
        yield _File(path=path / RESULTS, searched=False)
        return
    for child in sorted(path.iterdir()):
        if _is_run(child):
            yield _File(path=child / RESULTS, searched=True)


def _is_run(path: Path) -> bool:
    try:
        return (path / RESULTS).exists() or (path / RUN_RECORD).exists()
    except OSError:
        # The reader names it.
        return True


def _once(files: Iterable[_File]) -> Iterator[_File]:
    """Every file once, by its best path: one that was given, then one without a symlink."""
    best: dict[str, _File] = {}
    for file in files:
        real = os.path.realpath(file.path)
        best[real] = min(best.get(real, file), file, key=lambda each: (each.searched, each.path.parent.is_symlink()))
    yield from best.values()


def _reference(page: Path, directory: Path) -> str:
    """The path of a page from `directory` as a reference; empty for an absolute path and for no page."""
    if page.is_absolute() or not page.exists():
        return ""
    return quote(os.path.relpath(os.path.realpath(page), os.path.realpath(directory)), safe="/._-", errors="replace")
