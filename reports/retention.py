"""Keep the last runs, and point `latest` at the newest.

Only direct subdirectories are deleted, and only if their run.json was written by this suite. Symlinks are never followed
or deleted. run.json is deleted last, so that the next call can finish an interrupted deletion.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from reports.model import run_record
from reports.model.errors import RetentionError
from verification.evidence.run_directory import RUN_RECORD

LATEST = "latest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retained:
    """The runs that are kept, deleted, and impossible to delete, with the reason."""

    kept: tuple[Path, ...]
    deleted: tuple[Path, ...]
    failed: tuple[tuple[Path, str], ...]


def keep_last(out: Path, count: int, *, current: Path | None = None) -> Retained:
    """Delete all but the `count` newest runs below `out`; `current` is always kept.

    Raises RetentionError for a count below 1.
    """
    if count < 1:
        raise RetentionError(f"cannot keep {count} runs; keep at least 1, the run that has just ended")
    spared = current.resolve() if current else None
    runs = sorted((each for each in _children(out) if _is_run(each)), key=_age, reverse=True)
    kept, deleted, failed = runs[:count], [], []
    for run in runs[count:]:
        if run.resolve() == spared:
            kept.append(run)
            continue
        try:
            _delete(run)
            deleted.append(run)
        except OSError as error:
            failed.append((run, str(error)))
    return Retained(kept=tuple(kept), deleted=tuple(deleted), failed=tuple(failed))


def point_latest(out: Path, run: Path) -> Path:
    """Make `out`/latest a relative symlink to `run`, atomically; returns the symlink.

    Raises RetentionError when `latest` exists and is no symlink.
    """
    link = out / LATEST
    if link.exists() and not link.is_symlink():
        raise RetentionError(f"{link} exists and is no symlink; move it away, because Onceproof does not delete it")
    temporary = out / f".{LATEST}.{os.getpid()}"
    with contextlib.suppress(FileNotFoundError):
        temporary.unlink()
    temporary.symlink_to(os.path.relpath(run.resolve(), out.resolve()), target_is_directory=True)
    temporary.replace(link)
    return link


def _children(out: Path) -> list[Path]:
    if not out.is_dir():
        return []
    return [each for each in out.iterdir() if each.is_dir() and not each.is_symlink()]


def _is_run(directory: Path) -> bool:
    return run_record.is_ours(directory / RUN_RECORD)


def _age(directory: Path) -> tuple[str, str]:
    """The sort key of a run: its start; a record without one counts as the oldest."""
    body = json.loads((directory / RUN_RECORD).read_text(encoding="utf-8"))
    return (str(body.get("started", "")), directory.name)


def _delete(run: Path) -> None:
    for each in run.iterdir():
        if each.name == RUN_RECORD:
            continue
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each)
        else:
            each.unlink()
    (run / RUN_RECORD).unlink()
    run.rmdir()
