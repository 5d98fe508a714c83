"""What an upgrade cost its producers, in one sentence for those who run the applications.

It names the longest stop of a producer in all stages after the first, in which nothing was changed yet. An application
needs a restart, or a new producer, where this suite had to replace one, and where one committed nothing any more up to the
end. Each figure of each stage is in the report's tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from reports.model.report import Report
from reports.model.upgrade import StageFigures, UpgradeReport, UpgradeStage
from reports.model.wording import counted, seconds

#: Times are rounded to milliseconds.
ROUNDING_S = 0.002


@dataclass(frozen=True, slots=True, kw_only=True)
class _StageCost:
    """The figures of one client in one stage. `began_in` is the stage in which the longest stop began."""

    stage: str
    began_in: str
    client: str
    figures: StageFigures
    stuck: bool


def upgrade_cost(report: Report) -> str:
    """The sentence on all upgrades of a report together; empty without an upgrade that has figures."""
    upgrades = [each.upgrade for each in report.scenarios if each.upgrade is not None]
    costs = [each for upgrade in upgrades for each in _costs(upgrade, of_baseline=False)]
    longest = _longest(costs)
    if longest is None:
        return ""
    other = _longest([each for upgrade in upgrades for each in _costs(upgrade, of_baseline=True)])
    compared = f"; in the {upgrades[0].baseline_word}: {_stop(other)}" if other else ""
    return f"A producer stood still for at most {_stop(longest)}{compared}. {_restarts(costs)}"


def _costs(upgrade: UpgradeReport, *, of_baseline: bool) -> Iterator[_StageCost]:
    """The figures of every stage but the first."""
    for stage in upgrade.stages[1:]:
        for each in stage.clients:
            figures = each.baseline if of_baseline else each.figures
            if figures is not None:
                yield _StageCost(
                    stage=stage.name,
                    began_in=stage.name if of_baseline else _stage_at(upgrade, figures.gap_began_s, stage),
                    client=each.client,
                    figures=figures,
                    stuck=stage is upgrade.stages[-1] and _spans(figures, stage),
                )


def _stage_at(upgrade: UpgradeReport, at_s: float | None, otherwise: UpgradeStage) -> str:
    """The name of the stage of a time."""
    holding = (each.name for each in upgrade.stages if at_s is not None and each.began_s <= at_s < each.ended_s)
    return next(holding, otherwise.name)


def _spans(figures: StageFigures, stage: UpgradeStage) -> bool:
    """Whether a producer committed nothing in a whole stage."""
    if figures.gap_s is None or figures.gap_began_s is None:
        return False
    ended_s = figures.gap_began_s + figures.gap_s
    return figures.gap_began_s <= stage.began_s + ROUNDING_S and ended_s >= stage.ended_s - ROUNDING_S


def _longest(costs: list[_StageCost]) -> _StageCost | None:
    """The cost with the longest stop, in the last of the stages that it spans."""
    stops = [each for each in reversed(costs) if each.figures.gap_s is not None]
    return max(stops, key=lambda each: each.figures.gap_s or 0.0, default=None)


def _stop(cost: _StageCost) -> str:
    where = cost.stage if cost.began_in == cost.stage else f"{cost.began_in} to {cost.stage}"
    return f"{seconds(cost.figures.gap_s)} ({', '.join(each for each in (where, cost.client) if each)})"


def _restarts(costs: list[_StageCost]) -> str:
    """Whether applications need a restart."""
    total = sum(each.figures.replaced for each in costs)
    stuck = ", ".join(dict.fromkeys(each.client or "one client" for each in costs if each.stuck))
    if not total and not stuck:
        return "No producer was replaced, so no application needs a restart."
    where = ", ".join(dict.fromkeys(each.stage for each in costs if each.figures.replaced))
    had_to = f"{counted(total, 'producer')} had to be replaced ({where})" if total else "No producer was replaced"
    stood = f", and one of {stuck} stood still up to the end" if stuck else ""
    return f"{had_to}{stood}: applications may need a restart."
