"""CI runs with locked versions, which are within the ranges of requirements.txt."""

from __future__ import annotations

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.paths import ROOT


def entries(*names: str) -> list[Requirement]:
    """The requirements in files of the checkout."""
    lines = [line.strip() for name in names for line in (ROOT / name).read_text(encoding="utf-8").splitlines()]
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


def test_every_dependency_is_locked_within_its_range() -> None:
    """The lock has each of our requirements, once, at a version that its range allows."""
    locked = {
        canonicalize_name(each.name): str(each.specifier).removeprefix("==") for each in entries("requirements.lock")
    }
    assert len(locked) == len(entries("requirements.lock"))
    wanted = entries("requirements.txt", "requirements-dev.txt")
    assert wanted
    outside = [str(each) for each in wanted if not each.specifier.contains(locked[canonicalize_name(each.name)])]
    assert outside == []


def test_ci_installs_by_the_lock() -> None:
    """The lock works only where a variable names it to pip, and tox passes the variable on."""
    assert 'PIP_CONSTRAINT="$PWD/requirements.lock"' in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "PIP_*" in (ROOT / "tox.ini").read_text(encoding="utf-8")
