"""Draw the coordinator rows of a chart: the leaders of the transaction log, and unfinished transactions by id.

The rows are below the processes, on the same time axis: per partition of the transaction log a row of its leaders, and
under it a row per transactional id. A line is thin while the transaction was open. After the commit decision it is
thick until the completion; after an abort decision it is half as thick and dashed. Times are rounded to pixels and
touching lines are merged, so thousands of transactions take no more bytes than there are pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from reports.formats.charts.shapes import CHARACTER, LEFT, BoxShape, PathShape, TextShape
from reports.model.timeline import Coordinator, Leadership, StateSpan, TransactionalIdStates
from reports.model.wording import one_line, seconds

LEADERSHIP_HEIGHT, ID_HEIGHT = 17, 13
#: More transactional ids do not fit on a screen; `trace.json` has all of them.
IDS_MAX = 12
LABEL_MAX = int((LEFT - 10) / CHARACTER)
#: State → kind of its lines, in the order in which they cover each other.
KINDS = {"Ongoing": "state open", "PrepareCommit": "state commit", "PrepareAbort": "state abort"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorRows:
    """The coordinator rows of a chart, from `top` down; `x` converts seconds to pixels."""

    coordinators: tuple[Coordinator, ...]
    top: float
    x: Callable[[float], float]

    def boxes(self) -> Iterator[BoxShape]:
        """The leaders, one after the other."""
        for row, coordinator in self._leading():
            for leadership in coordinator.leaderships:
                start, end = self.x(leadership.began_s), self.x(leadership.ended_s)
                yield BoxShape(
                    x=start,
                    y=row + 2,
                    width=max(round(end - start, 1), 1),
                    height=LEADERSHIP_HEIGHT - 4,
                    kind=_kind(leadership),
                    title=f"coordinator {coordinator.partition}: {leadership.leader}, "
                    f"{seconds(leadership.began_s)} to {seconds(leadership.ended_s)}",
                )

    def texts(self) -> Iterator[TextShape]:
        """The title, the label of each row, and the leaders where there is room."""
        if not self.coordinators:
            return
        title = "Transaction coordinators by partition of __transaction_state, with unfinished transactions by id"
        yield TextShape(x=LEFT, y=self.top - 6, text=title, anchor="start", kind="unit")
        for row, coordinator in self._leading():
            yield TextShape(x=LEFT - 6, y=row + 12, text=f"coordinator {coordinator.partition}", anchor="end")
            for leadership in coordinator.leaderships:
                start, end = self.x(leadership.began_s), self.x(leadership.ended_s)
                if end - start > len(leadership.leader) * CHARACTER:
                    yield TextShape(x=round((start + end) / 2, 1), y=row + 12, text=leadership.leader, kind="on")
        for row, each in self._rows():
            label = one_line(f"id {each.transactional_id}", LABEL_MAX)
            yield TextShape(x=LEFT - 6, y=row + 10, text=label, anchor="end")

    def paths(self) -> Iterator[PathShape]:
        """All lines of one kind as one path."""
        for state, kind in KINDS.items():
            drawn = "".join(
                self._strokes((each for each in of.spans if each.state == state), row + ID_HEIGHT // 2)
                for row, of in self._rows()
            )
            if drawn:
                yield PathShape(d=drawn, kind=kind)

    def _leading(self) -> Iterator[tuple[float, Coordinator]]:
        """Each coordinator with the top of its row."""
        row = self.top
        for coordinator in self.coordinators:
            yield row, coordinator
            row += height((coordinator,))

    def _rows(self) -> Iterator[tuple[float, TransactionalIdStates]]:
        """Each transactional id with the top of its row."""
        for row, coordinator in self._leading():
            for place, each in enumerate(coordinator.ids):
                yield row + LEADERSHIP_HEIGHT + place * ID_HEIGHT, each

    def _strokes(self, spans: Iterable[StateSpan], y: float) -> str:
        """The lines of a row in whole pixels, each at most once; a shorter span takes one pixel."""
        commands, reached = [], -1
        began: int | None = None
        for each in spans:
            start, end = int(self.x(each.began_s)), int(self.x(each.ended_s)) + 1
            if began is None or start > reached:
                commands += [] if began is None else [f"M{began} {y:g}H{reached}"]
                began = start
            reached = max(reached, end)
        return "".join([*commands, *([] if began is None else [f"M{began} {y:g}H{reached}"])])


def _kind(leadership: Leadership) -> str:
    """The kind of a leadership's box; it alternates with the broker or leader epoch."""
    return (
        "leadership odd"
        if (leadership.leader_epoch if leadership.broker is None else leadership.broker) % 2
        else "leadership"
    )


def height(coordinators: tuple[Coordinator, ...]) -> float:
    """The height of the rows in pixels."""
    return sum(LEADERSHIP_HEIGHT + len(each.ids) * ID_HEIGHT for each in coordinators)


def chosen(coordinators: tuple[Coordinator, ...]) -> tuple[Coordinator, ...]:
    """At most `IDS_MAX` ids with the longest completions, in their original order."""
    slowest_first = (
        (-each.completing_s, of.partition, each.transactional_id) for of in coordinators for each in of.ids
    )
    kept = {(partition, name) for _, partition, name in sorted(slowest_first)[:IDS_MAX]}
    cut = (
        replace(of, ids=tuple(each for each in of.ids if (of.partition, each.transactional_id) in kept))
        for of in coordinators
    )
    return tuple(each for each in cut if each.ids)


def described(coordinators: tuple[Coordinator, ...]) -> Iterator[str]:
    """The rows in words."""
    for of in coordinators:
        slowest = max(of.ids, key=lambda each: each.completing_s)
        yield (
            f"coordinator {of.partition} with {len(of.ids)} transactional ids was {of.leaders}; "
            f"its longest completion took {seconds(slowest.completing_s)}, for id {slowest.transactional_id}"
        )
