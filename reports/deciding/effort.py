"""How much was tried behind a pass: seeds, faults, operations during them, and the floor that was reached most narrowly.

A pass says that nothing was found where something was tried. How much that was stands next to it, because a pass of one
seed and one fault is weaker than one of a night.
"""

from __future__ import annotations

from collections.abc import Iterable

from reports.model.protocol_case import Tried
from reports.model.report import ScenarioReport
from reports.model.wording import counted, number
from verification.vocabulary.verdict import CoverageItem

#: The coverage items that count operations during faults, with hyphens.
DURING = ("attempted-during", "during")
#: A smaller floor, such as one fault, is reached or not; its share says nothing.
NARROW_MIN = 10


def effort(scenario: ScenarioReport) -> str:
    """The effort behind one scenario, in one line."""
    parts = [] if scenario.seed is None else [f"seed {scenario.seed}"]
    if scenario.faults:
        parts.append(f"{_confirmed(scenario)} of {counted(len(scenario.faults), 'fault')} confirmed")
    for item in scenario.coverage:
        if _is_during(item.name):
            parts.append(f"{number(item.have)} operations during faults ({number(item.need)} needed)")
    if (narrow := narrowest(scenario)) is not None:
        parts.append(f"closest to its minimum: {said(narrow)}")
    return "; ".join(parts)


def narrowest(scenario: ScenarioReport) -> CoverageItem | None:
    """The floor that was reached most narrowly, or missed most; None without floors that have a share."""
    scaled = [each for each in scenario.coverage if each.need >= NARROW_MIN or not each.met]
    return min(scaled, key=lambda each: each.have / max(each.need, 1), default=None)


def said(item: CoverageItem) -> str:
    """A floor in words."""
    return f"{number(item.have)} {item.text or item.name}, {number(item.need)} needed"


def effort_together(tried: Iterable[Tried]) -> str:
    """The seeds, faults and operations behind several passes; cases have none of them."""
    scenarios = [each for each in tried if isinstance(each, ScenarioReport)]
    seeds = sorted({each.seed for each in scenarios if each.seed is not None})
    parts = [f"seed{'' if len(seeds) == 1 else 's'} {', '.join(map(str, seeds))}"] if seeds else []
    if faults := sum(map(_confirmed, scenarios)):
        during = sum(item.have for each in scenarios for item in each.coverage if _is_during(item.name))
        parts.append(f"{counted(faults, 'fault')}, {number(during)} operations during them")
    return "; ".join(parts)


def _confirmed(scenario: ScenarioReport) -> int:
    return sum(each.confirmed_s is not None for each in scenario.faults)


def _is_during(name: str) -> bool:
    return name.replace("_", "-") in DURING
