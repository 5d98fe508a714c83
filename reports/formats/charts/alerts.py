"""Draw the alerts that would have fired as rows of the lanes chart, on its time axis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from reports.formats.charts.shapes import CHARACTER, LEFT, BoxShape, TextShape
from reports.model.timeline import FiredAlert
from reports.model.wording import one_line, seconds

ROW_HEIGHT = 17
#: An alert that only counted once is visible too.
LEAST_WIDTH = 3.0
LABEL_MAX = int((LEFT - 10) / CHARACTER)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRows:
    """A row per alert; `top` is that of the first row, `x` the coordinate of a time, `end_s` the end of the axis."""

    alerts: tuple[FiredAlert, ...]
    top: float
    x: Callable[[float], float]
    end_s: float

    def boxes(self) -> Iterator[BoxShape]:
        """The time from its first to its last firing."""
        for place, each in enumerate(self.alerts):
            start, end = self.x(each.began_s), self.x(self.end_s if each.ended_s is None else each.ended_s)
            yield BoxShape(
                x=start,
                y=self.top + place * ROW_HEIGHT + 4,
                width=max(round(end - start, 1), LEAST_WIDTH),
                height=ROW_HEIGHT - 8,
                kind="alert",
                title=f"{each.text}: {each.place}, from {seconds(each.began_s)}",
            )

    def texts(self) -> Iterator[TextShape]:
        """The title of the rows, and the name of each alert."""
        if self.alerts:
            yield TextShape(x=LEFT, y=self.top - 6, text="Alerts that would have fired", anchor="start", kind="unit")
        for place, each in enumerate(self.alerts):
            y = self.top + place * ROW_HEIGHT + 12
            yield TextShape(x=LEFT - 6, y=y, text=one_line(each.name, LABEL_MAX), anchor="end")
