"""One run of a matrix: pytest in a process of its own, up to its `results.json`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar

from fixtures.errors import OnceproofError, UsageError
from runner import checkout
from runner.config import OUT
from runner.pytest_process import OverdueRunError, run_pytest
from runner.resumable_matrix import CellStore
from verification.vocabulary.verdict import ExitCode

_Due = TypeVar("_Due")


class MatrixRunError(OnceproofError):
    """A run of a matrix left no results."""


def perform(
    name: str, arguments: Sequence[str], *, within_s: float, directory: Path | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Perform the run of a cell, with its own run directory; the beginning of its line, and its results.

    The line has `commit`, `date`, `exit_code`, `seconds` and `decision`. Raises MatrixRunError when the run left no
    results, and KeyboardInterrupt when it was interrupted.
    """
    directory = directory or OUT / f"{name}-{datetime.now(tz=UTC):%Y%m%dT%H%M%SZ}"
    began = time.monotonic()
    try:
        # A cell counts a violation once. A soak, which asks how often one is seen, says so.
        repeat = () if any(each.startswith("--repeat") for each in arguments) else ("--repeat=0",)
        code = run_pytest([*arguments, *repeat, f"--run-dir={directory}"], within_s=within_s)
    except OverdueRunError as error:
        raise MatrixRunError(f"{name} did not end within {within_s:.0f} s; its evidence is in {directory}.") from error
    written = directory / "results.json"
    if not written.is_file():
        raise MatrixRunError(f"{name} ended with exit code {code} and left no results; its output says why.")
    results: dict[str, Any] = json.loads(written.read_text(encoding="utf-8"))
    if results["interrupted"]:
        raise KeyboardInterrupt
    line = {
        "commit": checkout.commit(),
        "date": f"{datetime.now(tz=UTC):%Y-%m-%d}",
        "exit_code": code,
        "seconds": round(time.monotonic() - began),
        "decision": results["decision"],
    }
    return line, results


def fill(
    stored: CellStore[Any, dict[str, Any]],
    due: Callable[[], Iterable[_Due]],
    perform: Callable[[_Due], dict[str, Any]],
    *,
    render_only: bool,
) -> int | None:
    """Perform the runs that are due and store each line, or only write the pages; the exit code if that was all.

    A run that breaks ends the matrix with its sentence and exit code. None says that the lines have to be looked at.
    """
    if render_only:
        stored.save()
        return int(ExitCode.CONFORMANT)
    try:
        for each in due():
            stored.put(perform(each))
    except OnceproofError as error:
        print(error, file=sys.stderr)  # noqa: T201 - the voice of a command
        return int(error.exit_code)
    return None


class _Named(Protocol):
    """A cell of a matrix."""

    @property
    def name(self) -> str:
        """Its name in options and in names of directories."""


_Cell = TypeVar("_Cell", bound=_Named)


def chosen(cells: Sequence[_Cell], words: Sequence[str]) -> tuple[_Cell, ...]:
    """The cells whose name contains one of the words; all without words. Raises UsageError for none."""
    found = tuple(cell for cell in cells if not words or any(word in cell.name for word in words))
    if not found:
        raise UsageError(f"No run has {' or '.join(words)} in its name, such as {cells[0].name}.")
    return found


def row_of(result: dict[str, Any]) -> dict[str, Any]:
    """A scenario or control of the results, as far as a line keeps it."""
    return {
        "key": result["id"],
        "verdict": result["verdict"],
        "convicted": result.get("convicted"),
        "known_bugs": [_name_of(finding) for finding in result.get("findings", [])],
        "seconds": result["seconds"]["actual"] or 0.0,
    }


def _name_of(finding: dict[str, Any]) -> str:
    """The known bug of a finding, else the setting and its value that explain it, else nothing."""
    return str(finding.get("known_bug") or finding.get("setting", "").partition(" ")[0])
