"""The windows of `watch`: GO or NO-GO for each, and what was seen of others meanwhile.

A window decides by the rule of a whole run: a violation that decides is NO-GO, a pass is GO, and everything else is
UNDECIDED. So a reader finds the act after which a cluster that was GO became NO-GO.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from reports.model.report import FaultRow, Report, ScenarioReport
from reports.model.wording import counted
from verification.vocabulary.verdict import Decision, code_of, decide

#: The name of the profile (`runner.config.Profile`), of the step of each window, and of changes that are only counted.
PROFILE, STEP, MOVED = "watch", "WatchOthers", "LeaderMoved"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedWindow:
    """One window, from `began` to `ended`, None where that is not known; `seen` are the acts of others.

    `gap_s` is the longest time without a commit in seconds, None where it is not known.
    """

    scenario: ScenarioReport
    decision: Decision
    began: datetime | None
    ended: datetime | None
    seen: tuple[str, ...]
    gap_s: float | None

    @property
    def when(self) -> str:
        """Its time of day, empty where that is not known."""
        return "" if self.began is None or self.ended is None else f"{self.began:%H:%M:%S} to {self.ended:%H:%M:%S} UTC"


def windows(report: Report) -> tuple[WatchedWindow, ...]:
    """The windows in the order of time; none where the run did not watch a cluster."""
    found = map(_window, report.scenarios) if report.profile == PROFILE else ()
    # Two lanes take them from the plan, and begin them in any order.
    return tuple(sorted(found, key=lambda each: each.began or datetime.max.replace(tzinfo=UTC)))


def _window(scenario: ScenarioReport) -> WatchedWindow:
    step = next((each for each in scenario.faults if each.fault == STEP), None)
    unavailable = scenario.timeline.unavailability if scenario.timeline else ()
    began, ended = _span(scenario, step)
    return WatchedWindow(
        scenario=scenario,
        decision=decide(code_of(scenario.counts_as), complete=True),
        began=began,
        ended=ended,
        seen=tuple(_seen([each for each in scenario.faults if each is not step])),
        gap_s=next((each.gap_s for each in unavailable if step and each.step == step.step), None),
    )


def _span(scenario: ScenarioReport, step: FaultRow | None) -> tuple[datetime | None, datetime | None]:
    if step is None or step.confirmed_s is None or scenario.timeline is None or not scenario.timeline.began_us:
        return None, None
    origin = datetime.fromtimestamp(scenario.timeline.began_us / 1e6, UTC)
    ended_s = scenario.timeline.end_s if step.healed_s is None else step.healed_s
    return origin + timedelta(seconds=step.confirmed_s), origin + timedelta(seconds=ended_s)


def _seen(faults: Sequence[FaultRow]) -> Iterator[str]:
    """Each act once; one broker that leaves moves many leaders, which are counted."""
    acts = Counter(f"{each.description}{_back(each)}" for each in faults if each.fault != MOVED)
    yield from (text if count == 1 else f"{text} ({count} times)" for text, count in acts.items())
    if moved := sum(each.fault == MOVED for each in faults):
        yield f"{counted(moved, 'leader')} moved"


def _back(act: FaultRow) -> str:
    """How a broker came back, which is its proof."""
    return f", {act.proof}" if act.proof.startswith("back ") else ""
