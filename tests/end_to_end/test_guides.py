"""The Python that guides show is followed in a copy of the checkout, and the project's strict mypy accepts it there."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.paths import ROOT

GUIDES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/writing/*.md")])
#: A block of Python, and a comment before it with the file that it goes into: at its end, or after a text.
_BLOCK = re.compile(r'(?:<!-- into ([\w./-]+)(?: after "([^\n]+)")? -->\n)?```python\n(.*?)```', re.DOTALL)
#: Without a cache mypy takes 20 s; at a load of 30 on two processors, next to whole runs, it took more than a minute.
CHECKED_WITHIN_S = 240.0


def blocks(guide: str) -> Iterator[tuple[str, str, str]]:
    """The file that each block of Python goes into, the text that it follows there (or nothing), and the block."""
    for into, after, block in _BLOCK.findall(guide):
        assert into, f"say above this block which file it goes into:\n{block}"
        yield into, after, block


def follow(guide: str, checkout: Path) -> set[str]:
    """Write a guide's blocks into a checkout; the files that they are in."""
    written = set()
    for into, after, block in blocks(guide):
        path = checkout / into
        path.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        assert text.count(after) == 1 or not after, f"{into} does not have {after!r} once"
        end = text.index("\n", text.index(after)) + 1 if after else len(text)
        path.write_text(text[:end] + block + text[end:], encoding="utf-8")
        written.add(into)
    return written


def complaints(checkout: Path, files: set[str]) -> str:
    """The errors of mypy in some files of a checkout; empty without errors."""
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--cache-dir", "mypy_cache", *sorted(files)]
    ended = subprocess.run(command, cwd=checkout, capture_output=True, text=True, timeout=CHECKED_WITHIN_S, check=False)
    return ended.stdout + ended.stderr


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of all our Python, and of mypy's settings."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py", "pyproject.toml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(lambda each: (ROOT / each).is_file(), listed.stdout.splitlines()):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    return tmp_path


def test_what_guides_show_has_the_right_types(checkout: Path) -> None:
    """Every block of Python fits where its guide puts it; and a wrong one would have been noticed."""
    files = {name for guide in GUIDES for name in follow(guide.read_text(encoding="utf-8"), checkout)}
    wrong = "<!-- into wrong.py -->\n```python\nfrom chaos.targets import LeaderOf\n\nLeaderOf(0)\n```\n"
    files |= follow(wrong, checkout)
    said = complaints(checkout, files).splitlines()
    assert [line for line in said if not line.startswith("wrong.py:")] == []
    assert len(said) == 2, "one argument too few, and one of another type"
