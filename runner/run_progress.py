"""How far a run is, and how long it will take."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from reports.model.run_record import Planned
from runner.config import RunConfig

if TYPE_CHECKING:
    from runner.run_record_writer import RunRecordWriter


def estimated_s(planned: Iterable[Planned], config: RunConfig) -> float:
    """The seconds that experiments take together: scenarios and cases run side by side, each in their lanes."""
    scenarios_s = cases_s = 0.0
    for each in planned:
        if each.case:
            cases_s += each.expected_s
        else:
            scenarios_s += each.expected_s
    return max(scenarios_s / config.lanes, cases_s / config.case_lanes)


def summed_up(planned: Collection[Planned], config: RunConfig) -> str:
    """How many experiments there are, and how long they will take."""
    scenarios = [each for each in planned if not each.case]
    controls, cases = sum(each.control for each in scenarios), len(planned) - len(scenarios)
    parts, lanes = [], 0
    if scenarios:
        parts.append(f"{len(scenarios)} scenarios, {controls} of them controls")
        lanes += config.lanes
    if cases:
        parts.append(f"{cases} protocol cases")
        lanes += config.case_lanes
    minutes = max(estimated_s(planned, config) / 60, 1)
    return f"{', and '.join(parts) or 'nothing'}: about {minutes:.0f} min, in {lanes} lane{'' if lanes == 1 else 's'}"


class RunProgress:
    """The live line of a whole run: experiments with a verdict, time so far and time left."""

    def __init__(self, record: RunRecordWriter) -> None:
        self._record = record
        self._began = time.monotonic()

    def line(self) -> str:
        """For instance `112 of 325 have ended │ 3.5 min, about 8 min left`."""
        planned, ended = self._record.planned, self._record.ended
        minutes = (time.monotonic() - self._began) / 60
        left = [each for key, each in planned.items() if key not in ended]
        left_min = estimated_s(left, self._record.config) / 60
        return f"{len(ended)} of {len(planned)} have ended │ {minutes:.1f} min, about {left_min:.0f} min left"
