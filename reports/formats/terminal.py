"""The text printed at the end of a run: decision, table, path of the report, and details of all that did not pass.

The details of a scenario take at most 12 lines: enough for the record, its producer and the fault. The command that
repeats it follows on its own line and is never cut. Colour only repeats sign and word. It is used on a terminal, never
when NO_COLOR is set, and always when FORCE_COLOR is set (NO_COLOR wins).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TextIO

from reports.deciding.answer import answer
from reports.deciding.impact import impact
from reports.deciding.own_builds import build_note
from reports.deciding.reasons import reasons
from reports.deciding.upgrade_cost import upgrade_cost
from reports.deciding.windows import WatchedWindow, windows
from reports.formats.upgrade_lines import upgrade_lines
from reports.model.findings import Example, FindingReport
from reports.model.protocol_case import ScriptCase
from reports.model.report import ControlResult, Report, ScenarioReport
from reports.model.wording import (
    DECISION_SIGN,
    counted,
    happened,
    judgement_word,
    one_line,
    plain,
    scenario_word,
    seconds,
    shown_verdict,
    verdict_sign,
    verdict_word,
)
from verification.known_bugs.weight import Weight
from verification.scripts.script import EXPECTED_AS, Relation
from verification.vocabulary.verdict import Decision, Verdict

WITNESS_LINES_MAX = 12
#: Statements shown per case; each takes three lines.
DECIDING_MAX = 2
#: Cases shown with details; a broker that does not start breaks every case.
CASES_MAX = 20
#: Violations named below the decision, one line each; details follow below.
REASONS_MAX = 5
#: Regressions shown; the screen must still show the decision above them.
CHANGES_MAX = 12
#: Longer lines would wrap on an ordinary terminal.
LINE_MAX = 118
_RESET = "\x1b[0m"
_COLOUR = {
    Verdict.NOT_APPLICABLE: "\x1b[2m",
    Verdict.PASS: "\x1b[32m",
    Verdict.INCONCLUSIVE: "\x1b[33m",
    Verdict.ERROR: "\x1b[35m",
    Verdict.FAIL: "\x1b[31m",
}
_DECISION_COLOUR = {
    Decision.GO: "\x1b[1;32m",
    Decision.NO_GO: "\x1b[1;31m",
    Decision.UNDECIDED: "\x1b[1;33m",
}


def colour_wanted(stream: TextIO, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether to colour the output to `stream`."""
    if environment.get("NO_COLOR"):
        return False
    return bool(environment.get("FORCE_COLOR")) or stream.isatty()


def render(report: Report, *, page: Path | None = None, colour: bool = False) -> str:
    """The text; `page` is the path of report.html."""
    return "\n".join([*_head(report, colour=colour), *_body(report, page, colour=colour)]) + "\n"


def witness_lines(scenario: ScenarioReport) -> tuple[str, ...]:
    """The details of one scenario that did not pass, in at most 12 lines."""
    lines = [f"{verdict_sign(shown_verdict(scenario))} {scenario_word(scenario)}  {scenario.key}"]
    if scenario.claim:
        lines.append(f"  {_claim(scenario)}{scenario.claim}")
    if scenario.reason:
        lines.append(f"  reason   {scenario.reason}")
    if scenario.control and scenario.control_result is ControlResult.MISSED:
        found = ", ".join(each.anomaly for each in scenario.findings) or "nothing"
        lines.append(f"  expected {', '.join(scenario.expects) or 'not recorded'}; found {found}")
    # Lines left after one line per finding go to the facts of the first findings.
    room = WITNESS_LINES_MAX - len(lines) - max(0, len(scenario.findings) - 1)
    for each in scenario.findings:
        facts = _facts(each.witnesses[0]) if each.witnesses and room > 1 else ()
        shown = [_named(each), *facts[: max(0, room - 1)]]
        room -= len(shown) - 1
        lines += shown
    lines += [
        f"  coverage {item.name}: {item.have} of {item.need} needed"
        for item in scenario.coverage
        if not item.met and scenario.verdict is Verdict.INCONCLUSIVE
    ]
    if len(lines) > WITNESS_LINES_MAX:
        rest = len(lines) - WITNESS_LINES_MAX + 1
        lines = [*lines[: WITNESS_LINES_MAX - 1], f"  … {rest} more in the report"]
    return tuple(one_line_kept(each) for each in lines)


