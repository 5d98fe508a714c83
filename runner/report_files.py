"""Writes the report in every format and removes old runs.

Runs of scenarios and protocol runs use the same functions, so their reports are found, kept and compared alike.
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
    """Write the report of a run in every format into its directory, remove old runs, and point `latest` to this one.

    The report is written first: a problem with older runs is printed and is no error of this run.
    Raises OSError when the directory cannot be written.
    """
    directory = config.directory
    report = load_run(directory)
    write_all(report, directory)
    if directory.parent == OUT:
        with _printed(say):
            retention.keep_last(OUT, config.retain, current=directory)
        with _printed(say):
            retention.point_latest(OUT, directory)
    return report


@contextlib.contextmanager
def _printed(say: Callable[[str], None]) -> Iterator[None]:
    """Print an error instead of raising it: the report is already written."""
    try:
        yield
    except (RetentionError, OSError) as error:
        say(f"the report is written anyway: {error}")


def keep_baseline(config: RunConfig) -> None:
    """Copy the baseline into the run directory, so that the report can be rendered again without the original file."""
    if config.baseline is not None:
        shutil.copyfile(config.baseline, config.directory / BASELINE)


@contextlib.contextmanager
def written_to(directory: Path) -> Iterator[None]:
    """Turn OSError while writing into a run directory into RunDirectoryError."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise RunDirectoryError(f"{error.filename or directory} cannot be written: {reason}.") from error


def download(item: Downloaded) -> Download:
    """A downloaded file, in the form of `run.json`."""
    return Download(name=item.name, size_bytes=item.size_bytes, seconds=item.took_s)
