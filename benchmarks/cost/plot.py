"""Draws curves over settings: equal distances between settings, and a logarithmic axis of values. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.measuring.table import number
from reports.formats.charts.shapes import CHARACTER, LEFT, RIGHT, WIDTH, Drawing, LineShape, PathShape, TextShape

TOP, PLOT_HEIGHT, AXIS_HEIGHT = 44, 240, 44
BASE = TOP + PLOT_HEIGHT
#: The length of a curve's stroke in the legend.
KEY = 22


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotCurve:
    """A value above zero for each setting; `spread` has the least and the greatest one of each. `kind` is its colour."""

    name: str
    kind: str
    values: tuple[float, ...]
    spread: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """Curves over the same named settings. `breaks` are the places at which settings of another kind begin."""

    settings: tuple[str, ...]
    axis: str
    unit: str
    curves: tuple[PlotCurve, ...]
    breaks: tuple[int, ...] = ()

    def draw(self) -> Drawing:
        """The finished chart."""
        return Drawing(
            height=BASE + AXIS_HEIGHT,
            boxes=(),
            lines=tuple(self._lines()),
            texts=tuple(self._texts()),
            paths=tuple(self._paths()),
            description=self.described(),
        )

    def described(self) -> str:
        """The curves in words."""
        return " ".join(
            f"{curve.name} ({self.unit}): "
            + ", ".join(f"{number(value)} at {name}" for name, value in zip(self.settings, curve.values, strict=True))
            + "."
            for curve in self.curves
        )

    @property
    def _powers(self) -> range:
        """The powers of ten between which every value lies."""
        seen = [*(value for each in self.curves for value in each.values)]
        seen += [value for each in self.curves for ends in each.spread for value in ends]
        low = math.floor(math.log10(min(seen)))
        return range(low, max(math.ceil(math.log10(max(seen))), low + 1) + 1)

    def _x(self, place: int) -> float:
        return round(LEFT + (place + 0.5) / len(self.settings) * (WIDTH - LEFT - RIGHT), 1)

    def _y(self, value: float) -> float:
        low, high = self._powers[0], self._powers[-1]
        return round(BASE - (math.log10(value) - low) / (high - low) * PLOT_HEIGHT, 1)

    def _lines(self) -> Iterator[LineShape]:
        for power in self._powers:
            y = self._y(10.0**power)
            yield LineShape(x1=LEFT, y1=y, x2=WIDTH - RIGHT, y2=y, kind="axis" if power == self._powers[0] else "grid")
        for at, curve in self._legend():
            yield LineShape(x1=at, y1=TOP - 20, x2=at + KEY, y2=TOP - 20, kind=curve.kind)

    def _legend(self) -> Iterator[tuple[float, PlotCurve]]:
        at = float(LEFT)
        for curve in self.curves:
            yield at, curve
            at += KEY + 6 + len(curve.name) * CHARACTER + 16

    def _texts(self) -> Iterator[TextShape]:
        for power in self._powers:
            yield TextShape(x=LEFT - 6, y=self._y(10.0**power) + 4, text=f"{10.0**power:g}", anchor="end")
        for place, name in enumerate(self.settings):
            yield TextShape(x=self._x(place), y=BASE + 16, text=name)
        yield TextShape(x=(LEFT + WIDTH - RIGHT) / 2, y=BASE + 36, text=self.axis)
        yield TextShape(x=LEFT - 6, y=TOP - 16, text=self.unit, anchor="end")
        for curve in self.curves:
            # A curve with spread stands alone, so its values have room.
            for place in range(len(curve.spread)):
                value = curve.values[place]
                yield TextShape(x=self._x(place) + 8, y=self._y(value) - 4, text=number(value), anchor="start")
        for at, curve in self._legend():
            yield TextShape(x=at + KEY + 6, y=TOP - 16, text=curve.name, anchor="start")

    def _paths(self) -> Iterator[PathShape]:
        for curve in self.curves:
            steps = ("M" if place in (0, *self.breaks) else "L" for place in range(len(self.settings)))
            points = (f"{self._x(place):g} {self._y(value):g}" for place, value in enumerate(curve.values))
            yield PathShape(d="".join(map("".join, zip(steps, points, strict=True))), kind=curve.kind)
            whiskers = "".join(self._whisker(place, *ends) for place, ends in enumerate(curve.spread))
            if whiskers:
                yield PathShape(d=whiskers, kind=curve.kind)

    def _whisker(self, place: int, least: float, most: float) -> str:
        x, low, high = self._x(place), self._y(least), self._y(most)
        return f"M{x - 4:g} {low:g}h8M{x:g} {low:g}V{high:g}M{x - 4:g} {high:g}h8"


def curve_of(name: str, kind: str, values: Sequence[float | None]) -> PlotCurve:
    """A curve without spread. Raises ValueError for a value that is missing or not above zero."""
    known = [value for value in values if value]
    if len(known) != len(values):
        raise ValueError(f"{name} has no value for every setting: {list(values)}")
    return PlotCurve(name=name, kind=kind, values=tuple(known))
