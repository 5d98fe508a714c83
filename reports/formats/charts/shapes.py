"""The shapes that a chart is made of, in pixels of a fixed box that the page scales as a whole."""

from __future__ import annotations

from dataclasses import dataclass

#: The box of every chart, with room for labels on the left; equal, so that charts below each other share their time.
WIDTH, LEFT, RIGHT = 960, 104, 14
#: Average width of a character at the chart's font size of 11 px, on the safe side.
CHARACTER = 6.4


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A rectangle with a class and a tooltip."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A label; `anchor` is start, middle or end."""

    x: float
    y: float
    text: str
    anchor: str = "middle"
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A straight line."""

    x1: float
    y1: float
    x2: float
    y2: float
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """A path with a class."""

    d: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A finished chart."""

    height: float
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    texts: tuple[Text, ...]
    paths: tuple[Path, ...]
    description: str
    width: int = WIDTH
