"""Windows that passed lose their records, the oldest first, when all have too much of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.given.passed_windows import PassedWindows
from tests.support.planted.cases import CASES
from tests.support.planted.files import write
from verification.evidence.run_directory import RunDirectory
from verification.evidence.run_evidence import read_run
from verification.vocabulary.errors import UnfitEvidenceError

RECORDS = ("acks", "observations", "log", "uncommitted", "committed")


def window(root: Path) -> RunDirectory:
    run = write(CASES["skipped"]("a1b2c3d4e5f6")[0], root)
    run.readme.write_text("Evidence of a window.\n", encoding="utf-8")
    return run


def records(run: RunDirectory) -> list[str]:
    return [name for name in RECORDS if (run.root / name).is_dir()]


def test_the_oldest_windows_lose_their_records(tmp_path: Path) -> None:
    """The rest of their evidence stays, and README.txt says so; the newest window is whole, however large.

    A window without its records cannot be judged again, and the judge says why.
    """
    first, second, third = (window(tmp_path / name) for name in ("first", "second", "third"))
    size = sum(each.stat().st_size for name in RECORDS for each in (first.root / name).rglob("*"))
    passed = PassedWindows(keep_bytes=size * 5 // 2)
    for each in (first, second, third):
        passed.add(each)
    assert [records(each) for each in (first, second, third)] == [[], list(RECORDS), list(RECORDS)]
    assert "its records were removed" in first.readme.read_text(encoding="utf-8")
    assert second.readme.read_text(encoding="utf-8") == "Evidence of a window.\n"
    assert first.history.is_file()
    with pytest.raises(UnfitEvidenceError, match="log is missing"):
        read_run(first)
    assert read_run(second).experiment == read_run(third).experiment
    greedy = PassedWindows(keep_bytes=0)
    greedy.add(third)
    assert records(third) == list(RECORDS)
    greedy.add(second)
    assert (records(third), records(second)) == ([], list(RECORDS))
