"""Draw the alerts that would have fired as rows of the lanes chart, on its time axis: each metric, and when it fired."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from reports.formats.charts.shapes import CHARACTER, LEFT, BoxShape, PathShape, TextShape
from reports.model.timeline import FiredAlert
from reports.model.wording import one_line, seconds

ROW_HEIGHT = 21
#: An alert that only counted once is visible too.
LEAST_WIDTH = 3.0
#: The mark of a firing, below the metric.
MARK_HEIGHT = 4
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
                y=self.top + (place + 1) * ROW_HEIGHT - MARK_HEIGHT,
                width=max(round(end - start, 1), LEAST_WIDTH),
                height=MARK_HEIGHT,
                kind="alert",
                title=f"{each.text}: {each.place}, from {seconds(each.began_s)}; at most {_most(each):g}",
            )

    def paths(self) -> Iterator[PathShape]:
        """The metric of each alert as steps from 0 to its highest value."""
        for place, each in enumerate(self.alerts):
            bottom = self.top + (place + 1) * ROW_HEIGHT - MARK_HEIGHT - 1
            height = (ROW_HEIGHT - MARK_HEIGHT - 4) / (_most(each) or 1.0)
            steps = "".join(f"H{self.x(at_s):g}V{round(bottom - value * height, 1):g}" for at_s, value in each.values)
            if steps:
                yield PathShape(d=f"M{self.x(0.0):g} {bottom:g}{steps}H{self.x(self.end_s):g}", kind="metric")

    def texts(self) -> Iterator[TextShape]:
        """The title of the rows, and the name of each alert."""
        if self.alerts:
            yield TextShape(
                x=LEFT,
                y=self.top - 6,
                text="Alerts that would have fired, below their metrics",
                anchor="start",
                kind="unit",
            )
        for place, each in enumerate(self.alerts):
            y = self.top + place * ROW_HEIGHT + 15
            yield TextShape(x=LEFT - 6, y=y, text=one_line(each.name, LABEL_MAX), anchor="end")


def _most(alert: FiredAlert) -> float:
    return max((value for _, value in alert.values), default=0.0)
