"""Which scenarios a run executes, and in which order."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from fixtures.clients.registry import CLIENTS
from suites.config import Profile
from suites.planning import CONTROLS, FAMILIES, in_order, in_profile, variants


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


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("profile", Profile)
def test_what_is_about_librdkafka_is_run_with_it(client: str, profile: Profile) -> None:
    """Its mock cluster knows no other client, and its own mistakes are nobody else's."""
    config = SimpleNamespace(client=client, profile=profile, seeds=(1,), release=SimpleNamespace(has_tv2=True))
    for marks in ({"librdkafka", "convict"}, {"librdkafka", "nightly"}, {"librdkafka", "both_clients"}):
        assert [each.client for each in variants(config, marks)] == ["confluent"]  # type: ignore[arg-type]
    assert client in {each.client for each in variants(config, {"convict"})}  # type: ignore[arg-type]
