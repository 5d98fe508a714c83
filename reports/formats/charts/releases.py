"""Draw the upgrade rows of a chart: the stages, a band per node with its release, a track per changed feature level.

The rows are below the rates, on the same time axis. A stage has its number in the table of stages, and its name where
there is room. A band has the name of the release, and is darker for the target. While a node is down its band is a thin
line. So the rows can be read without colours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from reports.formats.charts.shapes import CHARACTER, LEFT, BoxShape, TextShape
from reports.model.upgrade import UpgradeReport
from reports.model.wording import one_line, seconds

ROW_HEIGHT, TITLE_HEIGHT = 17, 16
LABEL_MAX = int((LEFT - 10) / CHARACTER)
#: The end of most names of features, which their rows leave out.
VERSION = ".version"
#: The kinds of neighbouring boxes, which differ also without colours.
KINDS = ("leadership", "leadership odd")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cell:
    """A box of a row with its text, which is drawn where there is room; without a text it is a thin line."""

    row: int
    began_s: float
    ended_s: float
    texts: tuple[str, ...]
    kind: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeRows:
    """The upgrade rows of a chart, from `top` down; `x` converts seconds to pixels. Without an upgrade there are none."""

    upgrade: UpgradeReport | None
    top: float
    x: Callable[[float], float]

    def boxes(self) -> Iterator[BoxShape]:
        """The stages, the times of each release, and the levels."""
        for cell in self._cells():
            start, end = self.x(cell.began_s), self.x(cell.ended_s)
            y = self._y(cell.row)
            yield BoxShape(
                x=start,
                y=y + (2 if cell.texts else 7),
                width=max(round(end - start, 1), 1),
                height=ROW_HEIGHT - 4 if cell.texts else 3,
                kind=cell.kind,
                title=f"{cell.title}, {seconds(cell.began_s)} to {seconds(cell.ended_s)}",
            )

    def texts(self) -> Iterator[TextShape]:
        """The title, the label of each row, and the longest text of each box for which there is room."""
        if self.upgrade is None:
            return
        title = "Stages of the upgrade, releases of the nodes (thin line: down), final feature levels"
        yield TextShape(x=LEFT, y=self.top + TITLE_HEIGHT - 6, text=title, anchor="start", kind="unit")
        for row, label in enumerate(_labels(self.upgrade)):
            yield TextShape(x=LEFT - 6, y=self._y(row) + 12, text=one_line(label, LABEL_MAX), anchor="end")
        for cell in self._cells():
            start, end = self.x(cell.began_s), self.x(cell.ended_s)
            fitting = (each for each in cell.texts if len(each) * CHARACTER <= end - start)
            if text := next(fitting, ""):
                yield TextShape(x=round((start + end) / 2, 1), y=self._y(cell.row) + 12, text=one_line(text), kind="on")

    def _y(self, row: int) -> float:
        return self.top + TITLE_HEIGHT + row * ROW_HEIGHT

    def _cells(self) -> Iterator[_Cell]:
        if self.upgrade is None:
            return
        yield from _stage_cells(self.upgrade)
        yield from _node_cells(self.upgrade)
        yield from _level_cells(self.upgrade)


def height(upgrade: UpgradeReport | None) -> float:
    """The height of the rows in pixels."""
    return 0 if upgrade is None else TITLE_HEIGHT + len(tuple(_labels(upgrade))) * ROW_HEIGHT + 4


def described(upgrade: UpgradeReport) -> str:
    """The rows in words."""
    stages = ", ".join(f"{each.name} from {seconds(each.began_s)}" for each in upgrade.stages)
    levels = ", ".join(
        f"{track.feature} {' → '.join(str(each.level) for each in track.spans)}" for track in upgrade.features
    )
    nodes = ", ".join(
        f"node {band.node} ran {' → '.join(each.release for each in band.spans if each.release)}"
        for band in upgrade.nodes
    )
    return f"Stages: {stages or 'none'}. Releases: {nodes}. Feature levels: {levels or 'not changed'}."


def _labels(upgrade: UpgradeReport) -> Iterator[str]:
    yield "stage"
    yield from (f"node {each.node}" for each in upgrade.nodes)
    yield from (each.feature.removesuffix(VERSION) for each in upgrade.features)


def _stage_cells(upgrade: UpgradeReport) -> Iterator[_Cell]:
    for number, stage in enumerate(upgrade.stages, start=1):
        yield _Cell(
            row=0,
            began_s=stage.began_s,
            ended_s=stage.ended_s,
            texts=(f"{number} {stage.name}", str(number)),
            kind="phase odd" if number % 2 else "phase",
            title=f"stage {number}, {stage.name}",
        )


def _node_cells(upgrade: UpgradeReport) -> Iterator[_Cell]:
    for row, band in enumerate(upgrade.nodes, start=1):
        for span in band.spans:
            kind = KINDS[span.release == upgrade.target] if span.release else "leaderless"
            yield _Cell(
                row=row,
                began_s=span.began_s,
                ended_s=span.ended_s,
                texts=(span.release,) if span.release else (),
                kind=kind,
                title=f"node {band.node}: {span.release or 'down'}",
            )


def _level_cells(upgrade: UpgradeReport) -> Iterator[_Cell]:
    for row, track in enumerate(upgrade.features, start=1 + len(upgrade.nodes)):
        for place, span in enumerate(track.spans):
            yield _Cell(
                row=row,
                began_s=span.began_s,
                ended_s=span.ended_s,
                texts=(str(span.level),),
                kind=KINDS[place % 2],
                title=f"{track.feature} {span.level}",
            )
