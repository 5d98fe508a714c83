"""The findings and records of contenders are compared with the plants, and with each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.judge import log_context
from benchmarks.judge.errors import DisagreementError
from benchmarks.judge.findings import FoundViolation, agree, read, write

FOUND = (FoundViolation("lost-write", 1, 3, 0, 2, 1, 77), FoundViolation("aborted-read", 4, 5, 6, 1, 1, 9, "committed"))


@pytest.mark.parametrize(
    ("theirs", "said"),
    [
        (FOUND[:1], "missed 1 of 2"),
        ((*FOUND, FoundViolation("stuck-lso", topic_index=1, partition=0, offset=5)), "1 that were not planted"),
        ((*FOUND, FOUND[0]), "1 of the planted violations twice"),
        ((FOUND[0]._replace(offset=78), FOUND[1]), "missed 1 of 2"),
    ],
)
def test_a_contender_that_finds_anything_else_is_wrong(theirs: tuple[FoundViolation, ...], said: str) -> None:
    """One violation too few, too many, twice or elsewhere is an error."""
    with pytest.raises(DisagreementError, match=said):
        agree("another", theirs, FOUND)


def test_what_was_found_is_read_as_it_was_written(tmp_path: Path) -> None:
    """A violation survives the file that contenders write, including its empty columns."""
    found = (*FOUND, FoundViolation("torn-transaction", 7, 9))
    write(tmp_path / "found.csv", found)
    assert read(tmp_path / "found.csv") == list(found)
    agree("another", read(tmp_path / "found.csv"), found)


SHOWN = (
    (("anomaly", "lost-write"), ("committed", 1), ("offset", 7)),
    (("anomaly", "lost-write"), ("committed", 0), ("offset", 8)),
)


@pytest.mark.parametrize(
    ("theirs", "said"),
    [
        (SHOWN[:1], "does not show 1 of 2"),
        ((*SHOWN, SHOWN[0]), "shows 1 rows around examples that the product does not"),
        ((SHOWN[0], (*SHOWN[1], ("told", "committed"))), "does not show 1 of 2.*committed=0 offset=8"),
    ],
)
def test_a_yardstick_that_shows_anything_else_is_wrong(theirs: tuple[log_context.Row, ...], said: str) -> None:
    """One row too few, too many, or with another value around an example is an error."""
    log_context.agree("another", reversed(SHOWN), SHOWN)
    with pytest.raises(DisagreementError, match=said):
        log_context.agree("another", theirs, SHOWN)
