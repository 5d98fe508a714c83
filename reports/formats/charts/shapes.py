"""The shapes of a chart, in pixels of a fixed box that the page scales."""

from __future__ import annotations

import math
from dataclasses import dataclass

#: The box of every chart, with room for labels on the left. Equal widths give all charts the same time axis.
WIDTH, LEFT, RIGHT = 960, 104, 14
#: Average width of a character at the chart's font size of 11 px, on the safe side.
CHARACTER = 6.4
#: Round steps of an axis.
NICE = (1, 1.2, 1.6, 2, 3, 4, 5, 6, 8, 10)


def nice(value: float) -> float:
    """The next round value at which an axis can end."""
    value = max(value, 1.0)
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in NICE if step * power >= value * 0.9999)


def x_of(at_s: float, end_s: float) -> float:
    """The x coordinate of a time on an axis from 0 to `end_s`, clipped to the chart."""
    share = min(max(at_s / end_s, 0.0), 1.0)
    return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxShape:
    """A rectangle with a class and a tooltip."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextShape:
    """A label; `anchor` is start, middle or end."""

    x: float
    y: float
    text: str
    anchor: str = "middle"
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineShape:
    """A straight line."""

    x1: float
    y1: float
    x2: float
    y2: float
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PathShape:
    """A path with a class."""

    d: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A finished chart."""

    height: float
    boxes: tuple[BoxShape, ...]
    lines: tuple[LineShape, ...]
    texts: tuple[TextShape, ...]
    paths: tuple[PathShape, ...]
    description: str
    width: int = WIDTH
