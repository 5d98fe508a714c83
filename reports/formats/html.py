"""`report.html`: one file, no script, nothing loaded from elsewhere; made to be attached to a decision.

The answer comes first: decision, why, subject, counts, the command that repeats it. Then tables, then one section per
scenario with its proof, and of a protocol case with its script; cases that passed are folded at the end. Every scenario,
case and requirement has an anchor of its own. Verdicts are a sign and a word, so
the page reads without colour and without its style sheet (some CI servers strip it). Autoescape is on for everything;
text from outside also passes `words.plain`, so that no control character reaches the page.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment

from reports.deciding import matrix, scorecards
from reports.deciding.reasons import reasons
from reports.formats.charts.colours import paint
from reports.formats.charts.coordinators import chosen as coordinated
from reports.formats.charts.lanes import draw_lanes
from reports.formats.charts.rates import draw
from reports.formats.page_budget import detailed
from reports.formats.script_page import asked_of, held_of, steps
from reports.formats.templating import environment, place, without_blanks
from reports.model import wording
from reports.model.change import Change, ChangeKind, Comparison
from reports.model.findings import FindingReport
from reports.model.protocol_case import StatementRow, Tried
from reports.model.report import Report, RequirementRow, ScenarioReport
from verification.scripts.script import Relation
from verification.vocabulary.verdict import Verdict

#: Examples shown at once; some of the others are folded below them, and results.json has up to 32.
EXAMPLES_SHOWN = 4
EXAMPLES_MAX = 12
#: With more scenarios than this the page keeps charts for those that ask for attention; `trace.json` has all of them.
CHARTED_MAX = 60
#: The coverage items that belong to a time; a floor under any other name is in the table of coverage alone.
PERIOD_FLOORS = {"before": ("ok-before",), "during": ("attempted-during", "during"), "after": ("ok-after",)}
#: Links to the scenarios that pass a requirement; a nightly has dozens of them for some.
DECIDED_SHOWN = 6
#: Findings named on a card; more would hide the cards beside it.
REFUTED_SHOWN = 3
#: Grounds above the facts, and places of each; more would push what was tested off the first screen.
REASONS_SHOWN = 3
PLACES_SHOWN = 3
#: Statements in the table above a script; the script marks every one of them.
DECIDING_SHOWN = 6
#: Claims in the summary of a case that passed; its script has them all.
HELD_SHOWN = 5
#: Characters of a value in the overview; the section of the case has more.
BRIEF_MAX = 120
SECTIONS = (
    "top",
    "why",
    "change",
    "scorecards",
    "families",
    "runs",
    "scenarios",
    "controls",
    "cases",
    "requirements",
    "details",
    "passed",
    "about",
)
_CHANGE_SIGN = {
    ChangeKind.REGRESSED: "✗",
    ChangeKind.VANISHED: "✗",
    ChangeKind.NEWLY_INCONCLUSIVE: "?",
    ChangeKind.FIXED: "✓",
    ChangeKind.NEW: "+",
    ChangeKind.NO_LONGER_APPLICABLE: "–",
}
_CHANGE_CLASS = {ChangeKind.NEWLY_INCONCLUSIVE: "inconclusive", ChangeKind.FIXED: "pass"}
_WITNESS_COLUMNS = (
    ("record", "Record"),
    ("place", "Topic-partition@offset"),
    ("transaction", "Transaction"),
    ("producer", "Producer"),
    ("told", "Told"),
    ("observer", "Observer"),
    ("when", "When"),
    ("detail", "Detail"),
)
#: What the judge counted, in words.
_COUNTED_AS = {
    "log": "records and markers in the log",
    "uncommitted": "given to read_uncommitted",
    "committed": "given to read_committed",
    "transaction log": "entries of the transaction log",
}
#: Verdicts in the order of reading; None is untested.
_WORST_FIRST: tuple[Verdict | None, ...] = (*sorted(Verdict, reverse=True), None)
#: The class that colours a verdict; an untested requirement has the last one.
_CLASS = {
    Verdict.NOT_APPLICABLE: "na",
    Verdict.PASS: "pass",
    Verdict.INCONCLUSIVE: "inconclusive",
    Verdict.ERROR: "error",
    Verdict.FAIL: "fail",
    None: "untested",
}


def render(report: Report, directory: Path) -> str:
    """The whole page; links to evidence are relative to `directory`, where the page will stand."""
    anchors = _anchors(report)
    groups = matrix.groups(report)
    template = _environment().get_template("report.html.j2")
    text = template.render(
        report=report,
        judgement=report.judgement,
        sentences={row.id: row for row in report.requirements},
        details=(*report.worst_first, *report.controls),
        reasons=reasons(report),
        detailed=detailed(report),
        proof=_prover(report, anchors),
        counted=_counted(report.scenarios),
        counted_cases=_counted(report.cases),
        unclear_cases=tuple(each for each in report.cases_worst_first if not each.clear),
        passed_cases=tuple(each for each in report.cases if each.verdict is Verdict.PASS),
        inapplicable_cases=tuple(each for each in report.cases if each.verdict is Verdict.NOT_APPLICABLE),
        filtered=_filtered(report),
        tested=tuple(row for row in report.requirements if row.verdict is not None),
        cards=(cards := scorecards.cards(report)),
        guarantees=_guarantees(cards),
        matrix_columns=matrix.columns(report),
        groups=groups,
        strengths=tuple(line for group in groups for line in group.lines if line.strength),
        all_charted=len(report.scenarios) + len(report.controls) <= CHARTED_MAX,
        number_of=list(anchors).index,
        folder=_folder,
        anchor=lambda key: anchors.get(key, "top"),
        link=_linker(report.origin, directory),
    )
    return without_blanks(text)


def render_diff(comparison: Comparison) -> str:
    """A page that holds nothing but the difference of two runs; without their reports, nothing is linked."""
    template = _environment().get_template("diff.html.j2")
    return without_blanks(template.render(comparison=comparison, sentences={}, proof=lambda _: "change"))


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
        unclear_of=_unclear_of,
        clear_of=_clear_of,
        reasons_shown=REASONS_SHOWN,
        places_shown=PLACES_SHOWN,
        decided_shown=DECIDED_SHOWN,
        refuted_shown=REFUTED_SHOWN,
        word=wording.verdict_word,
        sign=wording.verdict_sign,
        scenario_word=wording.scenario_word,
        requirement_word=wording.requirement_word,
        shown=wording.shown_verdict,
        meaning=wording.MEANING,
        decision_sign=wording.DECISION_SIGN,
        exit_meaning=wording.EXIT_MEANING,
        css_class=_CLASS.__getitem__,
        columns=_columns,
        change_sign=_CHANGE_SIGN,
        change_class=_change_class,
        examples_shown=EXAMPLES_SHOWN,
        examples_max=EXAMPLES_MAX,
        steps=steps,
        asked_of=asked_of,
        held_of=held_of,
        held_shown=HELD_SHOWN,
        relation=_relation,
        counts_of=_counts_of,
        deciding_shown=DECIDING_SHOWN,
        brief=BRIEF_MAX,
        counted_as=_COUNTED_AS,
    )
    return made


def _change_class(change: Change) -> str:
    """What counts is red; a violation that was accepted beforehand is not coloured."""
    return "fail" if change.is_regression else _CHANGE_CLASS.get(change.kind, "na")


def _anchors(report: Report) -> dict[str, str]:
    """A unique fragment per scenario, control and case; requirement ids keep theirs, because people cite them."""
    taken = {
        *SECTIONS,
        *(place(row.id) for row in report.requirements),
        *(f"family-{place(row.family)}" for row in report.requirements),
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


def _prover(report: Report, anchors: Mapping[str, str]) -> Callable[[str], str]:
    """Where the proof about a scenario, control or case begins: its first violation where the page has one."""
    firsts = {each.key for each in report.scenarios if each.first_violation and not each.clear}
    return lambda key: f"first-{anchors[key]}" if key in firsts else anchors.get(key, "top")


def _linker(origin: Path, directory: Path) -> Callable[[str], str]:
    """Paths below `origin` as references from `directory`."""
    prefix = os.path.relpath(origin, directory)

    def link(path: str) -> str:
        joined = os.path.normpath(os.path.join(prefix, path))  # noqa: PTH118 - a reference, not a file
        slash = "/" if path.endswith("/") else ""
        return quote(joined, safe="/._-", errors="replace") + slash

    return link


def _counted(tried: Sequence[Tried]) -> tuple[tuple[Verdict, int], ...]:
    """How many per verdict, the worst first, verdicts that do not occur left out."""
    counts = Counter(each.verdict for each in tried)
    return tuple((verdict, counts[verdict]) for verdict in sorted(counts, reverse=True))


def _filtered(report: Report) -> tuple[Verdict | None, ...]:
    """The verdicts that rows and sections of the page have, the worst first; each can be hidden."""
    occurring: set[Verdict | None] = {wording.shown_verdict(each) for each in (*report.scenarios, *report.controls)}
    occurring |= {each.verdict for each in report.cases} | {each.verdict for each in report.requirements}
    return tuple(each for each in _WORST_FIRST if each in occurring)


def _guarantees(cards: Sequence[scorecards.Card]) -> tuple[tuple[Verdict | None, bool, list[str]], ...]:
    """The titles of the cards that judge, by verdict and whether it was accepted: the worst first, the untested last."""
    judging = [each for each in cards if not each.measured]
    groups = [
        (verdict, accepted, [each.title for each in judging if (each.verdict, each.accepted) == (verdict, accepted)])
        for verdict in _WORST_FIRST
        for accepted in (False, True)
    ]
    return tuple(each for each in groups if each[2])


def _counts_of(group: matrix.Group) -> tuple[tuple[Verdict | None, int], ...]:
    """How many sentences of a family per verdict, the worst first, the untested ones last."""
    counted = ((verdict, group.count(verdict)) for verdict in _WORST_FIRST)
    return tuple((verdict, count) for verdict, count in counted if count)


def _relation(statement: StatementRow) -> str:
    """How the expected value is meant, empty where it is simply that value."""
    return "" if statement.relation == Relation.EQUALS else f"{statement.relation.removeprefix('is ')} "


def _folder(scenario: ScenarioReport) -> str:
    """The directory that all of a scenario's evidence lies in."""
    return f"{Path(scenario.evidence[0].path).parent.as_posix()}/"


_Decided = tuple[tuple[str, Verdict, str], ...]


def _unclear_of(row: RequirementRow) -> _Decided:
    """Who did not pass a requirement, the worst first; all of them are named."""
    return tuple(sorted((each for each in row.decided_by if each[1] > Verdict.PASS), key=lambda each: -each[1]))


def _clear_of(row: RequirementRow) -> _Decided:
    """Who passed it, or said that it does not apply."""
    return tuple(each for each in row.decided_by if each[1] <= Verdict.PASS)


def _columns(finding: FindingReport) -> tuple[tuple[str, str], ...]:
    """The columns in which at least one example has something to say."""
    return tuple(
        (name, title) for name, title in _WITNESS_COLUMNS if any(getattr(each, name) for each in finding.witnesses)
    )
