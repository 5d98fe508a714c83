"""Draw a number per run, the oldest run on the left: bars by decision, or lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reports.formats.charts.shapes import (
    LEFT,
    RIGHT,
    WIDTH,
    Drawing,
    LineShape,
    PathShape,
    TextShape,
    nice,
    x_of,
)
from reports.model.trend import TrendRun
from verification.vocabulary.verdict import Decision

TOP, PLOT_HEIGHT, AXIS_HEIGHT = 24, 110, 24
BASE = TOP + PLOT_HEIGHT
#: From this duration on the axis is in minutes.
MINUTES_FROM_S = 120
TICKS_MAX = 12
#: The colours of outcomes in other charts.
KINDS = {Decision.GO: "ok", Decision.NO_GO: "fail", Decision.UNDECIDED: "info"}


def draw_durations(runs: Sequence[TrendRun]) -> Drawing:
    """The duration of each run, as a bar in the colour of its decision."""
    longest = max(each.duration_s for each in runs)
    unit, divisor = ("min", 60.0) if longest >= MINUTES_FROM_S else ("s", 1.0)
    top = nice(longest / divisor)
    drawn: dict[str, list[str]] = {kind: [] for kind in KINDS.values()}
    for place, run in enumerate(runs):
        x, end = x_of(place, len(runs)), x_of(place + 1, len(runs))
        width = max(round((end - x) * 0.85, 1), 0.8)
        height = round(max(run.duration_s, 0.0) / divisor / top * PLOT_HEIGHT, 1)
        drawn[KINDS[run.decision]].append(f"M{x:g} {BASE:g}h{width:g}v{-height:g}h{-width:g}z")
    shortest = min(each.duration_s for each in runs)
    return _drawing(
        runs,
        top,
        unit,
        tuple(PathShape(d="".join(each), kind=kind) for kind, each in drawn.items() if each),
        f"{len(runs)} runs; the shortest took {shortest / divisor:.1f} {unit}, the longest {longest / divisor:.1f} {unit}.",
    )


def draw_coverage(runs: Sequence[TrendRun]) -> Drawing:
    """Requirements tested by each run as a solid line, scenarios and cases tried as a dashed one."""
    tested, tried = [each.tested for each in runs], [each.tried for each in runs]
    top = nice(max(*tested, *tried, 1))
    paths = (_steps(tried, top, "high"), _steps(tested, top, "stable"))
    description = (
        f"{len(runs)} runs; between {min(tested)} and {max(tested)} requirements tested, "
        f"between {min(tried)} and {max(tried)} scenarios and cases tried."
    )
    return _drawing(runs, top, "number", paths, description)


def _steps(values: Sequence[int], top: float, kind: str) -> PathShape:
    """A line with one level step per run."""
    commands = []
    for place, value in enumerate(values):
        y = round(BASE - value / top * PLOT_HEIGHT, 1)
        x, end = x_of(place, len(values)), x_of(place + 1, len(values))
        commands.append(f"{'V' if place else f'M{x:g} '}{y:g}H{end:g}")
    return PathShape(d="".join(commands), kind=kind)


def _drawing(
    runs: Sequence[TrendRun], top: float, unit: str, paths: tuple[PathShape, ...], description: str
) -> Drawing:
    return Drawing(
        height=BASE + AXIS_HEIGHT,
        boxes=(),
        lines=tuple(_grid()),
        texts=(*_values(top, unit), *_numbers(runs)),
        paths=paths,
        description=description,
    )


def _grid() -> Iterator[LineShape]:
    for share in (0.0, 0.5, 1.0):
        y = BASE - share * PLOT_HEIGHT
        yield LineShape(x1=LEFT, y1=y, x2=WIDTH - RIGHT, y2=y, kind="axis" if share == 0 else "grid")


def _values(top: float, unit: str) -> Iterator[TextShape]:
    for share in (0.0, 0.5, 1.0):
        y = BASE - share * PLOT_HEIGHT + 4
        yield TextShape(x=LEFT - 6, y=y, text=f"{share * top:g}", anchor="end")
    yield TextShape(x=LEFT - 6, y=TOP - 10, text=unit, anchor="end", kind="unit")


def _numbers(runs: Sequence[TrendRun]) -> Iterator[TextShape]:
    """The numbers of some runs below the axis."""
    step = -(-len(runs) // TICKS_MAX)
    for place in range(0, len(runs), step):
        middle = (x_of(place, len(runs)) + x_of(place + 1, len(runs))) / 2
        yield TextShape(x=round(middle, 1), y=BASE + 15, text=f"#{runs[place].number}")