def case_lines(case: ScriptCase) -> tuple[str, ...]:
    """The details of one protocol case that did not pass, in at most 12 lines."""
    lines = [f"{verdict_sign(case.verdict)} {scenario_word(case)}  {case.key}"]
    if case.claim:
        lines.append(f"  {_claim(case)}{case.claim}")
    if not case.deciding:
        lines.append(f"  reason   {case.reason}")
    for each in case.deciding[:DECIDING_MAX]:
        lines += [
            f"  {'needed' if each.required else 'checked':<8} {each.what}",
            f"  expected {EXPECTED_AS[Relation(each.relation)]}{each.expected}",
            f"  observed {each.observed}",
        ]
    if (rest := len(case.deciding) - DECIDING_MAX) > 0:
        lines.append(f"  … {rest} more in the report")
    lines += [f"  known    {each.id}: {each.note}" for each in case.known if each.named]
    return tuple(one_line_kept(each) for each in lines[:WITNESS_LINES_MAX])


def _claim(tried: ScenarioReport | ScriptCase) -> str:
    """The label of a claim: after a violation it says what should have happened."""
    return "must be  " if happened(tried) else "claim    "


def one_line_kept(line: str) -> str:
    """One line with its indentation, cut to the width of a terminal."""
    indent = line[: len(line) - len(line.lstrip(" "))]
    label, gap, rest = line.strip().partition("  ")
    text = (
        f"{one_line(label)}{gap}{' ' * (len(rest) - len(rest.lstrip(' ')))}{one_line(rest)}"
        if rest
        else one_line(label)
    )
    cut = indent + text
    return cut if len(cut) <= LINE_MAX else cut[: LINE_MAX - 1] + "…"


def _named(finding: FindingReport) -> str:
    bug = f", known bug {finding.known_bug}" if finding.known_bug else ""
    several = "" if finding.consequences == 1 else "s"
    consequences = f", explains {finding.consequences} more violation{several}" if finding.consequences else ""
    accepted = ", accepted" if finding.accepted else ""
    reader = f", by {finding.reader} as a reader alone" if finding.reader else ""
    return f"  found    {finding.anomaly} × {finding.count}{bug}{reader}{consequences}{accepted}"


def _facts(witness: Example) -> tuple[str, ...]:
    where = " · ".join(each for each in (witness.record, witness.place) if each)
    client = " · ".join(
        each
        for each in (
            f"producer {witness.producer}" if witness.producer else "",
            f"answer {witness.told}" if witness.told else "",
            f"observer {witness.observer}" if witness.observer else "",
        )
        if each
    )
    lines = (
        ("where", where),
        ("in", f"transactional id {witness.transaction}" if witness.transaction else ""),
        ("client", client),
        ("fault", witness.fault),
        # A long text has its main points in lines of their own; a log comes last.
        *(("" if number else "detail", line) for number, line in enumerate(witness.detail.splitlines())),
    )
    return tuple(f"  {label:<8} {text}" for label, text in lines if text)


def _paint(text: str, code: str, *, colour: bool) -> str:
    return f"{code}{text}{_RESET}" if colour else text


