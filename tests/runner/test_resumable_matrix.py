"""The store of a matrix's cells, and the two ways in which its table gets into a page."""

from __future__ import annotations

import pytest

from runner.resumable_matrix import CellStore, UnfitMatrixError, markdown_table, replace_between_markers


def test_a_cell_is_saved_when_it_is_put_and_replaced_in_place_of_the_old_one() -> None:
    """Each change saves all cells; a repeated one moves to the end, so the last cell is the newest."""
    saved: list[tuple[str, ...]] = []
    store = CellStore(["a1", "b1"], key=lambda cell: cell[0], save=lambda cells: saved.append(tuple(cells)))
    for cell in ("c1", "a2"):
        store.put(cell)
    assert saved == [("a1", "b1", "c1"), ("b1", "c1", "a2")]
    assert store.cells == saved[-1]


def test_outstanding_is_every_key_without_a_valid_cell() -> None:
    """Missing and invalid cells are run, in the order of the matrix; `rerun` runs all of them."""
    store = CellStore(["a-valid", "b-old"], key=lambda cell: cell[0], save=lambda _: None)
    assert store.outstanding("cba", valid=lambda cell: cell.endswith("valid")) == ["c", "b"]
    assert store.outstanding("cba", valid=lambda _: True, rerun=True) == ["c", "b", "a"]


def test_a_table_is_markdown() -> None:
    """A head, a line below it, and a line for each row."""
    assert markdown_table(["bug", "s"], [["KB-05", "1.0"]]) == ["| bug | s |", "|---|---|", "| KB-05 | 1.0 |"]


@pytest.mark.parametrize("page", ["", "<a>\n", "<b>\n<a>\n"])
def test_a_page_without_both_markers_in_order_is_refused(page: str) -> None:
    """What people wrote is never overwritten by a guess of where the matrix belongs."""
    assert (
        replace_between_markers("x\n<a>\nold\n<b>\ny\n", "<a>", "<b>", new="new\n", name="p") == "x\n<a>\nnew\n<b>\ny\n"
    )
    with pytest.raises(UnfitMatrixError, match=r"page\.md has lost the lines"):
        replace_between_markers(page, "<a>", "<b>", new="new\n", name="page.md")
