"""Put the figures of a baseline next to those of an upgrade: of its control, or of another upgrade.

The control is an upgrade between equal releases (`--from X --to X`): the same restarts without a change of release. What
is worse than in the control is the cost of the upgrade. The scenario with the same id is compared, else the first one:
another seed kills another node, but restarts the same number. Stages are matched by name and occurrence, and clients by
name. No verdict depends on the figures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from reports.comparing.baseline import BaselineStage, BaselineUpgrade, Outcomes
from reports.model.report import ScenarioReport
from reports.model.upgrade import StageFigures, UpgradeStage

CONTROL, BASELINE = "control", "baseline"
Stage = TypeVar("Stage", UpgradeStage, BaselineStage)


def with_figures(scenario: ScenarioReport, outcomes: Outcomes) -> ScenarioReport:
    """The scenario with the figures of the baseline, unchanged when one of them is no upgrade."""
    upgrade, other = scenario.upgrade, _chosen(scenario.key, outcomes.upgrades)
    if upgrade is None or other is None:
        return scenario
    theirs = dict(_by_occurrence(other.stages))
    stages = tuple(_compared(stage, theirs.get(key)) for key, stage in _by_occurrence(upgrade.stages))
    word = CONTROL if other.source == other.target else BASELINE
    return replace(scenario, upgrade=replace(upgrade, stages=stages, baseline=outcomes.side.title, baseline_word=word))


def _chosen(key: str, upgrades: tuple[BaselineUpgrade, ...]) -> BaselineUpgrade | None:
    same = (each for each in upgrades if each.id == key)
    return next(same, upgrades[0] if upgrades else None)


def _by_occurrence(stages: Iterable[Stage]) -> Iterator[tuple[tuple[str, int], Stage]]:
    """Each stage by its name and how often that was there before."""
    seen: Counter[str] = Counter()
    for stage in stages:
        yield (stage.name, seen[stage.name]), stage
        seen[stage.name] += 1


def _compared(stage: UpgradeStage, other: BaselineStage | None) -> UpgradeStage:
    figures: dict[str, StageFigures] = {each.client: each.figures for each in other.clients} if other else {}
    return replace(stage, clients=tuple(replace(each, baseline=figures.get(each.client)) for each in stage.clients))
