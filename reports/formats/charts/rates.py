"""Draw the rates chart: coordinates of bars, bands, labels and curves, which the template only prints.

The chart has up to four parts: a lane per fault window with its label, operations per second as stacked bars by outcome,
the rows of an upgrade (`charts.releases`), and the lag of the last stable offset. Fault windows are shaded; a line marks
the confirmation of a fault. Coordinates are pixels of a fixed box that the page scales.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from reports.formats.charts import releases
from reports.formats.charts.shapes import (
    CHARACTER,
    LEFT,
    RIGHT,
    WIDTH,
    BoxShape,
    Drawing,
    LineShape,
    PathShape,
    TextShape,
    nice,
    x_of,
)
from reports.model.timeline import Bin, Lag, Timeline, Window
from reports.model.upgrade import UpgradeReport
from reports.model.wording import one_line, seconds

PLOT_HEIGHT, LAG_HEIGHT, LANE_HEIGHT, AXIS_HEIGHT, PHASE_HEIGHT, GAP = 130, 56, 19, 20, 18, 26
#: More fault windows are shaded but not labelled; the table of faults has all of them.
LANES_MAX = 8
#: Bars end below the top, so that the shade of a fault window is visible above them.
HEADROOM = 1.08
#: Distances between the marks of the time axis, in seconds.
STEPS_S = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)
TICKS_MAX = 13


@dataclass(frozen=True, slots=True, kw_only=True)
class _RateLayout:
    """The time axis and the heights of the parts."""

    end_s: float
    lanes: int
    phases: bool
    lag: bool
    upgrade_height: float

    @property
    def top(self) -> float:
        return self.lanes * LANE_HEIGHT + (20 if self.upgrade_height else 12)

    @property
    def base(self) -> float:
        return self.top + PLOT_HEIGHT

    @property
    def phase_top(self) -> float:
        return self.base + AXIS_HEIGHT

    @property
    def upgrade_top(self) -> float:
        return self.phase_top + (PHASE_HEIGHT if self.phases else 0)

    @property
    def lag_top(self) -> float:
        return self.upgrade_top + self.upgrade_height + GAP

    @property
    def lag_base(self) -> float:
        return self.lag_top + LAG_HEIGHT

    @property
    def height(self) -> float:
        return (self.lag_base if self.lag else self.upgrade_top + self.upgrade_height) + 6

    def x(self, at_s: float) -> float:
        """The x coordinate of a time."""
        return x_of(at_s, self.end_s)


def draw(timeline: Timeline, *, phases: bool = True, upgrade: UpgradeReport | None = None) -> Drawing:
    """The chart of one scenario; without phases it is small enough for hundreds of passed scenarios.

    That of an upgrade has stages instead of phases.
    """
    if upgrade is not None:
        timeline = _of_upgrade(timeline, upgrade)
    elif not phases:
        timeline = replace(timeline, phases=())
    layout = _RateLayout(
        # Up to the end of the last bin, so that its bar is as wide as the others.
        end_s=(timeline.end_s // timeline.bin_s + 1) * timeline.bin_s,
        lanes=min(len(timeline.windows), LANES_MAX),
        phases=bool(timeline.phases),
        lag=bool(timeline.lags),
        upgrade_height=releases.height(upgrade),
    )
    rows = releases.UpgradeRows(upgrade=upgrade, top=layout.upgrade_top, x=layout.x)
    rate_max = nice(HEADROOM * max((_total(each) / timeline.bin_s for each in timeline.bins), default=1.0))
    lag_max = nice(max((each.records for each in timeline.lags), default=1))
    lag_boxes, lag_lines, lag_texts = _lag_axis(layout, lag_max) if layout.lag else ((), (), ())
    return Drawing(
        height=layout.height,
        boxes=(
            *_bands(layout, timeline.windows),
            *_gaps(layout, timeline),
            *_phases(layout, timeline),
            *rows.boxes(),
            *lag_boxes,
        ),
        lines=(*_grid(layout, rate_max), *lag_lines, *_marks(layout, timeline.windows)),
        texts=(*_axis_texts(layout, rate_max), *_labels(layout, timeline), *rows.texts(), *lag_texts),
        paths=(*_bars(layout, timeline, rate_max), *((_curve(layout, timeline, lag_max),) if layout.lag else ())),
        description=" ".join([_description(timeline), *([releases.described(upgrade)] if upgrade else [])]),
    )


def _of_upgrade(timeline: Timeline, upgrade: UpgradeReport) -> Timeline:
    """The timeline up to the end of the last stage, without phases, and without the faults that its rows show.

    Operations follow each other without a pause, so their windows would shade everything.
    """
    end_s = upgrade.stages[-1].ended_s if upgrade.stages else timeline.end_s
    return replace(
        timeline,
        end_s=end_s,
        phases=(),
        bins=tuple(each for each in timeline.bins if each.at_s <= end_s),
        lags=tuple(each for each in timeline.lags if each.at_s <= end_s),
        windows=tuple(each for each in timeline.windows if each.step not in upgrade.operations),
    )


def _total(each: Bin) -> int:
    return each.ok + each.fail + each.info


def _bands(layout: _RateLayout, windows: tuple[Window, ...]) -> Iterator[BoxShape]:
    for index, window in enumerate(windows):
        start, end = layout.x(window.began_s), layout.x(_end(layout, window))
        top = index * LANE_HEIGHT + 2 if index < LANES_MAX else layout.top
        healed = "never healed" if window.healed_s is None else f"healed at {seconds(window.healed_s)}"
        title = f"{window.label}: began at {seconds(window.began_s)}, {healed}"
        bottom = layout.lag_base if layout.lag else layout.base
        yield BoxShape(
            x=start, y=top, width=max(round(end - start, 1), 1.5), height=bottom - top, kind="band", title=title
        )


def _end(layout: _RateLayout, window: Window) -> float:
    return layout.end_s if window.healed_s is None else window.healed_s


def _marks(layout: _RateLayout, windows: tuple[Window, ...]) -> Iterator[LineShape]:
    for window in windows:
        if window.confirmed_s is not None:
            x = layout.x(window.confirmed_s)
            yield LineShape(x1=x, y1=layout.top, x2=x, y2=layout.base, kind="held")


def _gaps(layout: _RateLayout, timeline: Timeline) -> Iterator[BoxShape]:
    """The longest time without a commit of each fault, as a bar on the axis."""
    for each in timeline.unavailability:
        start, end = layout.x(each.gap_began_s), layout.x(each.gap_ended_s)
        title = f"step {each.step}: no commit for {seconds(each.gap_s)}"
        yield BoxShape(
            x=start, y=layout.base - 4, width=max(round(end - start, 1), 1.5), height=4, kind="gap", title=title
        )


def _bars(layout: _RateLayout, timeline: Timeline, rate_max: float) -> Iterator[PathShape]:
    """One path per outcome, because one rectangle per bar would be most of the page. A table has the numbers."""
    drawn: dict[str, list[str]] = {"ok": [], "fail": [], "info": []}
    for each in timeline.bins:
        x = layout.x(each.at_s)
        width = max(round(layout.x(each.at_s + timeline.bin_s) - x - 1, 1), 0.8)
        y = layout.base
        for kind, count in (("ok", each.ok), ("fail", each.fail), ("info", each.info)):
            if count:
                height = round(count / timeline.bin_s / rate_max * PLOT_HEIGHT, 1)
                drawn[kind].append(f"M{x:g} {y:g}h{width:g}v{-height:g}h{-width:g}z")
                y = round(y - height, 1)
    yield from (PathShape(d="".join(each), kind=kind) for kind, each in drawn.items() if each)


def _phases(layout: _RateLayout, timeline: Timeline) -> Iterator[BoxShape]:
    for index, phase in enumerate(timeline.phases):
        start, end = layout.x(phase.began_s), layout.x(phase.ended_s)
        title = f"{phase.name}: {seconds(phase.ended_s - phase.began_s)}"
        kind = "phase odd" if index % 2 else "phase"
        width = max(round(end - start, 1), 0.8)
        yield BoxShape(x=start, y=layout.phase_top, width=width, height=PHASE_HEIGHT - 2, kind=kind, title=title)


def _step_s(end_s: float) -> float:
    return next((step for step in STEPS_S if end_s / step <= TICKS_MAX), end_s / TICKS_MAX)


def _grid(layout: _RateLayout, rate_max: float) -> Iterator[LineShape]:
    for share in (0.0, 0.5, 1.0) if rate_max > 1 else (0.0, 1.0):
        y = round(layout.base - share * PLOT_HEIGHT, 1)
        yield LineShape(x1=LEFT, y1=y, x2=WIDTH - RIGHT, y2=y, kind="axis" if share == 0 else "grid")


def _axis_texts(layout: _RateLayout, rate_max: float) -> Iterator[TextShape]:
    for share in (0.0, 0.5, 1.0) if rate_max > 1 else (0.0, 1.0):
        y = round(layout.base - share * PLOT_HEIGHT + 4, 1)
        yield TextShape(x=LEFT - 6, y=y, text=f"{share * rate_max:g}", anchor="end")
    yield TextShape(x=LEFT - 6, y=layout.top - 8, text="op/s", anchor="end", kind="unit")
    step = _step_s(layout.end_s)
    at_s = 0.0
    while at_s <= layout.end_s:
        x = layout.x(at_s)
        yield TextShape(x=x, y=layout.base + 14, text=f"{at_s:g} s", anchor="end" if x > WIDTH - 30 else "middle")
        at_s += step


def _labels(layout: _RateLayout, timeline: Timeline) -> Iterator[TextShape]:
    for index, window in enumerate(timeline.windows[:LANES_MAX]):
        yield _label(layout, window, y=index * LANE_HEIGHT + 15)
    for phase in timeline.phases:
        start, end = layout.x(phase.began_s), layout.x(phase.ended_s)
        if end - start > len(phase.name) * CHARACTER:
            middle = round((start + end) / 2, 1)
            yield TextShape(x=middle, y=layout.phase_top + 12, text=phase.name, kind="phase-name")


def _label(layout: _RateLayout, window: Window, *, y: float) -> TextShape:
    """The label of a fault: right of its start if there is room, else left of its end; cut if too long."""
    start, end = layout.x(window.began_s) + 5, layout.x(_end(layout, window)) - 5
    to_right, to_left = WIDTH - RIGHT - start, end - LEFT
    rightwards = len(window.label) * CHARACTER <= to_right or to_right >= to_left
    room = int((to_right if rightwards else to_left) / CHARACTER)
    text = one_line(window.label, max(room, 4))
    return TextShape(
        x=round(start if rightwards else end, 1), y=y, text=text, anchor="start" if rightwards else "end", kind="fault"
    )


def _lag_axis(
    layout: _RateLayout, lag_max: float
) -> tuple[tuple[BoxShape, ...], tuple[LineShape, ...], tuple[TextShape, ...]]:
    top, base = layout.lag_top, layout.lag_base
    lines = tuple(
        LineShape(x1=LEFT, y1=y, x2=WIDTH - RIGHT, y2=y, kind=kind) for y, kind in ((base, "axis"), (top, "grid"))
    )
    texts = (
        TextShape(x=LEFT - 6, y=base + 4, text="0", anchor="end"),
        TextShape(x=LEFT - 6, y=top + 4, text=_short(lag_max), anchor="end"),
        TextShape(
            x=LEFT,
            y=top - 7,
            text="LSO lag: records above the last stable offset, worst partition",
            anchor="start",
            kind="unit",
        ),
    )
    return (), lines, texts


def _short(value: float) -> str:
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:g}{unit}"
    return f"{value:g}"


def _curve(layout: _RateLayout, timeline: Timeline, lag_max: float) -> PathShape:
    """A step line with a gap where no leader answered for more than 1.5 bins."""
    commands: list[str] = []
    before: Lag | None = None
    for lag in timeline.lags:
        x = layout.x(lag.at_s)
        y = round(layout.lag_base - min(lag.records / lag_max, 1.0) * LAG_HEIGHT, 1)
        gap = before is None or lag.at_s - before.at_s > 1.5 * timeline.bin_s
        commands.append(f"M{x:g} {y:g}" if gap else f"H{x:g}V{y:g}")
        before = lag
    return PathShape(d="".join(commands), kind="lag")


def _description(timeline: Timeline) -> str:
    ok, fail, info = (sum(getattr(each, name) for each in timeline.bins) for name in ("ok", "fail", "info"))
    faults = "; ".join(each.label for each in timeline.windows) or "no fault"
    return f"{ok} operations ok, {fail} fail, {info} info in {seconds(timeline.end_s)}. Fault windows: {faults}."
