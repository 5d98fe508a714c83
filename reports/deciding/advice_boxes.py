"""The boxes *Does this concern you, and what to do*: one for each known bug that a report proves.

Condition, remedy, alert and repair are in the catalogue of known bugs. The releases are those of the stored track record,
so that a box names no release that was not measured. A bug without a row there was measured by protocol cases at both
ends of its ranges, which the catalogue has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reports.deciding.reasons import reasons
from reports.model.report import Report
from reports.model.vocabulary import bugs, measured, note_on
from verification.known_bugs.advice import Advice, AdvicePart
from verification.known_bugs.catalogue import BugKind, KnownBug, Reach
from verification.known_bugs.measured import MeasuredRow
from verification.requirements.catalogue import Protects
from verification.vocabulary.releases import parse

#: The parts of the advice, with their headings.
PARTS = (
    ("concerns", "Whom it concerns"),
    ("avoid", "What avoids it"),
    ("alert", "What to alert on"),
    ("repair", "How to repair it, and the cost"),
)
#: Ends the list of releases that were not tried.
OTHERS = "; and every release that is not named here"
#: What a bug puts at risk, and how a system gets there, in words.
_RISK = {
    Protects.RECORDS: "Records are at risk",
    Protects.PROGRESS: "Progress is at risk",
    Protects.CONTRACT: "Neither records nor progress is at risk",
}
_REACH = {
    Reach.ORDINARY: "under ordinary faults",
    Reach.RARE: "after a delayed or repeated message",
    Reach.CONTRIVED: "by a forged request, damaged files or a setting that the documentation forbids",
}
#: So many consecutive releases are shown as a range.
RANGE_MIN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceBox:
    """The box of one known bug.

    `risk` says what is at risk and how a system gets there, with the reason. `note` has title, issue, affected and fixed
    releases. `releases` are headings with measured releases. `deciding` is whether the bug decides this run, which an
    accepted one, a standing risk or a deviation does not.
    """

    id: str
    title: str
    note: str
    limitation: bool
    risk: str
    advice: Advice
    releases: tuple[tuple[str, str], ...]
    deciding: bool = False

    @property
    def parts(self) -> tuple[tuple[str, AdvicePart], ...]:
        """The parts of the advice with their headings."""
        return tuple((heading, getattr(self.advice, name)) for name, heading in PARTS)


def boxes(report: Report) -> tuple[AdviceBox, ...]:
    """The boxes of all known bugs that the subject showed, those that decide first, else in the order of ids."""
    shown = {each.known_bug for scenario in report.scenarios for each in scenario.findings if each.known_bug}
    shown |= {known.id for case in report.cases for known in case.known if known.named}
    decide = {each.name for each in reasons(report) if not each.accepted and not each.is_aside}
    rows = measured()
    made = [box(bugs()[each], rows.get(each, ()), deciding=each in decide) for each in shown if each in bugs()]
    return tuple(sorted(made, key=lambda each: (not each.deciding, each.id)))


def box(bug: KnownBug, rows: Sequence[MeasuredRow], *, deciding: bool = False) -> AdviceBox:
    """The box of one bug with its rows of the track record."""
    reach = "" if bug.impact is Protects.CONTRACT else f", {_REACH[bug.reach]}"
    return AdviceBox(
        id=bug.id,
        title=bug.title,
        note=note_on(bug.id),
        limitation=bug.kind is BugKind.LIMITATION,
        risk=f"{_RISK[bug.impact]}{reach}. {bug.reason}",
        advice=bug.advice,
        releases=tuple(_of_rows(rows) if rows else _of_ranges(bug)),
        deciding=deciding,
    )


def _of_rows(rows: Sequence[MeasuredRow]) -> Iterable[tuple[str, str]]:
    every = sorted({each for row in rows for each in (*row.affected, *row.clean, *row.not_tried)}, key=parse)
    for heading, field in (("Measured affected", "affected"), ("Measured clean", "clean"), ("Not tried", "not_tried")):
        said = [(row.variant, getattr(row, field)) for row in rows if getattr(row, field)]
        texts = [f"{variant}: {_listed(on, every)}" if variant else _listed(on, every) for variant, on in said]
        if texts:
            yield heading, "; ".join(texts) + (OTHERS if field == "not_tried" else "")


def _of_ranges(bug: KnownBug) -> Iterable[tuple[str, str]]:
    ends = dict.fromkeys(end for each in bug.bad for end in (each.first, each.last))
    between = "; releases between them were run too, or are taken to share it" if len(ends) > 1 else ""
    yield "Measured affected", ", ".join(ends) + between
    if bug.fixed_in:
        yield "Fixed in", ", ".join(bug.fixed_in)


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
