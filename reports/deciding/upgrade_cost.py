"""What an upgrade cost its producers, in one sentence for those who run the applications.

A stage is compared with the baseline only in the report's tables: this sentence names the longest stop of all stages
after the first, and the instances that had to be replaced. A producer that is replaced by this suite is an application
that must create a new producer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from reports.model.report import Report
from reports.model.upgrade import StageFigures, UpgradeReport
from reports.model.wording import counted, seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class _StageCost:
    """The figures of one client in one stage."""

    stage: str
    client: str
    figures: StageFigures


def upgrade_cost(report: Report) -> str:
    """The sentence on all upgrades of a report together; empty without an upgrade that has figures."""
    upgrades = [each.upgrade for each in report.scenarios if each.upgrade is not None]
    costs = [each for upgrade in upgrades for each in _costs(upgrade, of_baseline=False)]
    longest = _longest(costs)
    if longest is None:
        return ""
    with_which = _longest([each for upgrade in upgrades for each in _costs(upgrade, of_baseline=True)])
    compared = f"; in the {upgrades[0].baseline_word}: {_stop(with_which)}" if with_which else ""
    return f"A producer stood still for at most {_stop(longest)}{compared}. {_replaced(costs)}"


def _costs(upgrade: UpgradeReport, *, of_baseline: bool) -> Iterator[_StageCost]:
    """The figures of every stage but the first, in which nothing was changed yet."""
    for stage in upgrade.stages[1:]:
        for each in stage.clients:
            figures = each.baseline if of_baseline else each.figures
            if figures is not None:
                yield _StageCost(stage=stage.name, client=each.client, figures=figures)


def _longest(costs: list[_StageCost]) -> _StageCost | None:
    return max(
        (each for each in costs if each.figures.gap_s is not None),
        key=lambda each: each.figures.gap_s or 0.0,
        default=None,
    )


def _stop(cost: _StageCost) -> str:
    return f"{seconds(cost.figures.gap_s)} ({', '.join(each for each in (cost.stage, cost.client) if each)})"


def _replaced(costs: list[_StageCost]) -> str:
    total = sum(each.figures.replaced for each in costs)
    if not total:
        return "No producer was replaced, so no application needs a restart."
    where = ", ".join(dict.fromkeys(each.stage for each in costs if each.figures.replaced))
    verb = "was" if total == 1 else "were"
    had_to = "an application must create a new producer there, or restart"
    return f"{counted(total, 'producer')} {verb} replaced ({where}): {had_to}."
