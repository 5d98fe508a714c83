"""A matrix of runs that goes on where it stopped: its stored cells, and its table in a Markdown page.

A cell is the stored result of one run. It is on disk as soon as the run has ended, and is replaced only when that run
has been repeated. Each command says itself how a cell is stored, and which stored results are still valid.
"""

from __future__ import annotations

import json
import threading
from argparse import ArgumentParser
from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from fixtures.errors import OnceproofError
from verification.evidence.atomic_write import atomic_write

Key = TypeVar("Key", bound=Hashable)
Cell = TypeVar("Cell")


class UnfitMatrixError(OnceproofError):
    """A file of a matrix is not as this version writes it."""


class CellStore(Generic[Key, Cell]):
    """The cells of a matrix by key, saved after each change. Several threads may use it."""

    def __init__(
        self, cells: Iterable[Cell], *, key: Callable[[Cell], Key], save: Callable[[Sequence[Cell]], None]
    ) -> None:
        self._key, self._save = key, save
        self._cells = {key(each): each for each in cells}
        self._lock = threading.Lock()

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Every cell; the one that was put last stands last."""
        return tuple(self._cells.values())

    def outstanding(self, keys: Iterable[Key], *, valid: Callable[[Cell], bool], rerun: bool = False) -> list[Key]:
        """The keys without a valid cell, in their order; with `rerun` all of them."""
        return [key for key in keys if rerun or key not in self._cells or not valid(self._cells[key])]

    def save(self) -> None:
        """Save all cells as they are."""
        with self._lock:
            self._save(self.cells)

    def put(self, cell: Cell) -> None:
        """Add or replace a cell and save all of them. Raises what saving raises."""
        with self._lock:
            key = self._key(cell)
            self._cells.pop(key, None)
            self._cells[key] = cell
            self._save(self.cells)


def stored_lines(
    path: Path, *, key: Callable[[dict[str, Any]], Key], show: Callable[[Sequence[dict[str, Any]]], None]
) -> CellStore[Key, dict[str, Any]]:
    """The cells of a file with one JSON object per line. Saving writes it, then calls `show`, which writes the pages."""

    def save(lines: Sequence[dict[str, Any]]) -> None:
        atomic_write(path, "".join(json.dumps(line) + "\n" for line in lines))
        show(lines)

    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return CellStore(map(json.loads, text.splitlines()), key=key, save=save)


def add_resuming_options(parser: ArgumentParser) -> None:
    """Declare `--rerun` and `--render-only`."""
    parser.add_argument(
        "--rerun", "--again", action="store_true", help="run all cells again, also those with a stored result"
    )
    parser.add_argument(
        "--render-only", "--render", action="store_true", help="run nothing; rebuild the pages from stored results"
    )


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table."""
    return [_line(head), "|---" * len(head) + "|", *map(_line, rows)]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def replace_between_markers(text: str, begin: str, end: str, *, new: str, name: str) -> str:
    """A page with new text between two markers, which stay; `name` is the page's in the error.

    Raises UnfitMatrixError when the page has not both markers.
    """
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise UnfitMatrixError(f"{name} has lost the lines {begin} and {end}, between which the matrix belongs.")
    return f"{before}{begin}\n{new}{end}{after}"
