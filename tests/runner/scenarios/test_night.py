"""The nightly profile keeps every experiment, and so many repetitions with further seeds as a night has time for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.clusters.locks.releases import default_release
from reports.model.run_record import Planned
from runner.config import Only, Profile, RunConfig, Runtime, unreported
from runner.scenarios.night import LANES, NIGHT_S, left_out, measured_s, recorded

SEEDS = (7, 8, 9)
#: So many experiments of equal length fill a night.
KEPT = 158
EACH_S = NIGHT_S * LANES / KEPT


def night(**changes: object) -> RunConfig:
    """A nightly run with seed 7."""
    config = unreported(default_release(), Path("run"), runtime=Runtime.LOCAL)
    return replace(config, profile=Profile.NIGHTLY, seed=SEEDS[0], **changes)  # type: ignore[arg-type]


def planned(name: str, seed: int, requirement: str, expected_s: float, *, control: bool = False) -> Planned:
    """One experiment of a night."""
    return Planned(
        key=f"{name}-{seed}",
        scenario=name,
        claim="",
        requirements=(requirement,),
        expected_s=expected_s,
        control=control,
    )


#: 120 experiments with three seeds, more than twice of what a night has time for.
EXPERIMENTS = [planned(f"s{number}", seed, f"R-{number % 10}", EACH_S) for number in range(120) for seed in SEEDS]


def test_a_night_is_full_and_not_longer() -> None:
    """No experiment is missing, and the repetitions fill the time that is left."""
    dropped = left_out(EXPERIMENTS, night())
    kept = [each for each in EXPERIMENTS if each.key not in dropped]
    assert {each.scenario for each in kept if each.key.endswith("-7")} == {each.scenario for each in EXPERIMENTS}
    assert len(kept) == KEPT


def test_a_repetition_of_a_rare_requirement_is_kept_first() -> None:
    """Of two repetitions with equal cost the one stays whose requirement fewer experiments decide."""
    rare = [planned("rare", seed, "R-rare", EACH_S) for seed in SEEDS]
    dropped = left_out([*EXPERIMENTS, *rare], night())
    assert not {each.key for each in rare} & dropped


def test_of_equal_requirements_the_cheaper_repetition_is_kept() -> None:
    """The dear repetition of a requirement is left out before the cheap one."""
    half_s = NIGHT_S * LANES / 2
    pair = [planned(name, 7, "R", half_s - 100.0) for name in ("cheap", "dear")]
    pair += [planned("cheap", 8, "R", 90.0), planned("dear", 8, "R", 180.0)]
    assert left_out(pair, night()) == {"dear-8"}


def test_equal_seeds_leave_out_the_same() -> None:
    """The choice is part of the plan, and the order in which tests were collected does not matter for its size."""
    assert left_out(EXPERIMENTS, night()) == left_out(EXPERIMENTS, night())


def test_controls_are_never_left_out() -> None:
    """A control shows that the suite finds a defect, whatever it costs."""
    control = planned("control", 8, "R-0", NIGHT_S * LANES, control=True)
    assert control.key not in left_out([*EXPERIMENTS, control], night())


@pytest.mark.parametrize(
    "config",
    [
        night(keyword="s1"),
        night(markers="nightly"),
        night(only=Only.PIPELINES),
        replace(night(), profile=Profile.QUICK),
    ],
    ids=["-k", "-m", "pipelines alone", "quick"],
)
def test_what_the_user_chose_is_run_whole(config: RunConfig) -> None:
    """Only a whole night has a limit of time."""
    assert left_out(EXPERIMENTS, config) == frozenset()


def test_the_record_names_what_is_missing() -> None:
    """The report shows each left-out repetition and the command that runs it."""
    (text,) = recorded({"b-8", "a-9"}).values()
    assert text.startswith("2 repetitions with another seed")
    assert "a-9, b-8" in text
    assert "--seed SEED -k NAME" in text
    assert recorded(()) == {}


def test_measured_seconds_are_of_scenarios_that_exist() -> None:
    """A renamed scenario loses its seconds, so the table may have no name that no suite has."""
    import tomllib

    root = Path(__file__).parents[3]
    table = tomllib.loads((root / "runner" / "scenarios" / "seconds.toml").read_text(encoding="utf-8"))
    functions = "\n".join(path.read_text(encoding="utf-8") for path in (root / "suites").rglob("test_*.py"))
    for client, rows in table.items():
        for scenario in rows:
            name = scenario.partition("/")[2].replace("-", "_")
            assert f"def test_{name}(" in functions, scenario
            assert measured_s(scenario, f"{client}@1.0")
