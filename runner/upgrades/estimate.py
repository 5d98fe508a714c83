"""How long an upgrade takes on two quiet cores, from measured seconds (`seconds.toml`)."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from chaos.schedule import Schedule, Step, duration_s

_FILE = Path(__file__).parent / "seconds.toml"


def steps_s(schedule: Schedule) -> float:
    """The seconds of some steps."""
    return duration_s(schedule) + sum(map(_confirmed_s, schedule))


def whole_s(schedule: Schedule) -> float:
    """The seconds from the start of the cluster to the verdict."""
    seconds = _seconds()
    return seconds["before"] + steps_s(schedule) + seconds["after"]


def _confirmed_s(step: Step) -> float:
    seconds = _seconds()
    return seconds.get(type(step.fault).__name__, seconds["others"])


@cache
def _seconds() -> dict[str, float]:
    return {name: float(value) for name, value in tomllib.loads(_FILE.read_text(encoding="utf-8")).items()}
