"""Which scenarios a run executes, and in which order."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from suites.planning import CONTROLS, FAMILIES, in_order


def test_a_family_that_nobody_ordered_runs_before_the_controls() -> None:
    """Controls say nothing about the subject, so they come last whatever families are added."""
    places = [CONTROLS, "brand-new", *reversed(FAMILIES)]
    items = [SimpleNamespace(path=Path(place) / "test_it.py") for place in places]
    ordered = [item.path.parent.name for item in in_order(items)]  # type: ignore[arg-type]
    assert ordered == [*FAMILIES, "brand-new", CONTROLS]
