"""Coordinators → geometry: who coordinated, and what each transactional id had open there.

Below the processes, on the same scale of time: for each partition of the transaction log a row of its leaders, and under
it a row per transactional id. A stroke is thin while the transaction was open and thick from the decision to the
completion, half as thick and with dashes where the decision was to abort. Times are rounded to pixels and strokes that
touch are one: thousands of transactions are as many bytes as there are pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from reports.formats.charts.shapes import CHARACTER, LEFT, Box, Path, Text
from reports.model.timeline import Coordinated, Coordinator, Reign, Stretch
from reports.model.wording import one_line, seconds

REIGN_HEIGHT, ID_HEIGHT = 17, 13
#: More transactional ids than this do not fit on a screen; the trace has all of them.
IDS_MAX = 12
LABEL_MAX = int((LEFT - 10) / CHARACTER)
#: State → how its strokes are drawn, in the order in which they cover each other.
KINDS = {"Ongoing": "state open", "PrepareCommit": "state commit", "PrepareAbort": "state abort"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The coordinators' part of a chart, from `top` down; `x` places a moment in seconds."""

    coordinators: tuple[Coordinator, ...]
    top: float
    x: Callable[[float], float]

    def boxes(self) -> Iterator[Box]:
        """The leaders, one after the other."""
        for row, coordinator in self._leading():
            for leadership in coordinator.reigns:
                start, end = self.x(leadership.began_s), self.x(leadership.ended_s)
                yield Box(
                    x=start,
                    y=row + 2,
                    width=max(round(end - start, 1), 1),
                    height=REIGN_HEIGHT - 4,
                    kind=_kind(leadership),
                    title=f"coordinator {coordinator.partition}: {leadership.who}, "
                    f"{seconds(leadership.began_s)} to {seconds(leadership.ended_s)}",
                )

    def texts(self) -> Iterator[Text]:
        """What the part is, whose each row is, and the leaders where there is room."""
        if not self.coordinators:
            return
        title = "Transaction coordinators, by partition of __transaction_state, and what their ids had open"
        yield Text(x=LEFT, y=self.top - 6, text=title, anchor="start", kind="unit")
        for row, coordinator in self._leading():
            yield Text(x=LEFT - 6, y=row + 12, text=f"coordinator {coordinator.partition}", anchor="end")
            for leadership in coordinator.reigns:
                start, end = self.x(leadership.began_s), self.x(leadership.ended_s)
                if end - start > len(leadership.who) * CHARACTER:
                    yield Text(x=round((start + end) / 2, 1), y=row + 12, text=leadership.who, kind="on")
        for row, each in self._rows():
            label = one_line(f"id {each.transactional_id}", LABEL_MAX)
            yield Text(x=LEFT - 6, y=row + 10, text=label, anchor="end")

    def paths(self) -> Iterator[Path]:
        """All strokes of one kind as one path."""
        for state, kind in KINDS.items():
            drawn = "".join(
                self._strokes((each for each in of.stretches if each.state == state), row + ID_HEIGHT // 2)
                for row, of in self._rows()
            )
            if drawn:
                yield Path(d=drawn, kind=kind)

    def _leading(self) -> Iterator[tuple[float, Coordinator]]:
        """Each coordinator with the top of its row."""
        row = self.top
        for coordinator in self.coordinators:
            yield row, coordinator
            row += height((coordinator,))

    def _rows(self) -> Iterator[tuple[float, Coordinated]]:
        """Each transactional id with the top of its row."""
        for row, coordinator in self._leading():
            for place, each in enumerate(coordinator.ids):
                yield row + REIGN_HEIGHT + place * ID_HEIGHT, each

    def _strokes(self, stretches: Iterable[Stretch], y: float) -> str:
        """Whole pixels, each at most once; a stretch that is shorter has one all the same."""
        commands, reached = [], -1
        began: int | None = None
        for each in stretches:
            start, end = int(self.x(each.began_s)), int(self.x(each.ended_s)) + 1
            if began is None or start > reached:
                commands += [] if began is None else [f"M{began} {y:g}H{reached}"]
                began = start
            reached = max(reached, end)
        return "".join([*commands, *([] if began is None else [f"M{began} {y:g}H{reached}"])])


def _kind(leadership: Reign) -> str:
    """Leaderships that follow each other differ, where the brokers do."""
    return "reign odd" if (leadership.leader_epoch if leadership.broker is None else leadership.broker) % 2 else "reign"


def height(coordinators: tuple[Coordinator, ...]) -> float:
    """How much room they take."""
    return sum(REIGN_HEIGHT + len(each.ids) * ID_HEIGHT for each in coordinators)


def chosen(coordinators: tuple[Coordinator, ...]) -> tuple[Coordinator, ...]:
    """At most `IDS_MAX` ids, those that took longest to complete; in the order in which they were."""
    everyone = ((-each.completing_s, of.partition, each.transactional_id) for of in coordinators for each in of.ids)
    kept = {(partition, name) for _, partition, name in sorted(everyone)[:IDS_MAX]}
    cut = (
        replace(of, ids=tuple(each for each in of.ids if (of.partition, each.transactional_id) in kept))
        for of in coordinators
    )
    return tuple(each for each in cut if each.ids)


def told(coordinators: tuple[Coordinator, ...]) -> Iterator[str]:
    """The part in words."""
    for of in coordinators:
        slowest = max(of.ids, key=lambda each: each.completing_s)
        yield (
            f"coordinator {of.partition} of {len(of.ids)} transactional ids was {of.leaders}; "
            f"the longest completion took {seconds(slowest.completing_s)}, of id {slowest.transactional_id}"
        )
