"""Draw the lanes chart: operations per process, coordinators, leaders, high watermark and last stable offset.

It is below the chart of rates, on the same time axis. A lane per process has its operations as lines: thin if ok, thick
if failed, dashed if unknown. Then come the coordinator rows (`charts.coordinators`), a lane per partition whose
leader changed or was missing, and the alerts on metrics (`charts.alerts`). The last part has both offsets of the
partition with the largest lag. A vertical line marks the first example.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from reports.formats.charts import alerts as alert_drawing
from reports.formats.charts import coordinators as coordinator_drawing
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
    x_of,
)
from reports.model.timeline import Act, Curve, Lane, Point, Timeline
from reports.model.wording import number, one_line, seconds
from verification.vocabulary.history import NO_LEADER, UNSEEN

LANE_HEIGHT, LEADER_HEIGHT, OFFSETS_HEIGHT, GAP, TOP = 14, 17, 90, 26, 18
#: More lanes do not fit on a screen; `trace.json` has all of them.
LANES_MAX, LEADERS_MAX = 40, 6
#: Shorter lines are invisible.
STROKE_MIN = 1.2
LABEL_MAX = int((LEFT - 10) / CHARACTER)
#: Values in place of a broker (`verification.vocabulary.history`): the metadata had no leader, or no node answered.
LACKING = {NO_LEADER: "has no leader", UNSEEN: "no node answered"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _LaneLayout:
    """The time axis and the top of each part."""

    end_s: float
    lanes: int
    coordinators_height: float
    leaders: int
    alerts: int
    offsets: bool

    @property
    def coordinators_top(self) -> float:
        return TOP + self.lanes * LANE_HEIGHT + (GAP if self.coordinators_height else 0)

    @property
    def leaders_top(self) -> float:
        return self.coordinators_top + self.coordinators_height + (GAP if self.leaders else 0)

    @property
    def alerts_top(self) -> float:
        return self.leaders_top + self.leaders * LEADER_HEIGHT + (GAP if self.alerts else 0)

    @property
    def offsets_top(self) -> float:
        return self.alerts_top + self.alerts * alert_drawing.ROW_HEIGHT + (GAP if self.offsets else 0)

    @property
    def height(self) -> float:
        return self.offsets_top + (OFFSETS_HEIGHT if self.offsets else 0) + 8

    def x(self, at_s: float) -> float:
        """The x coordinate of a time."""
        return x_of(at_s, self.end_s)


def draw_lanes(timeline: Timeline, violation_s: float | None) -> Drawing:
    """The chart of one scenario; `violation_s` is the start of the first example's operation."""
    lanes, leaders, worst = timeline.lanes[:LANES_MAX], _led(timeline), _worst(timeline)
    coordinators = coordinator_drawing.chosen(timeline.coordinators)
    layout = _LaneLayout(
        end_s=(timeline.end_s // timeline.bin_s + 1) * timeline.bin_s,
        lanes=len(lanes),
        coordinators_height=coordinator_drawing.height(coordinators),
        leaders=len(leaders),
        alerts=len(timeline.alerts or ()),
        offsets=worst is not None,
    )
    part = coordinator_drawing.CoordinatorRows(coordinators=coordinators, top=layout.coordinators_top, x=layout.x)
    alerts = alert_drawing.AlertRows(
        alerts=timeline.alerts or (), top=layout.alerts_top, x=layout.x, end_s=layout.end_s
    )
    offsets = tuple(_offsets(layout, worst)) if worst else ()
    return Drawing(
        height=layout.height,
        boxes=(
            *_bands(layout, timeline),
            *_alive(layout, lanes),
            *part.boxes(),
            *_leaderships(layout, leaders),
            *alerts.boxes(),
        ),
        lines=(*_offset_lines(layout, worst), *_violation(layout, violation_s)),
        texts=(
            *_texts(layout, lanes, leaders, worst),
            *part.texts(),
            *_leadership_texts(layout, leaders),
            *alerts.texts(),
            *_marked(layout, violation_s),
        ),
        paths=(*_strokes(layout, lanes), *part.paths(), *alerts.paths(), *offsets),
        description=_description(
            lanes, tuple(coordinator_drawing.described(coordinators)), leaders, worst, violation_s
        ),
    )


def _led(timeline: Timeline) -> tuple[Curve, ...]:
    """The partitions whose leader changed or was missing, most changes first, then by name."""
    moved = [each for each in timeline.curves if len(each.leaders) > 1]
    return tuple(sorted(moved, key=lambda each: -len(each.leaders))[:LEADERS_MAX])


def _worst(timeline: Timeline) -> Curve | None:
    """The partition whose LSO was furthest behind its high watermark; among equals the first."""
    return max(timeline.curves, key=lambda each: max(map(_lag, each.points), default=-1), default=None)


def _lag(point: Point) -> int:
    return point.high_watermark - point.last_stable_offset


def _bands(layout: _LaneLayout, timeline: Timeline) -> Iterator[BoxShape]:
    for window in timeline.windows:
        end_s = layout.end_s if window.healed_s is None else window.healed_s
        start, end = layout.x(window.began_s), layout.x(end_s)
        yield BoxShape(
            x=start,
            y=TOP,
            width=max(round(end - start, 1), 1.5),
            height=layout.height - TOP - 8,
            kind="band",
            title=window.label,
        )


def _y(place: int) -> float:
    return TOP + place * LANE_HEIGHT + LANE_HEIGHT / 2


def _alive(layout: _LaneLayout, lanes: tuple[Lane, ...]) -> Iterator[BoxShape]:
    for place, lane in enumerate(lanes):
        start, end = layout.x(lane.began_s), layout.x(lane.ended_s)
        when = f"{seconds(lane.began_s)} to {seconds(lane.ended_s)}"
        title = f"{lane.role} {lane.process}: {when}, {len(lane.acts)} operations"
        yield BoxShape(
            x=start, y=_y(place) - 0.5, width=max(round(end - start, 1), 1), height=1, kind="alive", title=title
        )


def _strokes(layout: _LaneLayout, lanes: tuple[Lane, ...]) -> Iterator[PathShape]:
    for outcome in ("ok", "fail", "info"):
        drawn = [
            _stroke(layout, act, _y(place))
            for place, lane in enumerate(lanes)
            for act in lane.acts
            if act.outcome == outcome
        ]
        if drawn:
            yield PathShape(d="".join(drawn), kind=f"act {outcome}")


def _stroke(layout: _LaneLayout, act: Act, y: float) -> str:
    start = layout.x(act.began_s)
    return f"M{start:g} {y:g}h{max(round(layout.x(act.ended_s) - start, 1), STROKE_MIN):g}"


def _segments(curve: Curve, end_s: float) -> Iterator[tuple[float, float, int]]:
    """(from, to, leader) of each time span with equal samples."""
    began, leader = curve.points[0].at_s, curve.points[0].leader
    for point in curve.points[1:]:
        if point.leader != leader:
            yield began, point.at_s, leader
            began, leader = point.at_s, point.leader
    yield began, max(curve.points[-1].at_s, min(end_s, began)), leader


def _leaderships(layout: _LaneLayout, leaders: tuple[Curve, ...]) -> Iterator[BoxShape]:
    for place, curve in enumerate(leaders):
        y = layout.leaders_top + place * LEADER_HEIGHT + 2
        for began, ended, leader in _segments(curve, layout.end_s):
            start, end = layout.x(began), layout.x(ended)
            kind = "leaderless" if leader in LACKING else "leadership odd" if leader % 2 else "leadership"
            state = LACKING.get(leader, f"led by broker {leader}")
            title = f"{curve.place} {state}, {seconds(began)} to {seconds(ended)}"
            # A missing leader is a thin line, visible without colour.
            height = 3 if leader in LACKING else LEADER_HEIGHT - 4
            lift = (LEADER_HEIGHT - 4 - height) / 2
            yield BoxShape(
                x=start, y=y + lift, width=max(round(end - start, 1), 1), height=height, kind=kind, title=title
            )


def _leadership_texts(layout: _LaneLayout, leaders: tuple[Curve, ...]) -> Iterator[TextShape]:
    for place, curve in enumerate(leaders):
        y = layout.leaders_top + place * LEADER_HEIGHT + 12
        yield TextShape(x=LEFT - 6, y=y, text=_label(curve), anchor="end")
        for began, ended, leader in _segments(curve, layout.end_s):
            start, end = layout.x(began), layout.x(ended)
            text = f"broker {leader}"
            if leader not in LACKING and end - start > len(text) * CHARACTER:
                yield TextShape(x=round((start + end) / 2, 1), y=y, text=text, kind="on")


def _label(curve: Curve) -> str:
    tail = f"-{curve.partition}"
    return one_line(curve.topic, max(LABEL_MAX - len(tail), 4)) + tail


def _scale(curve: Curve) -> tuple[int, int]:
    known = [each for each in curve.points if each.high_watermark >= 0]
    low = min((min(each.high_watermark, each.last_stable_offset) for each in known), default=0)
    high = max((each.high_watermark for each in known), default=1)
    return max(low, 0), max(high, low + 1)


def _offsets(layout: _LaneLayout, curve: Curve) -> Iterator[PathShape]:
    low, high = _scale(curve)
    for kind, name in (("high", "high_watermark"), ("stable", "last_stable_offset")):
        commands: list[str] = []
        answered = False
        for point in curve.points:
            value = getattr(point, name)
            if value < 0:
                answered = False
                continue
            x = layout.x(point.at_s)
            y = round(layout.offsets_top + OFFSETS_HEIGHT * (1 - (value - low) / (high - low)), 1)
            commands.append(f"H{x:g}V{y:g}" if answered else f"M{x:g} {y:g}")
            answered = True
        yield PathShape(d="".join(commands), kind=kind)


def _offset_lines(layout: _LaneLayout, worst: Curve | None) -> Iterator[LineShape]:
    if worst is not None:
        for y, kind in ((layout.offsets_top, "grid"), (layout.offsets_top + OFFSETS_HEIGHT, "axis")):
            yield LineShape(x1=LEFT, y1=y, x2=WIDTH - RIGHT, y2=y, kind=kind)


def _violation(layout: _LaneLayout, at_s: float | None) -> Iterator[LineShape]:
    if at_s is not None:
        x = layout.x(at_s)
        yield LineShape(x1=x, y1=TOP - 4, x2=x, y2=layout.height - 8, kind="violation")


def _marked(layout: _LaneLayout, at_s: float | None) -> Iterator[TextShape]:
    if at_s is not None:
        x = layout.x(at_s)
        left = x > WIDTH / 2
        text = f"first example, {seconds(at_s)}"
        yield TextShape(
            x=x + (-5 if left else 5), y=TOP - 6, text=text, anchor="end" if left else "start", kind="violation"
        )


def _texts(
    layout: _LaneLayout, lanes: tuple[Lane, ...], leaders: tuple[Curve, ...], worst: Curve | None
) -> Iterator[TextShape]:
    for place, lane in enumerate(lanes):
        text = f"{one_line(lane.role, LABEL_MAX - 4)} {lane.process}"
        yield TextShape(x=LEFT - 6, y=_y(place) + 4, text=text, anchor="end")
    if leaders:
        yield TextShape(x=LEFT, y=layout.leaders_top - 6, text="Leaders that changed", anchor="start", kind="unit")
    if worst is not None:
        low, high = _scale(worst)
        top = layout.offsets_top
        title = f"Offsets of {worst.place}: high watermark dashed, last stable offset solid"
        yield TextShape(x=LEFT, y=top - 7, text=one_line(title, 120), anchor="start", kind="unit")
        yield TextShape(x=LEFT - 6, y=top + 4, text=number(high), anchor="end")
        yield TextShape(x=LEFT - 6, y=top + OFFSETS_HEIGHT + 4, text=number(low), anchor="end")


def _description(
    lanes: tuple[Lane, ...],
    coordinators: tuple[str, ...],
    leaders: tuple[Curve, ...],
    worst: Curve | None,
    violation_s: float | None,
) -> str:
    parts = [f"{len(lanes)} processes with {sum(len(each.acts) for each in lanes)} operations", *coordinators]
    for curve in leaders:
        leaders_of = ", ".join("no broker" if each in LACKING else f"broker {each}" for each in curve.leaders)
        parts.append(f"{curve.place} was led by {leaders_of}")
    if worst is not None:
        parts.append(
            f"the last stable offset of {worst.place} was at most {max(map(_lag, worst.points))} records behind"
        )
    if violation_s is not None:
        parts.append(f"the first example began at {seconds(violation_s)}")
    return "; ".join(parts) + "."
