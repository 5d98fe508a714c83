"""`report.html`: the report as one file without scripts or external resources, to attach to a decision.

The answer comes first: decision, reasons, subject, counts, the command that repeats the run. Then come tables, and one
section per scenario with its proof or per protocol case with its script; passed cases are folded at the end. Every
scenario, case and requirement has its own anchor. A verdict is a sign and a word: the page can be read without colours
and without its style sheet, which some CI servers strip. Autoescape is always on. Texts from outside also pass
`wording.plain`, so no control character reaches the page.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment

from reports.deciding import matrix, scorecards
from reports.deciding.advice_boxes import boxes
from reports.deciding.answer import answer
from reports.deciding.effort import effort
from reports.deciding.impact import impact, sentence
from reports.deciding.own_builds import build_note
from reports.deciding.proof_conditions import proof_conditions
from reports.deciding.readers import title_of
from reports.deciding.reasons import reasons
from reports.deciding.risk_table import CHOICES, release_of_today, risks
from reports.deciding.trust import trust
from reports.deciding.upgrade_cost import upgrade_cost
from reports.deciding.windows import windows
from reports.formats import stage_cells
from reports.formats.charts.colours import paint
from reports.formats.charts.coordinators import chosen as coordinated
from reports.formats.charts.lanes import draw_lanes
from reports.formats.charts.rates import draw
from reports.formats.finding_page import columns_of, topic_of
from reports.formats.glossary import GLOSSARY
from reports.formats.issue_links import linked
from reports.formats.page_budget import detailed
from reports.formats.script_page import named_by, steps
from reports.formats.templating import CSS_CLASS, environment, place, without_blanks
from reports.model import wording
from reports.model.change import BaselineComparison, Change, ChangeKind
from reports.model.protocol_case import ASIDES, StatementRow, Tried
from reports.model.report import Report, RequirementRow, ScenarioReport
from reports.model.timeline import NO_WORK, FiredAlert
from reports.model.vocabulary import bugs, note_on
from verification.scripts.script import EXPECTED_AS, Relation
from verification.vocabulary.harm import seen
from verification.vocabulary.verdict import Verdict, allowance

#: Examples shown unfolded; some others are folded below them. results.json has up to 32.
EXAMPLES_SHOWN = 4
EXAMPLES_MAX = 12
#: With more scenarios only those that did not pass have charts; `trace.json` has all of them.
CHARTED_MAX = 60
#: The coverage items of each period; other floors are only in the table of coverage.
PERIOD_FLOORS = {"before": ("ok-before",), "during": ("attempted-during", "during"), "after": ("ok-after",)}
#: With more untested requirements their list is folded.
UNTESTED_OPEN = 40
PERIOD_NAMES = {"between": "between two faults", NO_WORK: "not counted: initialisations, copies without input"}
#: Links to the scenarios and cases that pass a requirement; the line of each case that passed names its requirements.
DECIDED_SHOWN = 1
#: Findings named on a card; more would hide the neighbouring cards.
REFUTED_SHOWN = 3
#: Reasons above the facts, and places of each; more would push the subject off the first screen.
REASONS_SHOWN = 3
PLACES_SHOWN = 3
#: Statements in the table above a script; the script marks all of them.
DECIDING_SHOWN = 6
#: Characters of a value in the overview; the section of the case has more.
BRIEF_MAX = 120
SECTIONS = (
    "top",
    "why",
    "risks",
    "not-deciding",
    "change",
    "advice",
    "scorecards",
    "families",
    "runs",
    "scenarios",
    "controls",
    "cases",
    "requirements",
    "untested",
    "words",
    "details",
    "passed",
    "about",
)
#: The place of the notes on known bugs that have no box.
CITED = "<!-- cited -->"
_CHANGE_SIGN = {
    ChangeKind.REGRESSED: "✗",
    ChangeKind.VANISHED: "✗",
    ChangeKind.NEWLY_INCONCLUSIVE: "?",
    ChangeKind.FIXED: "✓",
    ChangeKind.NEW: "+",
    ChangeKind.NO_LONGER_APPLICABLE: "–",
}
_CHANGE_CLASS = {ChangeKind.NEWLY_INCONCLUSIVE: "inconclusive", ChangeKind.FIXED: "pass"}
#: The counts of the judge, in words.
_COUNTED_AS = {
    "log": "records and markers in the log",
    "uncommitted": "received by read_uncommitted",
    "committed": "received by read_committed",
    "committed inputs": "of these, inputs of the pipeline",
    "committed outputs": "and its outputs",
    "transaction log": "entries of the transaction log",
}
#: Verdicts in the order of display; None is untested.
_WORST_FIRST: tuple[Verdict | None, ...] = (*sorted(Verdict, reverse=True), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Evidence:
    """Where the evidence lies: the name of the directory of the run, and whether the page is in it."""

    name: str
    has_page: bool


def render(report: Report, directory: Path) -> str:
    """The whole page, which will be in `directory`; it has no link to a file, because it is sent without the evidence."""
    anchors = _anchors(report)
    groups = matrix.groups(report)
    every = reasons(report)
    template = _environment().get_template("report.html.j2")
    text = template.render(
        report=report,
        judgement=report.judgement,
        sentences={row.id: row for row in report.requirements},
        details=(*report.worst_first, *report.controls),
        reasons=[each for each in every if not each.is_aside],
        answer=answer(report),
        title=title_of(report),
        proof_conditions=proof_conditions(report),
        risk_table=risks(report),
        risk_choices=CHOICES,
        today=release_of_today(report),
        impact=impact(report),
        passed_with=Counter(alert.name for each in report.scenarios if each.clear for alert in _alerts_of(each)),
        overlapping=sum(each.actual_s or 0 for each in (*report.tried, *report.controls)) > report.duration_s,
        upgrade_cost=upgrade_cost(report),
        upgrades=[each for each in report.worst_first if each.upgrade is not None],
        windows=windows(report),
        boxes=(advice := boxes(report)),
        advised=frozenset(each.id for each in advice),
        detailed=detailed(report),
        proof=_proof_links(report, anchors),
        counted=_counted(report.scenarios),
        counted_cases=_counted(report.cases),
        unclear_cases=tuple(each for each in report.cases_worst_first if not each.clear),
        passed_cases=tuple(each for each in report.cases if each.verdict is Verdict.PASS),
        inapplicable_cases=tuple(each for each in report.cases if each.verdict is Verdict.NOT_APPLICABLE),
        filtered=_filtered(report),
        tested=tuple(row for row in report.requirements if row.verdict not in (None, Verdict.ERROR)),
        unjudged=sum(row.verdict is Verdict.ERROR for row in report.requirements),
        cards=(cards := scorecards.cards(report)),
        guarantees=_guarantees(cards),
        trust=trust(report),
        matrix_columns=matrix.columns(report),
        groups=groups,
        untried=tuple(group for group in groups if not group.tested),
        untested=tuple(row for row in report.requirements if row.verdict is None),
        strengths=tuple(line for group in groups for line in group.lines if line.strength),
        all_charted=len(report.scenarios) + len(report.controls) <= CHARTED_MAX,
        number_of=list(anchors).index,
        # In a list the seed of the run says nothing new.
        seeded=f"-{report.seed}",
        folder=_folder,
        anchor=lambda key: anchors.get(key, "top"),
        evidence=_Evidence(name=report.origin.resolve().name, has_page=report.origin.resolve() == directory.resolve()),
    )
    return linked(without_blanks(_with_cited(text)))


def _with_cited(page: str) -> str:
    """The page with the notes of the known bugs that it cites without a box, where the template leaves room for them."""
    boxes_of = {*re.findall(r'id="advice-(KB-\d\d)"', page)}
    others = sorted({*re.findall(r"\bKB-\d\d\b", page)} - boxes_of)
    notes = _environment().get_template("cited.html.j2").render(cited=[(each, note_on(each)) for each in others])
    return page.replace(CITED, notes)


def render_diff(comparison: BaselineComparison) -> str:
    """A page with the comparison of two runs only; without their reports it has no links."""
    template = _environment().get_template("diff.html.j2")
    return linked(without_blanks(template.render(comparison=comparison, sentences={}, proof=lambda _: "change")))


@cache
def _environment() -> Environment:
    made = environment()
    made.tests.update(is_fail=lambda verdict: verdict is Verdict.FAIL, is_pass=lambda verdict: verdict is Verdict.PASS)
    made.globals.update(
        draw=draw,
        draw_lanes=draw_lanes,
        coordinated=coordinated,
        paint=paint,
        period_floors=PERIOD_FLOORS,
        period_names=PERIOD_NAMES,
        unclear_of=_unclear_of,
        clear_of=_clear_of,
        reasons_shown=REASONS_SHOWN,
        places_shown=PLACES_SHOWN,
        decided_shown=DECIDED_SHOWN,
        untested_open=UNTESTED_OPEN,
        refuted_shown=REFUTED_SHOWN,
        word=wording.verdict_word,
        happened=wording.happened,
        seen=seen,
        sign=wording.verdict_sign,
        with_aside=wording.with_aside,
        scenario_word=wording.scenario_word,
        allowance=allowance,
        requirement_word=wording.requirement_word,
        build_note=build_note,
        judgement_word=wording.judgement_word,
        shown=wording.shown_verdict,
        meaning=wording.MEANING,
        decision_sign=wording.DECISION_SIGN,
        css_class=CSS_CLASS.__getitem__,
        columns=columns_of,
        change_sign=_CHANGE_SIGN,
        change_class=_change_class,
        examples_shown=EXAMPLES_SHOWN,
        examples_max=EXAMPLES_MAX,
        steps=steps,
        named_by=named_by,
        relation=_relation,
        counts_of=_counts_of,
        deciding_shown=DECIDING_SHOWN,
        brief=BRIEF_MAX,
        counted_as=_COUNTED_AS,
        damage_sentence=sentence,
        glossary=GLOSSARY,
        effort=effort,
        topic_of=topic_of,
        stage_cells=stage_cells,
    )
    return made


def _change_class(change: Change) -> str:
    """The CSS class of a change: red for a regression; an accepted violation has no colour."""
    return "fail" if change.is_regression else _CHANGE_CLASS.get(change.kind, "na")


def _anchors(report: Report) -> dict[str, str]:
    """A unique fragment per scenario, control and case; requirement ids keep theirs, because texts cite them."""
    taken = {
        *SECTIONS,
        *(place(row.id) for row in report.requirements),
        *(f"family-{place(row.family)}" for row in report.requirements),
        *(f"advice-{each}" for each in bugs()),
    }
    anchors: dict[str, str] = {}
    for scenario in (*report.tried, *report.controls):
        base = re.sub(r"[^A-Za-z0-9._-]+", "-", scenario.key).strip("-") or "scenario"
        name, number = base, 2
        while name in taken:
            name, number = f"{base}-{number}", number + 1
        taken.add(name)
        anchors[scenario.key] = name
    return anchors


def _proof_links(report: Report, anchors: Mapping[str, str]) -> Callable[[str], str]:
    """A function from key to the fragment of its proof: the first example, else the section."""
    firsts = {each.key for each in report.scenarios if each.first_violation and not each.clear}
    return lambda key: f"first-{anchors[key]}" if key in firsts else anchors.get(key, "top")


def _alerts_of(scenario: ScenarioReport) -> tuple[FiredAlert, ...]:
    """The alerts that fired in a scenario."""
    return (scenario.timeline.alerts if scenario.timeline else None) or ()


def _counted(tried: Sequence[Tried]) -> tuple[tuple[Verdict, int], ...]:
    """The number of each verdict that occurs, the worst first."""
    counts = Counter(each.verdict for each in tried)
    return tuple((verdict, counts[verdict]) for verdict in sorted(counts, reverse=True))


def _filtered(report: Report) -> tuple[Verdict | None, ...]:
    """The verdicts that occur on the page, the worst first; the reader can hide each."""
    occurring: set[Verdict | None] = {wording.shown_verdict(each) for each in (*report.scenarios, *report.controls)}
    occurring |= {each.verdict for each in report.cases} | {each.verdict for each in report.requirements}
    return tuple(each for each in _WORST_FIRST if each in occurring)


def _guarantees(cards: Sequence[scorecards.Card]) -> tuple[tuple[Verdict | None, str, list[str]], ...]:
    """The titles of the guarantees by verdict and word aside, the worst first, the untested last."""
    judging = [each for each in cards if not each.measured]
    groups = [
        (verdict, aside, [each.title for each in judging if (each.verdict, each.aside) == (verdict, aside)])
        for verdict in _WORST_FIRST
        for aside in ASIDES
    ]
    return tuple(each for each in groups if each[2])


def _counts_of(group: matrix.Group) -> tuple[tuple[Verdict | None, int], ...]:
    """The number of requirements of a family per verdict, the worst first, the untested last."""
    counted = ((verdict, group.count(verdict)) for verdict in _WORST_FIRST)
    return tuple((verdict, count) for verdict, count in counted if count)


def _relation(statement: StatementRow) -> str:
    """What stands before the expected value."""
    return EXPECTED_AS[Relation(statement.relation)]


def _folder(scenario: ScenarioReport) -> str:
    """The evidence directory of a scenario."""
    return f"{Path(scenario.evidence[0].path).parent.as_posix()}/"


_Decided = tuple[tuple[str, Verdict, str], ...]


def _unclear_of(row: RequirementRow) -> _Decided:
    """The scenarios and cases that did not pass a requirement, the worst first; all of them are shown."""
    return tuple(sorted((each for each in row.decided_by if each[1] > Verdict.PASS), key=lambda each: -each[1]))


def _clear_of(row: RequirementRow) -> _Decided:
    """The scenarios and cases that passed a requirement or to which it does not apply."""
    return tuple(each for each in row.decided_by if each[1] <= Verdict.PASS)
