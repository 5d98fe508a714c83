"""Which known bug a violated protocol case is: the entry that names it, on a release on which the bug was seen."""

from __future__ import annotations

import ast
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from tests.sweep_directories import PASSED, UNNAMED, VIOLATED
from verification.known_bugs import load
from verification.script import Script, judge
from verification.script_bugs import known_as

BUGS = load()
PROTOCOL = Path(__file__).resolve().parent.parent / "suites" / "protocol"


def known(script: Script) -> list[tuple[str, bool]]:
    """The entries that are found, by id, and whether they name the case."""
    return [(each.bug.id, each.named) for each in known_as(script, judge(script), BUGS.values())]


def _keys() -> set[str]:
    """The keys of all cases, read from the files: `<family>-<name>`, and with each generation."""
    keys = set()
    for path in PROTOCOL.glob("test_*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                key = f"{path.stem.removeprefix('test_')}-{node.name.removeprefix('test_')}".replace("_", "-")
                keys |= {key, f"{key}-tv1", f"{key}-tv2"}
    return keys


def test_an_entry_that_names_the_case_is_what_it_is() -> None:
    """KB-05 names the case, and was seen on 4.3.1; on a release that has the fix nothing is known."""
    assert known(VIOLATED) == [("KB-05", True)]
    assert known(replace(VIOLATED, release="4.5.0")) == []


def test_an_entry_that_only_fits_names_nothing() -> None:
    """An entry on the same requirement and release is mentioned, and said not to be proven."""
    assert known(UNNAMED) == [("KB-03", False), ("KB-04", False)]
    assert known(replace(VIOLATED, case="idempotence-something-else")) == [("KB-05", False)]


def test_what_holds_is_no_bug() -> None:
    """A pass is never named after a bug, and neither is a violation on something that is no release."""
    assert known(replace(PASSED, requirements=("IDEMP-10",))) == []
    assert known(replace(VIOLATED, release="trunk")) == []


@pytest.mark.parametrize("identity", [each.id for each in BUGS.values() if each.cases])
def test_entries_name_cases_that_exist(identity: str) -> None:
    """A case that is renamed must be renamed in the list too, or it would silently lose its bug."""
    assert set(BUGS[identity].cases) <= _keys()


def test_a_case_shows_one_bug_per_release() -> None:
    """No case is named by two entries whose ranges meet, so a violation has one name."""
    for case in {case for bug in BUGS.values() for case in bug.cases}:
        entries = [bug for bug in BUGS.values() if case in bug.cases]
        ranges = sorted((bad.first, bad.last) for bug in entries for bad in bug.bad)
        assert all(before[1] < after[0] for before, after in pairwise(ranges)), case
