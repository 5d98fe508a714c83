"""Which scenarios a run executes, and in which order."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from suites.config import Profile
from suites.planning import CONTROLS, FAMILIES, in_order, in_profile


def test_a_family_that_nobody_ordered_runs_before_the_controls() -> None:
    """Controls say nothing about the subject, so they come last whatever families are added."""
    places = [CONTROLS, "brand-new", *reversed(FAMILIES)]
    items = [SimpleNamespace(path=Path(place) / "test_it.py") for place in places]
    ordered = [item.path.parent.name for item in in_order(items)]  # type: ignore[arg-type]
    assert ordered == [*FAMILIES, "brand-new", CONTROLS]


def test_each_profile_runs_its_own() -> None:
    """Smoke runs what is marked so, nightly everything, and quick all that is not marked for the night."""
    marks = {"plain": set[str](), "smoke": {"smoke"}, "nightly": {"nightly"}}
    run = {
        profile: [name for name, each in marks.items() if in_profile(SimpleNamespace(profile=profile), each)]  # type: ignore[arg-type]
        for profile in Profile
    }
    assert run == {
        Profile.SMOKE: ["smoke"],
        Profile.QUICK: ["plain", "smoke"],
        Profile.NIGHTLY: ["plain", "smoke", "nightly"],
    }
