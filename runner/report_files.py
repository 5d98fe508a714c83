"""Writes the report in every format and removes old runs.

Shared by the entry points, so that a sweep of protocol cases and a run of scenarios are found, kept and compared alike.
"""

from __future__ import annotations

import contextlib
import shutil
from typing import TYPE_CHECKING

from fixtures.errors import RunDirectoryError
from reports import retention
from reports.formats.write import write_all
from reports.loading.run import BASELINE, load_run
from reports.model.errors import RetentionError
from reports.model.run_record import Download
from runner.config import OUT, RunConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from fixtures.downloads.progress import Downloaded
    from reports.model.report import Report


def write_report(config: RunConfig, say: Callable[[str], None]) -> Report:
    """Read the run's directory and write every face of its report into it; `latest` points there.

    The report is there before older runs are looked at: what is wrong with those is said, and is no error of this run.
    Raises OSError when the directory cannot be written.
    """
    directory = config.directory
    report = load_run(directory)
    write_all(report, directory)
    if directory.parent == OUT:
        with _told(say):
            retention.keep_last(OUT, config.retain, current=directory)
        with _told(say):
            retention.point_latest(OUT, directory)
    return report


@contextlib.contextmanager
def _told(say: Callable[[str], None]) -> Iterator[None]:
    """Say what went wrong beside the report that is written already."""
    try:
        yield
    except (RetentionError, OSError) as error:
        say(f"the report is written all the same: {error}")


def keep_baseline(config: RunConfig) -> None:
    """Keep what the run is compared with in it: rendered again, it says the same, wherever the file went."""
    if config.baseline is not None:
        shutil.copyfile(config.baseline, config.directory / BASELINE)


@contextlib.contextmanager
def written_to(directory: Path) -> Iterator[None]:
    """Turn the system's refusal to write into a run's directory into RunDirectoryError."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise RunDirectoryError(f"{error.filename or directory} cannot be written: {reason}.") from error


def download(item: Downloaded) -> Download:
    """A fetched file as the record of a run has it."""
    return Download(name=item.name, size_bytes=item.size_bytes, seconds=item.took_s)
