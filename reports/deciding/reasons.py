"""The violations and other reasons behind a decision, the most important first: each once, with links to its proof.

One bug makes many scenarios and cases fail. A reader first wants to know the bug, and whether a release is without it,
and then where it shows. So violations are grouped by known bug, else by anomaly or requirement; undecided scenarios are
grouped by their verdict. A violation that does not decide is in the list with its weight. Reasons only explain: `decide`
decides. Regressions and incomplete evidence have their own
sections.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from reports.model.findings import FindingReport
from reports.model.protocol_case import ScriptCase, Tried
from reports.model.report import Report, ScenarioReport
from reports.model.vocabulary import catalogue, definition_of, note_on
from reports.model.wording import shown_verdict
from verification.known_bugs.weight import Weight
from verification.vocabulary.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonPlace:
    """A place where a reason shows: the key of a scenario, case or control, the violations or reason, and the conditions."""

    key: str
    what: str
    conditions: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One reason for a decision: its name, one or two sentences about it, and every place where it shows.

    `acceptable` is the id with which `--accept` removes it from the decision, empty where there is none. A `weight` other
    than that of a violation that decides is no reason for the decision. `setting` are sentences on the settings of the user
    that explain it; `text` begins with them. `reader` is the library whose violation as a reader it is (`FindingReport`).
    """

    verdict: Verdict
    name: str
    text: str
    places: tuple[ReasonPlace, ...]
    acceptable: str = ""
    accepted: bool = False
    weight: Weight = Weight.DECIDES
    setting: str = ""
    reader: str = ""

    @property
    def is_aside(self) -> bool:
        """Whether it is shown next to the reasons: a standing risk or deviation, which the user did not accept."""
        return not self.accepted and self.weight is not Weight.DECIDES


def reasons(report: Report) -> tuple[Reason, ...]:
    """The reasons of a report: violations that decide, then the others by weight, accepted ones, undecided scenarios."""
    gathered: dict[tuple[str, bool, str], list[Reason]] = {}
    for each in _violations(report):
        gathered.setdefault((each.name, each.accepted, each.reader), []).append(each)
    proven = [_joined(each) for each in gathered.values()]
    # Reasons stay in the order in which they were met: the worst scenario comes first. The others are sorted by id.
    order = tuple(Weight)
    proven.sort(key=lambda each: (each.accepted, order.index(each.weight), each.name if each.is_aside else ""))
    return (*proven, *_undecided(report))


def _joined(same: list[Reason]) -> Reason:
    """One reason made of several with the same name; their texts about one place are joined."""
    said: dict[str, list[ReasonPlace]] = {}
    for place in (place for each in same for place in each.places):
        said.setdefault(place.key, []).append(place)
    first = same[0]
    return Reason(
        verdict=first.verdict,
        name=first.name,
        text=first.text,
        places=tuple(replace(each[0], what=", ".join(one.what for one in each)) for each in said.values()),
        acceptable=first.acceptable if all(each.acceptable for each in same) else "",
        accepted=first.accepted,
        weight=first.weight,
        setting=first.setting,
        reader=first.reader,
    )


def _violations(report: Report) -> Iterator[Reason]:
    for scenario in report.worst_first:
        if scenario.verdict is Verdict.FAIL:
            yield from (_of_finding(scenario, finding) for finding in scenario.findings)
            if not scenario.findings:
                yield _without_finding(scenario)
    for case in report.cases_worst_first:
        if case.verdict is Verdict.FAIL:
            yield from _of_case(case)


def _place(tried: Tried, what: str) -> ReasonPlace:
    what = "; ".join(filter(None, [what, tried.rate]))
    return ReasonPlace(key=tried.key, what=what, conditions=str(tried.conditions or ""))


def _of_finding(scenario: ScenarioReport, finding: FindingReport) -> Reason:
    known_as = definition_of(finding.anomaly)
    definition = f"{known_as.definition} {known_as.why_illegal}" if known_as else ""
    bug = finding.known_bug or ""
    return Reason(
        verdict=Verdict.FAIL,
        name=bug or finding.anomaly,
        text=" ".join(filter(None, (finding.setting, finding.whose, note_on(bug) if bug else definition))),
        places=(_place(scenario, f"{finding.anomaly} × {finding.count}"),),
        acceptable=bug,
        accepted=finding.accepted,
        weight=finding.weight,
        setting=finding.setting,
        reader=finding.reader,
    )


def _without_finding(scenario: ScenarioReport) -> Reason:
    """A verdict from evidence that was judged elsewhere may name no finding; it still counts."""
    return Reason(
        verdict=Verdict.FAIL,
        name="a violation without a finding",
        text="The verdict is FAIL, but it names no anomaly, so it cannot be accepted.",
        places=(_place(scenario, scenario.reason),),
    )


def _of_case(case: ScriptCase) -> Iterator[Reason]:
    violated = [each.id for each in case.requirements if each.verdict is Verdict.FAIL]
    place = _place(case, ", ".join(violated))
    named = [each for each in case.known if each.named]
    for known in named:
        yield Reason(
            verdict=Verdict.FAIL,
            name=known.id,
            text=known.note,
            places=(place,),
            acceptable=known.id if len(named) == 1 else "",
            accepted=case.accepted,
            weight=known.weight,
        )
    if not named:
        sentence = catalogue().get(violated[0]) if violated else None
        yield Reason(
            verdict=Verdict.FAIL,
            name=violated[0] if violated else case.key,
            text=" ".join(filter(None, (case.setting, sentence.text if sentence else case.claim))),
            places=(place,),
            acceptable=violated[0] if len(violated) == 1 else "",
            accepted=case.accepted,
            setting=case.setting,
        )


def _undecided(report: Report) -> Iterator[Reason]:
    def tried(verdict: Verdict) -> list[Tried]:
        return [each for each in report.tried if each.counts_as is verdict]

    def controls(verdict: Verdict) -> list[Tried]:
        return [each for each in report.controls if shown_verdict(each) is verdict]

    for verdict, name, text, open_ in (
        (
            Verdict.ERROR,
            "controls not detected",
            "A suite that misses a known defect cannot prove that the subject has none.",
            controls(Verdict.ERROR),
        ),
        (
            Verdict.ERROR,
            "not run or not judged",
            "They have no verdict. The cause may be the environment, the suite or the subject.",
            tried(Verdict.ERROR),
        ),
        (
            Verdict.INCONCLUSIVE,
            "undecided",
            "No violation was proven, but the evidence is not enough for a pass.",
            # A control that an interruption left unjudged was not missed.
            tried(Verdict.INCONCLUSIVE) + controls(Verdict.INCONCLUSIVE),
        ),
    ):
        if open_:
            places = tuple(ReasonPlace(key=each.key, what=each.reason) for each in open_)
            yield Reason(verdict=verdict, name=name, text=text, places=places)
