"""What is known of the steps of an upgrade: their proofs, their seconds, and how long their effect lasts (`steps.toml`)."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

from chaos.schedule import Schedule, Step, duration_s

_FILE = Path(__file__).parent / "steps.toml"
_OTHERS, _BEFORE, _AFTER = "others", "before", "after"


class Stays(StrEnum):
    """How long the effect of a step lasts."""

    STEP = "step"
    STAGE = "stage"
    RUN = "run"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFacts:
    """A proof in words, the seconds until it is seen on two quiet cores, and how long the effect lasts."""

    seconds: float
    proof: str = ""
    stays: Stays = Stays.STEP


def facts_of(step: Step) -> StepFacts:
    """The facts of a step's operation or fault."""
    known = _facts()
    return known.get(type(step.fault).__name__, known[_OTHERS])


def steps_s(schedule: Schedule) -> float:
    """The seconds that some steps take on two quiet cores."""
    return duration_s(schedule) + sum(facts_of(step).seconds for step in schedule)


def whole_s(schedule: Schedule) -> float:
    """The seconds from the start of the cluster to the verdict, on two quiet cores."""
    known = _facts()
    return known[_BEFORE].seconds + steps_s(schedule) + known[_AFTER].seconds


@cache
def _facts() -> dict[str, StepFacts]:
    return {
        name: StepFacts(
            seconds=float(entry["seconds"]),
            proof=entry.get("proof", ""),
            stays=Stays(entry.get("stays", Stays.STEP)),
        )
        for name, entry in tomllib.loads(_FILE.read_text(encoding="utf-8")).items()
    }