def _head(report: Report, *, colour: bool) -> Iterator[str]:
    judgement = report.judgement
    decision = f"{DECISION_SIGN[judgement.decision]} {judgement.decision}"
    painted = _paint(decision, _DECISION_COLOUR[judgement.decision], colour=colour)
    yield ""
    code = int(judgement.exit_code)
    yield f"{painted} ({judgement.rule})   verdict {judgement_word(judgement)}, exit code {code}"
    yield from _answer(report)
    if hit := impact(report):
        yield f"impact: {plain(hit)}"
    if report.subject.beyond_release:
        yield plain(report.subject.beyond_release)
    if note := build_note(report.subject):
        yield plain(note)
    if cost := upgrade_cost(report):
        yield f"for applications: {plain(cost)}"
    shown = [each for each in reasons(report) if each.verdict is Verdict.FAIL and not each.is_aside]
    for each in shown[:REASONS_MAX]:
        yield one_line_kept(f"  {each.name}{', accepted' if each.accepted else ''}: {each.text}")
    if (rest := len(shown) - REASONS_MAX) > 0:
        yield f"  … {rest} more in the report"
    for weight, bugs in ((Weight.RISK, judgement.risks), (Weight.DEVIATION, judgement.deviations)):
        if bugs:
            yield f"  {counted(len(bugs), str(weight))}: {', '.join(map(one_line, bugs))}"
    if report.partial:
        yield f"PARTIAL: {plain(report.partial)}"
    yield ""


def _answer(report: Report) -> Iterator[str]:
    """The answer in sentences, then the one that names everything."""
    said = answer(report)
    for label, text in (
        ("", f"{said.harm} {said.tests}"),
        ("when: ", said.condition),
        ("what to do: ", f"{said.clean} {said.todo}".strip().replace("`", "")),
        ("in detail: ", report.judgement.why),
    ):
        if text:
            yield plain(f"{label}{text}")


def _rows(scenarios: Sequence[ScenarioReport | ScriptCase], *, colour: bool) -> Iterator[str]:
    width = max((len(each.key) for each in scenarios), default=0)
    # Ids in a merged report end in the name of their run, which must not be cut; ids of cases are sentences.
    most = 100 if any(each.part or isinstance(each, ScriptCase) for each in scenarios) else 60
    width = min(max(width, 20), most)
    words = max((len(scenario_word(each)) for each in scenarios), default=0)
    for each in scenarios:
        verdict = shown_verdict(each)
        word = f"{verdict_sign(verdict)} {scenario_word(each):<{max(words, 14)}}"
        # Only an upgrade has an estimate of its own; that of others is a mean, and only their sum says something.
        expected_s = each.expected_s if isinstance(each, ScenarioReport) and each.upgrade else None
        took = f"{seconds(each.actual_s):>9}" + (f" ({seconds(expected_s)} expected)" if expected_s else "")
        yield f"  {_paint(word, _COLOUR[verdict], colour=colour)} {one_line(each.key, most):<{width}} {took}"


def _windows(watched: Sequence[WatchedWindow], *, colour: bool) -> Iterator[str]:
    """The decision on each window, its time, and the acts of others."""
    for each in watched:
        word = f"{DECISION_SIGN[each.decision]} {each.decision:<10}"
        rest = f"{each.when:<25} {one_line(each.scenario.key)}  {'; '.join(map(one_line, each.seen))}".rstrip()
        yield f"  {_paint(word, _DECISION_COLOUR[each.decision], colour=colour)} {rest}"


def _numbers(cases: Sequence[ScriptCase]) -> str:
    counts = Counter(each.verdict for each in cases)
    return ", ".join(f"{counts[each]} {verdict_word(each)}" for each in sorted(counts, reverse=True))


def _cases(report: Report, *, colour: bool) -> Iterator[str]:
    """Numbers for all cases and for each family of requirements, then the names of the cases that did not pass."""
    yield f"protocol cases: {_numbers(report.cases)}"
    family = {each.id: each.family for each in report.requirements}
    for name in dict.fromkeys(family.values()):
        # A case may decide requirements of several families; it counts in that of its first one.
        if cases := [
            each for each in report.cases if each.requirements and family.get(each.requirements[0].id) == name
        ]:
            yield f"  {name:<5}  {_numbers(cases)}"
    # Cases that did not start before an interruption are only counted, below.
    reached = [each for each in report.cases_worst_first if not report.interrupted or each.actual_s is not None]
    yield from _rows([each for each in reached if not each.clear], colour=colour)


