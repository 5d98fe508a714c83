"""Look for statements of a report that contradict each other: on the page, in summary.md, in results.json, in the model.

Each check yields a sentence for each contradiction. `CHECKS` has all of them; a report without any is consistent.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from reports.deciding import matrix
from reports.deciding.impact import readers_of
from reports.deciding.scorecards import cards
from reports.formats import terminal
from reports.formats.write import write_all
from reports.model.protocol_case import aside_of
from reports.model.report import Report
from reports.model.wording import with_aside
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.releases import SUPPORTED, parse, within
from verification.vocabulary.verdict import Verdict

#: Texts of Python values: None as a value, True and False outside JSON and names, a dictionary or list of texts.
PYTHON = re.compile(
    r"[\[({:,=] ?None\b|\bNone[\]})]|\bNone is |\b(?:True|False)[\]},]|\{'|\['|`\[\[\d+`|<\w+\.\w+ object|<\w+\.\w+: "
)
#: The anomalies of records that readers do not receive.
UNSEEN = (Anomaly.HUNG_TRANSACTION, Anomaly.HIDDEN_COMMITTED)
#: Times are kept in nanoseconds and shown in tenths of a second.
ROUNDED_S = 0.01
RELEASE = r"\d+\.\d+\.\d+"
RANGE = rf"{RELEASE}(?: to {RELEASE})?"


#: The sentences that count violations, and how many of them decide; all do where only one number is said.
_HEADLINE = re.compile(
    r"\b(\d+) (?:of \d+ [\w ]+? proved a violation|tests? of \d+ fails?)(?:(?:, and|;) (\d+) of them decides?)?"
)


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A report as a user has it: its model, and the texts of its formats."""

    report: Report
    page: str
    summary: str
    results: Mapping[str, Any]
    terminal: str

    @cached_property
    def text(self) -> str:
        """The words of the page."""
        return words(self.page)

    def box(self, bug: str) -> str:
        """The words of the advice on a known bug; empty where it has none."""
        found = re.search(
            rf'<details class="advice"[^>]*>(?:(?!</details>).)*id="advice-{bug}".*?</details>', self.page, re.DOTALL
        )
        return words(found[0]) if found else ""

    def rows(self, section: str) -> list[str]:
        """The rows of the first table in a section of the page."""
        found = re.search(rf'<section id="{section}">.*?</section>', self.page, re.DOTALL)
        return re.findall(r"<tr data-verdict.*?</tr>", found[0], re.DOTALL) if found else []


def shown(report: Report) -> Shown:
    """The report with its formats, which are written next to its evidence."""
    files = {each.name: each.read_text(encoding="utf-8") for each in write_all(report, report.origin).files}
    return Shown(
        report=report,
        page=files["report.html"],
        summary=files["summary.md"],
        results=json.loads(files["results.json"]),
        terminal=terminal.render(report),
    )


