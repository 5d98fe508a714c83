"""The boxes *Does this concern you, and what to do*: one for each known bug that a report proves.

Condition, remedy, alert and repair are in the catalogue of known bugs. The releases are those of the stored track record,
so that a box names no release that was not measured. A bug without a row there was measured by protocol cases at both
ends of its ranges, which the catalogue has. The alerts that fired in this run come before all others that could.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from reports.deciding.reasons import reasons
from reports.model.protocol_case import Tried
from reports.model.report import Report
from reports.model.vocabulary import bugs, measured, note_on
from verification.alerts import rules
from verification.known_bugs.advice import Advice, AdvicePart
from verification.known_bugs.catalogue import BugKind, KnownBug, Reach, affects
from verification.known_bugs.measured import MeasuredRow
from verification.requirements.catalogue import Protects
from verification.vocabulary.releases import is_released, parse
from verification.vocabulary.verdict import Verdict

#: The parts of the advice, with their headings.
PARTS = (
    ("concerns", "Whom it concerns"),
    ("avoid", "What avoids it"),
    ("alert", "What to alert on"),
    ("repair", "How to repair it, and the cost"),
)
#: Ends the list of releases that were not tried.
OTHERS = "; and every release that is not named here"
#: The headings of the releases. A release between two that were measured as affected is taken to share the bug.
_MEASURED = ("Measured affected", "Measured clean", "Taken to share it", "Not tried")
#: What a bug puts at risk, and how a system gets there, in words.
_RISK = {
    Protects.RECORDS: "Records are at risk",
    Protects.PROGRESS: "Progress is at risk",
    Protects.CONTRACT: "Neither records nor progress is at risk",
}
_REACH = {
    Reach.ORDINARY: "under ordinary faults",
    Reach.RARE: "in an unusual order of events, such as a delayed or repeated message",
    Reach.CONTRIVED: "by a forged request, damaged files or a setting that the documentation forbids",
}
#: A release in the words about a subject.
_RELEASE = re.compile(r"\d+\.\d+\.\d+\S*?(?=,|$)")
#: So many consecutive releases are shown as a range.
RANGE_MIN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceBox:
    """The box of one known bug.

    `risk` says what is at risk and how a system gets there, with the reason. `note` has title, issue, affected and fixed
    releases. `releases` are headings with measured releases. `deciding` is whether the bug decides this run, which an
    accepted one, a standing risk or a deviation does not. `passed` are the keys of passes that show it.
    """

    id: str
    title: str
    note: str
    limitation: bool
    risk: str
    advice: Advice
    releases: tuple[tuple[str, str], ...]
    deciding: bool = False
    passed: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[tuple[str, AdvicePart], ...]:
        """The parts of the advice with their headings."""
        return tuple((heading, getattr(self.advice, name)) for name, heading in PARTS)


def boxes(report: Report) -> tuple[AdviceBox, ...]:
    """The boxes of all known bugs that the subject showed, those that decide first, else in the order of ids."""
    shown = _shown(report)
    decide = {each.name for each in reasons(report) if not each.accepted and not each.is_aside}
    subjects = {part.name: part.subject for part in report.parts}
    made = []
    for bug in sorted(bugs().keys() & shown.keys()):
        # A merged report has several releases, of which each run shows its own bugs.
        on = {subjects.get(each.part, report.subject.release) for each in shown[bug]}
        own = frozenset(release for text in on for release in _RELEASE.findall(text))
        passed = tuple(each.key for each in shown[bug] if each.verdict is Verdict.PASS)
        rows = measured().get(bug, ())
        shown_box = box(bugs()[bug], rows, deciding=bug in decide, own=own, fired=_fired(report, bug))
        made.append(replace(shown_box, passed=passed))
    return tuple(sorted(made, key=lambda each: (not each.deciding, each.id)))


def _shown(report: Report) -> dict[str, list[Tried]]:
    """The scenarios and cases by the known bugs that they prove, or show although they passed."""
    shown: dict[str, list[Tried]] = {}
    for each in report.tried:
        named = {bug for names, _ in each.proven for bug in names.split(", ") if bug}
        for bug in named | {trace.bug for trace in each.traces}:
            shown.setdefault(bug, []).append(each)
    return shown


def _fired(report: Report, bug: str) -> dict[str, tuple[str, str]]:
    """The alerts that fired after a finding of this bug, by their metrics: the rule, and where and when it first fired."""
    found: dict[str, tuple[str, str]] = {}
    for scenario in report.worst_first:
        for finding in (each for each in scenario.findings if each.known_bug == bug):
            for alert in scenario.alerts_on(finding) or ():
                when = f"Fired in this run, at {alert.began_s:.1f} s of {scenario.key}"
                found.setdefault(rules.load()[alert.name].metric, (alert.text, when))
    return found


def _fired_first(advice: Advice, fired: Mapping[str, tuple[str, str]]) -> Advice:
    """The advice with the alerts that fired before the others: first those that the catalogue names, then any other one."""
    others = [each for each in advice.alert.points if advice.alert.known]
    named, unnamed = [], []
    for metric, (rule, when) in fired.items():
        if (point := next((each for each in others if metric in each), None)) is not None:
            named.append(f"{when}. {point}")
            others.remove(point)
        else:
            unnamed.append(f"{when}: {rule}.")
    sources = advice.alert.sources or (("measured: this run",) if fired else ())
    return replace(advice, alert=AdvicePart(points=(*named, *unnamed, *others) or advice.alert.points, sources=sources))


def box(
    bug: KnownBug,
    rows: Sequence[MeasuredRow],
    *,
    deciding: bool = False,
    own: Iterable[str] = (),
    fired: Mapping[str, tuple[str, str]] | None = None,
) -> AdviceBox:
    """The box of one bug with its rows of the track record. `own` are the releases on which the report shows it.

    `fired` are the alerts that fired after it in this run.
    """
    reach = "" if bug.impact is Protects.CONTRACT else f", {_REACH[bug.reach]}"
    return AdviceBox(
        id=bug.id,
        title=bug.title,
        note=note_on(bug.id),
        limitation=bug.kind is BugKind.LIMITATION,
        risk=f"{_RISK[bug.impact]}{reach}. {bug.reason}",
        advice=_fired_first(bug.advice, fired or {}),
        releases=tuple(_of_rows(bug, rows, own) if rows else _of_ranges(bug, own)),
        deciding=deciding,
    )


def _of_rows(bug: KnownBug, rows: Sequence[MeasuredRow], own: Iterable[str]) -> Iterable[tuple[str, str]]:
    """The releases of the track record. Protocol cases measured the ends of the ranges, and this run measured its own."""
    every = sorted({each for row in rows for each in (*row.affected, *row.clean, *row.not_tried)}, key=parse)
    ends = {end for each in bug.bad for end in (each.first, each.last)} | {*own}
    said: dict[str, list[str]] = {heading: [] for heading in _MEASURED}
    for row in rows:
        open_ = {*row.not_tried} - ends
        shared = {each for each in open_ if row.affected and affects(bug, each)}
        seen = () if row.variant else ends & {*row.not_tried}
        for heading, on in zip(_MEASURED, ({*row.affected, *seen}, {*row.clean}, shared, open_ - shared), strict=True):
            listed = _listed(sorted(on, key=parse), every)
            said[heading] += [f"{row.variant}: {listed}" if row.variant else listed] if on else []
    for heading, texts in said.items():
        if texts:
            yield heading, "; ".join(texts) + (OTHERS if heading == _MEASURED[-1] else "")


def _of_ranges(bug: KnownBug, own: Iterable[str]) -> Iterable[tuple[str, str]]:
    ends = dict.fromkeys(end for each in bug.bad for end in (each.first, each.last))
    between = "; releases between them: run too, or assumed" if len(ends) > 1 else ""
    yield "Measured affected", ", ".join(dict.fromkeys([*ends, *sorted(own)])) + between
    if released := [each for each in bug.fixed_in if is_released(each)]:
        yield "Fixed in", ", ".join(released)


def _listed(releases: Sequence[str], every: Sequence[str]) -> str:
    """The releases in words; neighbours in the track record are a range: `2.4.0 to 3.8.1`."""
    places = [every.index(each) for each in releases]
    runs: list[list[int]] = []
    for place in places:
        if runs and runs[-1][-1] == place - 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    texts = (
        f"{every[run[0]]} to {every[run[-1]]}" if len(run) >= RANGE_MIN else ", ".join(every[each] for each in run)
        for run in runs
    )
    return ", ".join(texts)
