"""A chart as an SVG file of its own, for pages in Markdown."""

from __future__ import annotations

from reports.formats.charts.colours import paint
from reports.formats.charts.shapes import Drawing
from reports.formats.templating import environment, without_blanks


def svg(drawing: Drawing, title: str) -> str:
    """The text of the file; equal drawings give equal bytes."""
    made = environment()
    made.globals.update(paint=paint)
    return without_blanks(made.get_template("chart.svg.j2").render(drawing=drawing, title=title))