def _case_witnesses(report: Report) -> Iterator[str]:
    unclear = [each for each in report.cases_worst_first if not each.clear]
    unreached = [each for each in unclear if report.interrupted and each.actual_s is None]
    reached = [each for each in unclear if each not in unreached]
    for each in reached[:CASES_MAX]:
        yield ""
        yield from case_lines(each)
        if each.replay:
            yield f"  re-run   {one_line(each.replay)}"
    if (rest := len(reached) - CASES_MAX) > 0:
        yield ""
        yield f"{rest} more {'case is' if rest == 1 else 'cases are'} in the report."
    if unreached:
        yield ""
        yield f"{counted(len(unreached), 'case')} did not run, because the run was {report.cut_short}."


def _witnesses(report: Report) -> Iterator[str]:
    """Details of scenarios and controls that did not pass; those that did not start are only counted."""
    unclear = [each for each in (*report.worst_first, *report.controls) if not each.clear]
    unreached = [each for each in unclear if report.interrupted and each.actual_s is None]
    for each in unclear:
        if each not in unreached:
            yield ""
            yield from witness_lines(each)
            if each.judge:
                yield f"  judge    {one_line(each.judge)}"
            if each.replay:
                yield f"  re-run   {one_line(each.replay)}"
    if unreached:
        yield ""
        noun = "scenario or control" if len(unreached) == 1 else "scenarios and controls"
        yield f"{len(unreached)} {noun} did not run, because the run was {report.cut_short}."


def _traces(report: Report) -> Iterator[str]:
    """The passes that show a known bug, by the bug."""
    bugs = sorted({trace.bug for each in report.tried for trace in each.traces})
    for bug in bugs:
        keys = [each.key for each in report.tried if bug in {trace.bug for trace in each.traces}]
        yield one_line(f"passed, and shows {bug}: {', '.join(keys)}")


def _change(report: Report) -> Iterator[str]:
    """The counts of changes, and the regressions by name; the page has the others."""
    for run, comparison in report.comparisons:
        of = f" of {one_line(run)}" if run else ""
        yield f"change since the baseline{of} ({one_line(comparison.baseline.title)})"
        yield f"  {comparison.sentence}"
        for each in comparison.regressions[:CHANGES_MAX]:
            path = f"{each.before or 'absent'} → {each.now or 'absent'}"
            yield one_line_kept(f"  {each.kind}  {each.case} {each.id}  {path}: {each.reason}")
        if (rest := len(comparison.regressions) - CHANGES_MAX) > 0:
            yield f"  … {rest} more in the report"
        yield ""


def _body(report: Report, page: Path | None, *, colour: bool) -> Iterator[str]:
    if report.parts:
        yield "runs"
        for part in report.parts:
            note = f"  {one_line(part.note)}" if part.note else ""
            yield f"  {one_line(part.name) or 'not counted':<20} {part.decision or '–':<10} {one_line(part.directory)}{note}"
    yield from _change(report)
    yield from upgrade_lines(report)
    if watched := windows(report):
        yield "windows"
        yield from _windows(watched, colour=colour)
    elif report.scenarios:
        yield "scenarios"
        yield from _rows(report.scenarios, colour=colour)
    if report.controls:
        yield "controls (known defects: each must be detected)"
        yield from _rows(report.controls, colour=colour)
    if report.cases:
        yield from _cases(report, colour=colour)
    if report.problems:
        yield "incomplete evidence"
        yield from (f"  ! {one_line(each.place)}: {one_line(each.text)}" for each in report.problems)
    yield from _traces(report)
    yield from _witnesses(report)
    yield from _case_witnesses(report)
    yield ""
    spent = f"took {seconds(report.duration_s)}"
    yield spent + (f" ({seconds(report.expected_s)} expected)" if report.expected_s else "")
    if page is not None:
        yield f"report: {page}"
    if report.replay:
        yield f"re-run: {one_line(report.replay)}"
