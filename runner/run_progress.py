"""How far a run is, and how long it will take."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import TYPE_CHECKING

from reports.model.run_record import Planned

if TYPE_CHECKING:
    from runner.run_record_writer import RunRecordWriter


def summed_up(planned: Collection[Planned], lanes: int) -> str:
    """How many experiments there are, and how long they will take in so many lanes."""
    scenarios = [each for each in planned if not each.case]
    controls, cases = sum(each.control for each in scenarios), len(planned) - len(scenarios)
    parts = [f"{len(scenarios)} scenarios, {controls} of them controls"] if scenarios else []
    parts += [f"{cases} protocol cases"] if cases else []
    minutes = max(sum(each.expected_s for each in planned) / lanes / 60, 1)
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
        left_s = sum(each.expected_s for key, each in planned.items() if key not in ended) / self._record.config.lanes
        return f"{len(ended)} of {len(planned)} have ended │ {minutes:.1f} min, about {left_s / 60:.0f} min left"
