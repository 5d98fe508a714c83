"""The plan of an upgrade in words, for `--plan`: stages, their steps, what proves each step, floors, and an estimate."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from chaos.schedule import Schedule, Step, stages
from runner.upgrades.step_facts import facts_of, steps_s, whole_s

if TYPE_CHECKING:
    from verification.vocabulary.experiment import Floor


def outlined(schedule: Schedule, floors: tuple[Floor, ...]) -> Iterator[str]:
    """The lines of a plan."""
    yield "before: load on the old release until it is steady"
    for stage, steps in stages(schedule):
        yield f"{stage or 'attack'}  ≈ {steps_s(steps):.0f} s"
        for words, same in groupby(steps, key=Step.describe):
            alike = list(same)
            yield f"    {f'{len(alike)} × ' if len(alike) > 1 else ''}{words}"
            yield f"        proof: {facts_of(alike[0]).proof}"
    yield "after: load on, then quiescence, capture of all topics and internal logs, judgement of the whole history"
    yield f"floors: {', '.join(f'{each.name} ≥ {each.need}' for each in floors)}"
    yield f"estimate: {whole_s(schedule) / 60:.1f} min on two quiet cores"