def words(markup: str) -> str:
    """The text of a piece of the page, without tags, styles and pictures, with single blanks."""
    bare = re.sub(r"<(style|svg)\b.*?</\1>", " ", markup, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", bare)).split())


def failures_add_up(seen: Shown) -> Iterator[str]:
    """The headline, the facts and the tables have the same numbers of violations, and of those that decide."""
    failed = [each for each in seen.report.tried if each.verdict is Verdict.FAIL]
    deciding = sum(not each.aside for each in failed)
    for section, noun in (("scenarios", "Scenarios"), ("cases", "Protocol cases")):
        rows = [each for each in seen.rows(section) if "FAIL" in words(each.partition("</td>")[0])]
        said = re.search(rf"<dt>{noun}</dt><dd>\s*(?:(\d+) FAIL)?", seen.page)
        if said and f'<section id="{section}">' in seen.page and int(said[1] or 0) != len(rows):
            yield f"{said[1]} FAIL in the facts about {noun}, and {len(rows)} in the table"
    for said in _HEADLINE.finditer(f"{seen.report.judgement.why} {seen.summary} {seen.text}"):
        proved, decide = int(said[1]), int(said[2] or said[1])
        if (proved, decide) != (len(failed), deciding):
            yield f"{said[0]!r}, but {len(failed)} proved a violation and {deciding} decide"


def impact_has_what_was_shown(seen: Shown) -> Iterator[str]:
    """Where a case gave a reader a record that it must not have, no impact of the run says that none was shown."""
    cases = [each for each in seen.report.cases if each.verdict is Verdict.FAIL]
    gave = [each.key for each in cases if readers_of(each).shown]
    impact = re.search(r"\*\*Impact\*\*.*", seen.summary)
    none = re.compile(r"\b0 shown\b|[Nn]o record reached a reader wrongly")
    if gave and impact and none.search(impact[0]):
        yield f"the impact says that nothing was shown, but {gave[0]} gave a reader a record that it must not have"
    if (
        impact
        and html.unescape(impact[0].removeprefix("**Impact**: ")).split()[:4]
        != seen.text.partition("Impact: ")[2].split()[:4]
    ):
        yield "the impact on the page differs from that of summary.md"


def releases_agree(seen: Shown) -> Iterator[str]:
    """No box of a known bug says of the run's release, or of one that is known to have it, that it was not tried."""
    own = seen.report.subject.release if not seen.report.parts else ""
    for bug in re.findall(r'id="advice-(KB-\d\d)"', seen.page):
        box = seen.box(bug)
        known = [each.split(" to ") for each in re.findall(RANGE, _between(box, "Known in ", ";"))]
        not_tried, clean = (_listed(box, heading) for heading in ("Not tried", "Measured clean"))
        if own and any(_holds(each, own) for each in not_tried):
            yield f"{bug}: {own}, the release of this run, is among those that were not tried"
        for each in (*not_tried, *clean):
            if ends := [end for end in each.split(" to ") if any(within(end, one[0], one[-1]) for one in known)]:
                yield f"{bug}: known in {ends[0]}, and listed as clean or not tried"


def _listed(box: str, heading: str) -> list[str]:
    """The releases below a heading of a box, without those of a variant, which is named before a colon."""
    text = _between(box, f"{heading} (?=[0-9a-zA-Z])", "Measured|Taken to|Not tried|Fixed in|; and every|$")
    return [each for part in text.split("; ") if ": " not in part for each in re.findall(RANGE, part)]


def _between(text: str, first: str, last: str) -> str:
    found = re.search(rf"{first}(.*?)(?:{last})", text, re.DOTALL)
    return found[1] if found else ""


def _holds(releases: str, release: str) -> bool:
    first, _, last = releases.partition(" to ")
    return parse(first) <= parse(release) <= parse(last or first)


def fixes_are_released(seen: Shown) -> Iterator[str]:
    """A fix in a release that this version does not know as released is announced, not stated."""
    for place, text in (("the page", seen.text), ("summary.md", seen.summary)):
        for release in re.findall(rf"\bfixed in ({RELEASE})", text):
            if parse(release) > parse(SUPPORTED[-1]):
                yield f"{place} says that {release}, which is not released, has a fix"


def risks_agree(seen: Shown) -> Iterator[str]:
    """Where records are at risk, no advice says that no record is wrong."""
    for bug in re.findall(r'id="advice-(KB-\d\d)"', seen.page):
        box = seen.box(bug)
        if "Records are at risk" in box and re.search(r"\bno record is (?:wrong|concerned)\b", box):
            yield f"{bug}: records are at risk, and no record is wrong"


def times_cover_exchanges(seen: Shown) -> Iterator[str]:
    """The time of a case is not shorter than its exchanges; where times add to more than the run, the page says why."""
    for each in seen.report.cases:
        last = each.exchanges[-1] if each.exchanges else None
        ended_s = (last.at_ms + (last.took_ms or 0)) / 1_000 if last else 0.0
        if each.actual_s is not None and each.actual_s < ended_s - ROUNDED_S:
            yield f"{each.key} took {each.actual_s:.1f} s, and its last exchange ended at {ended_s:.1f} s"
    lasted = sum(each.actual_s or 0.0 for each in (*seen.report.scenarios, *seen.report.controls))
    if lasted > seen.report.duration_s > 0 and "at the same time" not in seen.text:
        yield "the scenarios lasted longer than the run, and the page does not say that they overlap"


def operations_add_up(seen: Shown) -> Iterator[str]:
    """The rows of operations add up to their number; floors and the impact count the same operations."""
    for each in (*seen.report.scenarios, *seen.report.controls):
        periods = each.timeline.periods if each.timeline else ()
        if not periods:
            continue
        total = dict(each.counts).get("operations", 0)
        rows = sum(one.ok + one.fail + one.info for one in periods)
        if total and rows != total:
            yield f"{each.key}: {total} operations, and {rows} in the rows"
        by_name = {one.name: one for one in periods}
        floors = {one.name.replace("_", "-"): one.have for one in each.coverage}
        for floor, counts in (
            ("ok-before", by_name["before"].ok),
            ("attempted-during", by_name["during"].ok + by_name["during"].fail + by_name["during"].info),
            ("ok-after", by_name["after"].ok),
        ):
            if floors.get(floor, counts) != counts:
                yield f"{each.key}: the floor {floor} has {floors[floor]}, and the table {counts}"
        if (
            each.damage
            and each.damage.during_fault
            and each.damage.acknowledged_during_fault != by_name["during"].acknowledged
        ):
            yield (
                f"{each.key}: {each.damage.acknowledged_during_fault} acknowledged during a fault in the impact, and "
                f"{by_name['during'].acknowledged} in the table"
            )


def families_follow_their_rows(seen: Shown) -> Iterator[str]:
    """The verdict of a requirement is the worst of its proofs, that of a family the worst of its rows, in equal words."""
    for row in seen.report.requirements:
        if row.decided_by and row.verdict is not Verdict.worst(verdict for _, verdict, _ in row.decided_by):
            yield f"{row.id} is {row.verdict}, which is not the worst verdict of its scenarios and cases"
        if row.level == "INFO" and row.verdict is Verdict.FAIL:
            yield f"{row.id} describes and cannot fail, but it is FAIL"
    for group in matrix.groups(seen.report):
        failed = [each.row.aside for each in group.lines if each.row.verdict is Verdict.FAIL]
        word = with_aside("FAIL", aside_of(failed)) if failed else ""
        card = re.search(
            rf'<li class="card[^>]*>\s*<h3><a href="#family-{group.family}">.*?</li>', seen.page, re.DOTALL
        )
        if word and card and not re.search(rf"✗ {word} \d", words(card[0])):
            yield f"the card of the family {group.family} does not say {word!r}, as its rows do"
    for card in cards(seen.report):
        if card.verdict is Verdict.FAIL and card.aside != aside_of(each.aside for each in card.refuted):
            yield f"the card {card.title} says {card.aside!r}"


def no_python_values(seen: Shown) -> Iterator[str]:
    """No text for a user has a Python value."""
    for place, text in (("the page", seen.text), ("summary.md", seen.summary), ("the terminal", seen.terminal)):
        for found in PYTHON.finditer(text):
            yield f"{place} has a Python value: {text[max(0, found.start() - 60) : found.end() + 30]!r}"


def known_bugs_are_explained(seen: Shown) -> Iterator[str]:
    """Each known bug that the page cites is explained on it."""
    explained = set(re.findall(r'id="(?:advice|cited)-(KB-\d\d)"', seen.page))
    for bug in sorted(set(re.findall(r"\bKB-\d\d\b", seen.text)) - explained):
        yield f"{bug} is cited, and the page does not explain it"


def passes_name_known_bugs(seen: Shown) -> Iterator[str]:
    """A requirement that passed by the traces of a known bug alone says so."""
    traced = {each.key: each.traces for each in seen.report.tried if each.verdict is Verdict.PASS and each.traces}
    for key, traces in traced.items():
        if not all(trace.bug in seen.text and trace.bug in seen.summary for trace in traces):
            yield f"{key} passed with the signature of {traces[0].bug}, and a format does not name it"
    for row in seen.report.requirements:
        if row.verdict is Verdict.PASS and any(key in traced for key, _, _ in row.decided_by) and not row.seen:
            yield f"{row.id} is a clean PASS, although a case that decides it shows a known bug"


def alerts_agree(seen: Shown) -> Iterator[str]:
    """An alert on the last stable offset that holds to the end names the partitions that are held back, and no other."""
    for each in seen.report.scenarios:
        held = {one.place for one in (each.damage.held if each.damage and each.damage.held else ())}
        for alert in (each.timeline.alerts if each.timeline else None) or ():
            if alert.name == "stable-offset" and alert.ended_s is None and each.damage and each.damage.held is not None:
                named = set(re.findall(r"[\w.-]+-\d+", alert.to_the_end))
                if " more" in alert.to_the_end or named != held:
                    yield f"{each.key}: the alert holds to the end of {sorted(named)}, and {sorted(held)} are held back"


def summary_agrees(seen: Shown) -> Iterator[str]:
    """summary.md has the sentence of the decision and the verdicts of the page."""
    if _bare(seen.report.judgement.why) not in _bare(seen.summary):
        yield "summary.md has another sentence about the decision"
    shortened = "more lines are not shown here" in seen.summary
    for each in (*seen.report.scenarios, *seen.report.cases):
        if each.verdict > Verdict.PASS and f"`{each.key}`" not in seen.summary and not shortened:
            yield f"summary.md does not name {each.key}"
    for name, place in (("scenarios", seen.report.scenarios), ("cases", seen.report.cases)):
        found = {each["id"]: each["verdict"] for each in seen.results.get(name, [])}
        if found != {each.key: each.verdict.name for each in place}:
            yield f"results.json has other verdicts on {name}"


def first_examples_are_victims(seen: Shown) -> Iterator[str]:
    """Of records that no reader received, the first example is one: no read_committed reader received it."""
    for scenario in seen.report.scenarios:
        for finding in scenario.findings:
            first = finding.witnesses[0].place if finding.witnesses and finding.anomaly in UNSEEN else ""
            given = [each.committed for each in finding.around if each.place == first]
            if any(count not in ("", "0") for count in given):
                yield f"{scenario.key}: the first example of {finding.anomaly}, {first}, was received {given[0]} times"


def _bare(text: str) -> str:
    return re.sub(r"[`\\]", "", " ".join(text.split()))


def plurals_fit(seen: Shown) -> Iterator[str]:
    """One thing is in the singular."""
    nouns = "famili|scenario|case|control|operation|record|finding|requirement|fault|release|partition|offset|time"
    for found in re.finditer(rf"(?<![\d.,\u202f@-])\b1 (?:{nouns})(?:es|s)\b", seen.text):
        yield f"a plural of one: {found[0]!r}"


Check = Callable[[Shown], Iterator[str]]

CHECKS: tuple[Check, ...] = (
    failures_add_up,
    impact_has_what_was_shown,
    releases_agree,
    fixes_are_released,
    risks_agree,
    times_cover_exchanges,
    operations_add_up,
    families_follow_their_rows,
    no_python_values,
    known_bugs_are_explained,
    passes_name_known_bugs,
    alerts_agree,
    first_examples_are_victims,
    summary_agrees,
    plurals_fit,
)


def contradictions(seen: Shown, *, but: tuple[Check, ...] = ()) -> list[str]:
    """Every contradiction of a report, in the order of the checks, without those `but`."""
    return [f"{check.__name__}: {each}" for check in CHECKS if check not in but for each in check(seen)]
