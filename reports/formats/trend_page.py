"""`trend.html`: many runs on one page, without scripts or external resources.

The answer comes first: the decision of the last run, new violations, and violations that are gone. Then come flaky
cases, charts, requirement × run, and the runs. The page stays below 2 MB: it shows the last runs and a limited number of
rows, and says how many it leaves out; `trend.json` has all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from reports.formats.charts.colours import paint
from reports.formats.charts.runs import draw_coverage, draw_durations
from reports.formats.templating import CSS_CLASS, environment, without_blanks
from reports.model import wording
from reports.model.clock import instant
from reports.model.trend import RequirementTrend, Trend, TrendRun, ViolationState
from verification.vocabulary.verdict import Decision, Verdict

#: Runs in the tables of the page.
RUNS_SHOWN = 60
#: Runs in the charts; a bar needs two pixels.
RUNS_CHARTED = 400
VIOLATIONS_SHOWN = 100
FLAKY_SHOWN = 60
#: Requirements in the table; the catalogue has fewer.
REQUIREMENTS_SHOWN = 300
UNREAD_SHOWN = 50
#: Characters of a name and of a longer text.
NAME_MAX, TEXT_MAX = 120, 240
_STATE_CLASS = {
    ViolationState.NEW: "fail",
    ViolationState.STILL_THERE: "fail",
    ViolationState.NO_EARLIER_RUN: "fail",
    ViolationState.NOT_DECIDED_SINCE: "inconclusive",
    ViolationState.GONE: "pass",
}
_STATE_SIGN = {
    ViolationState.NEW: "✗",
    ViolationState.STILL_THERE: "✗",
    ViolationState.NO_EARLIER_RUN: "✗",
    ViolationState.NOT_DECIDED_SINCE: "?",
    ViolationState.GONE: "✓",
}
_DECISION_CLASS = {Decision.GO: "pass", Decision.NO_GO: "fail", Decision.UNDECIDED: "inconclusive"}


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictLine:
    """The shown verdicts of a requirement, the newest first; equal neighbours are one cell with their number."""

    id: str
    cells: tuple[tuple[Verdict | None, int], ...]


def render(trend: Trend) -> str:
    """The whole page; equal trends give equal bytes."""
    shown = trend.runs[-RUNS_SHOWN:]
    changing, steady = _lines(trend, len(shown))
    given: dict[str, Any] = {
        "trend": trend,
        "shown": shown,
        "columns": shown[::-1],
        "headers": _headers(shown[::-1]),
        "changing": changing,
        "steady": steady,
        "violations": trend.violations[:VIOLATIONS_SHOWN],
        "flaky": trend.flaky[:FLAKY_SHOWN],
        "unread": trend.unread[:UNREAD_SHOWN],
        "left_out": max(len(trend.requirements) - REQUIREMENTS_SHOWN, 0),
        "charted": trend.runs[-RUNS_CHARTED:],
        "draw_durations": draw_durations,
        "draw_coverage": draw_coverage,
        "paint": paint,
        "sign": wording.verdict_sign,
        "word": wording.verdict_word,
        "css_class": CSS_CLASS.__getitem__,
        "decision_sign": wording.DECISION_SIGN,
        "decision_class": _DECISION_CLASS,
        "state_sign": _STATE_SIGN,
        "state_class": _STATE_CLASS,
        "day": lambda number: _day(trend.runs[number - 1]),
        "counted": wording.counted,
        "verdicts": (*sorted(Verdict, reverse=True), None),
    }
    made = environment()
    made.filters.update(name=_name, text=_text)
    return without_blanks(made.get_template("trend.html.j2").render(given))


def _day(run: TrendRun) -> str:
    """The date of a run; empty when it is unknown."""
    at = instant(run.started)
    return "" if at is None else f"{at:%Y-%m-%d}"


def _name(text: str) -> str:
    return wording.one_line(text, NAME_MAX)


def _text(text: str) -> str:
    return wording.one_line(text, TEXT_MAX)


def _headers(columns: Sequence[TrendRun]) -> tuple[tuple[str, int], ...]:
    """The releases above the columns, equal neighbours as one."""
    return tuple((release, len(list(runs))) for release, runs in groupby(columns, key=lambda each: each.release))


def _lines(trend: Trend, shown: int) -> tuple[tuple[VerdictLine, ...], tuple[VerdictLine, ...]]:
    """The requirements that need attention, the worst first, and those that every shown run passed or did not test."""
    rows = sorted(trend.requirements, key=lambda each: -_worst(each, shown))[:REQUIREMENTS_SHOWN]
    lines = [(_worst(each, shown) > Verdict.PASS, _line(each, shown)) for each in rows]
    return tuple(line for bad, line in lines if bad), tuple(line for bad, line in lines if not bad)


def _worst(row: RequirementTrend, shown: int) -> Verdict:
    return Verdict.worst(each for each in row.verdicts[-shown:] if each is not None)


def _line(row: RequirementTrend, shown: int) -> VerdictLine:
    cells = tuple((verdict, len(list(equal))) for verdict, equal in groupby(row.verdicts[-shown:][::-1]))
    return VerdictLine(id=row.id, cells=cells)
