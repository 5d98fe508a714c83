"""`summary.md`: the report for the page of a CI step, short, without local links, always below 50 kB.

A reader sees one screen, so the worst comes first and reasons are cut to a line. Texts from outside pass the functions
of `reports.formats.markdown`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from reports.deciding.advice_boxes import boxes
from reports.deciding.answer import answer
from reports.deciding.effort import effort
from reports.deciding.impact import impact
from reports.deciding.own_builds import build_note
from reports.deciding.proof_conditions import proof_conditions
from reports.deciding.reasons import Reason, reasons
from reports.deciding.scorecards import cards
from reports.deciding.trust import trust
from reports.deciding.upgrade_cost import upgrade_cost
from reports.formats.markdown import NAME_MAX, REASON_MAX, bounded, code, literal, strong, with_code
from reports.formats.stage_cells import SHORT_COLUMNS, short_rows
from reports.model.clock import moment
from reports.model.protocol_case import ScriptCase
from reports.model.report import Report, ScenarioReport
from reports.model.wording import (
    DECISION_SIGN,
    counted,
    happened,
    judgement_word,
    scenario_word,
    seconds,
    shown_verdict,
    verdict_sign,
    verdict_word,
)
from verification.known_bugs.weight import Weight
from verification.vocabulary.harm import seen
from verification.vocabulary.verdict import Verdict, allowance

#: Reasons below the decision, and places of each.
REASONS_MAX = 8
PLACES_MAX = 3
#: Known bugs with their advice; the page has all.
ADVISED_MAX = 2
#: Groups of untested requirements with one reason; a part of a profile leaves most of them untested.
UNTESTED_MAX = 12


def render(report: Report) -> str:
    """The whole file."""
    return bounded(_lines(report), page="report.html")


def _lines(report: Report) -> Iterator[str]:
    judgement = report.judgement
    yield (
        f"## {DECISION_SIGN[judgement.decision]} {judgement.decision} ({judgement.rule}) · {judgement_word(judgement)}"
        + (f" · {literal(report.subject.beyond_release)}" if report.subject.beyond_release else "")
    )
    yield ""
    said = answer(report)
    yield f"**{literal(said.harm, 600)}** {literal(said.tests, 600)}"
    yield ""
    when = [f"**When**: {literal(said.condition, 600)}"] if said.condition else []
    shown_with = [literal(line, 600) for line in (proof_conditions(report),) if line]
    yield from (line for text in (*when, *shown_with) for line in (text, ""))
    yield f"**What to do**: {with_code(f'{said.clean} {said.todo}')}"
    yield ""
    if said.forward:
        yield f"**To forward**: {literal(said.forward, 1_000)}"
        yield ""
    yield f"**In detail**: {literal(judgement.why, 1_000)}"
    yield ""
    if hit := impact(report):
        yield f"**Impact**: {literal(hit, 600)}"
        yield ""
    if cost := upgrade_cost(report):
        yield f"**For applications**: {literal(cost, 600)}"
        yield ""
    every = reasons(report)
    yield from _reasons([each for each in every if not each.is_aside])
    yield from _advice(report)
    yield from _asides([each for each in every if each.is_aside])
    yield f"Subject: {literal(_subject(report), 500)}  "
    if note := build_note(report.subject):
        yield f"{literal(note, 500)}  "
    unknown = "" if report.is_protocol_run or report.parts else "seed unknown, "
    seed = unknown if report.seed is None else f"seed {report.seed}, "
    yield f"Profile {literal(report.profile or '–', REASON_MAX)}, {seed}{seconds(report.duration_s)}, " + (
        f"started {literal(moment(report.started))}" if report.started else "start unknown"
    )
    if report.replay:
        yield ""
        yield f"Re-run: {code(report.replay, 2_000)}" + (f"; made by {literal(report.suite)}" if report.suite else "")
    yield from _runs(report)
    yield from _change(report)
    if not report.is_protocol_run:
        yield from _guarantees(report)
    yield from _upgrades(report)
    yield from _table("Scenarios", report.worst_first)
    for each in report.worst_first:
        if each.judge:
            yield from ("", f"Judge {code(each.key, NAME_MAX)} without a cluster: {code(each.judge, 1_000)}")
    yield from _table("Controls", report.controls)
    yield from _findings(report)
    yield from _cases(report)
    yield from _traces(report)
    yield from _problems(report)
    yield from _untested(report)


def _untested(report: Report) -> Iterator[str]:
    """The untested requirements, each with the command that decides it, or with the reason why none does."""
    reasons_of: dict[str, list[str]] = {}
    for each in report.requirements:
        if each.verdict is None:
            reasons_of.setdefault(each.untested, []).append(each.id)
    total, untested = len(report.requirements), sum(map(len, reasons_of.values()))
    yield ""
    yield f"This run tested {total - untested} of {total} requirements of the catalogue."
    if reasons_of:
        yield ""
    for why, ids in list(reasons_of.items())[:UNTESTED_MAX]:
        yield f"- {', '.join(map(code, ids))}: {with_code(why)}"
    if (rest := len(reasons_of) - UNTESTED_MAX) > 0:
        yield f"- and {rest} more groups, which are on the page"


def _reasons(all_reasons: Sequence[Reason]) -> Iterator[str]:
    """The reasons for the decision; the tables below have all details."""
    for each in all_reasons[:REASONS_MAX]:
        accepted = " (accepted)" if each.accepted else ""
        yield f"- {verdict_sign(each.verdict)} {strong(each.name, NAME_MAX)}{accepted} {literal(each.text, 400)}"
        places = [f"{code(one.key, NAME_MAX)}: {literal(one.what, REASON_MAX)}" for one in each.places[:PLACES_MAX]]
        rest = len(each.places) - PLACES_MAX
        yield "  " + " · ".join([*places, *([f"and {rest} more"] if rest > 0 else [])])
    if (rest := len(all_reasons) - REASONS_MAX) > 0:
        yield f"- and {rest} more"
    if all_reasons:
        yield ""


def _asides(every: Sequence[Reason]) -> Iterator[str]:
    """The standing risks and deviations."""
    for weight in (Weight.RISK, Weight.DEVIATION):
        if shown := [each for each in every if each.weight is weight]:
            yield f"{counted(len(shown), str(weight)).capitalize()}, which the default rule does not count:"
            yield ""
            yield from (f"- {strong(each.name, NAME_MAX)} {literal(each.text, REASON_MAX)}" for each in shown)
            yield ""


def _advice(report: Report) -> Iterator[str]:
    """The known bugs that decide the run: whom they concern, and what to do."""
    for box in [each for each in boxes(report) if each.deciding][:ADVISED_MAX]:
        yield f"{strong(box.id, NAME_MAX)}, does this concern you, and what to do:"
        yield ""
        yield f"- What is at risk: {literal(box.risk, 400)}"
        for heading, part in box.parts:
            # Whole: half a repair can do harm, and the last condition may be the reader's.
            yield f"- {heading}: {' '.join(map(with_code, part.points))}"
        for heading, releases in box.releases:
            yield f"- {heading}: {literal(releases, REASON_MAX)}"
        yield ""


def _subject(report: Report) -> str:
    clients = [
        f"{each.name}: {each.library}, transaction version {each.protocol}"
        if each.recorded
        else f"{each.name}: not recorded"
        for each in report.subject.clients
    ]
    subject = report.subject
    tested = subject.beyond_release or f"Apache Kafka {subject.release}"
    return f"{tested} ({subject.runtime}); " + "; ".join(clients)


def _guarantees(report: Report) -> Iterator[str]:
    """One line: every guarantee with its sign, never a sum of them."""
    judged = [each for each in cards(report) if not each.measured]
    shown = (
        f"{verdict_sign(each.verdict)} {each.title}" + (f" ({each.aside})" if each.aside else "") for each in judged
    )
    yield from ("", "Guarantees: " + " · ".join(shown))
    if (tried := trust(report)) is not None:
        yield from ("", literal(" ".join(tried.sentences), 1_000))


def _runs(report: Report) -> Iterator[str]:
    """The directories of a merged report."""
    if not report.parts:
        return
    yield from ("", "### Runs", "", "| run | subject | decision | directory |", "|---|---|---|---|")
    for part in report.parts:
        name, subject, decision = part.name or "not counted", part.subject or "–", part.decision or "–"
        about = f"{part.directory}: {part.note}" if part.note else part.directory
        row = (literal(name, NAME_MAX), literal(subject, REASON_MAX), literal(decision), literal(about, 300))
        yield f"| {' | '.join(row)} |"


def _change(report: Report) -> Iterator[str]:
    """The changes since the baseline, or since that of each merged run; unchanged cases are only a number."""
    if not report.comparisons:
        yield ""
        yield "Changes: no baseline was given; `--baseline FILE` compares with the `results.json` of an earlier run."
    for run, comparison in report.comparisons:
        of = f" of {literal(run, NAME_MAX)}" if run else ""
        yield from ("", f"### Change since the baseline{of}", "")
        yield f"Baseline: {literal(comparison.baseline.title, 300)}. {literal(comparison.sentence, REASON_MAX)}."
        if comparison.changes:
            yield from ("", "| change | case | before | now | why |", "|---|---|---|---|---|")
        for each in comparison.changes:
            before, now = (word.replace("_", " ") for word in (each.before or "absent", each.now or "absent"))
            accepted = ", accepted" if each.accepted else ""
            row = (
                each.kind.value,
                code(each.id, NAME_MAX),
                literal(before, NAME_MAX),
                literal(now, NAME_MAX) + accepted,
            )
            yield f"| {' | '.join(row)} | {literal(each.reason, REASON_MAX)} |"


def _upgrades(report: Report) -> Iterator[str]:
    """A row for each stage of each upgrade."""
    for scenario in report.worst_first:
        if scenario.upgrade is None or not scenario.upgrade.stages:
            continue
        upgrade = scenario.upgrade
        compared = f", in brackets: {upgrade.baseline_word}" if upgrade.baseline else ""
        yield from ("", f"### Stages of {code(scenario.key, NAME_MAX)}{literal(compared)}", "")
        yield f"| {' | '.join(SHORT_COLUMNS)} |"
        yield "|" + "---|" * len(SHORT_COLUMNS)
        yield from (f"| {' | '.join(literal(cell, NAME_MAX) for cell in row)} |" for row in short_rows(upgrade))


def _table(title: str, scenarios: tuple[ScenarioReport, ...]) -> Iterator[str]:
    if not scenarios:
        return
    yield from ("", f"### {title}", "", "| verdict | id | time | reason |", "|---|---|---|---|")
    for each in scenarios:
        sign = verdict_sign(shown_verdict(each))
        word = scenario_word(each)
        passed = each.verdict is Verdict.PASS and not each.control
        said = "; ".join(filter(None, (allowance(each.allowed), effort(each)))) if passed else each.reason
        key, reason = code(each.key, NAME_MAX), literal(said, REASON_MAX)
        yield f"| {sign} {word} | {key} | {seconds(each.actual_s)} | {reason} |"


def _findings(report: Report) -> Iterator[str]:
    failed = [each for each in report.worst_first if each.findings]
    if not failed:
        return
    yield from ("", "### Violations", "")
    for scenario in failed:
        for finding in scenario.findings:
            bug = f", known bug {literal(finding.known_bug, NAME_MAX)}" if finding.known_bug else ""
            accepted = ", accepted" if finding.accepted else ""
            name, place = strong(finding.anomaly, NAME_MAX), code(scenario.key, NAME_MAX)
            yield f"- {literal(seen(finding.anomaly, finding.count))} ({name}) in {place}{bug}{accepted}"
            for example in finding.witnesses[:1]:
                facts = (example.place, example.record, example.transaction, example.fault, example.detail)
                yield f"  {literal(' · '.join(each for each in facts if each), 400)}"
        if scenario.replay and scenario.verdict is Verdict.FAIL:
            yield f"  re-run: {code(scenario.replay, 1_000)}"


def _cases(report: Report) -> Iterator[str]:
    """The cases that did not pass; the others only as numbers."""
    if not report.cases:
        return
    counts = Counter(each.verdict for each in report.cases)
    yield from ("", "### Protocol cases", "")
    yield ", ".join(f"{counts[each]} {verdict_word(each)}" for each in sorted(counts, reverse=True))
    unclear = [each for each in report.cases_worst_first if not each.clear]
    if unclear:
        yield from ("", "| verdict | id | requirements | result |", "|---|---|---|---|")
    for each in unclear:
        ids = ", ".join(one.id for one in each.requirements)
        known = "".join(f", known {one.id}" for one in each.known if one.named)
        word = f"{verdict_sign(each.verdict)} {scenario_word(each)}{known}"
        row = (literal(word), code(each.key, NAME_MAX), literal(ids, REASON_MAX), _result(each))
        yield f"| {' | '.join(row)} |"


def _result(case: ScriptCase) -> str:
    """What happened, in the words of the page, else the reason."""
    return literal(happened(case) or case.reason, REASON_MAX)


def _traces(report: Report) -> Iterator[str]:
    """The passes that show a known bug."""
    shown = [(each.key, trace) for each in report.tried for trace in each.traces]
    yield from ("", "### Passes that show a known bug", "") if shown else ()
    for key, trace in shown:
        yield f"- {code(key, NAME_MAX)}: {strong(trace.bug, NAME_MAX)}, {literal(trace.text, REASON_MAX)}"


def _problems(report: Report) -> Iterator[str]:
    if report.problems:
        yield from ("", "### Incomplete evidence", "")
        for each in report.problems:
            yield f"- {code(each.place, NAME_MAX)}: {literal(each.text, 300)}"
