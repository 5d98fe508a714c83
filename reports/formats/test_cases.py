"""The test cases of JUnit and CTRF: one per scenario, protocol case, control, requirement, and problem.

A violation is a failed case. ERROR, INCONCLUSIVE and a missed control are neither passed nor failed; formats without
such a status must not turn green for them. NOT_APPLICABLE and untested cases are skipped with their reason. So is a case
whose violation was accepted or does not decide, unless it has another failure: it must not turn the dashboard of a GO
red, and a known failure is a skipped case elsewhere too (`xfail` of pytest). Problems of the run itself are cases too, so
that every obstacle to GO is visible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from reports.model.change import CaseKind, Change
from reports.model.protocol_case import ScriptCase, Tried
from reports.model.report import Report, RequirementRow, ScenarioReport
from reports.model.wording import happened, plain, requirement_word, scenario_word, shown_verdict
from verification.scripts.script import EXPECTED_AS, Relation
from verification.vocabulary.verdict import Verdict

SUITES = ("scenarios", "cases", "controls", "requirements", "run")
#: Examples in the text of a failure; results.json has up to 32.
EXAMPLES_MAX = 3


class Ending(StrEnum):
    """The status of a case, one of four."""

    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"
    SKIPPED = "skipped"


ENDING = {
    Verdict.NOT_APPLICABLE: Ending.SKIPPED,
    Verdict.PASS: Ending.PASSED,
    Verdict.INCONCLUSIVE: Ending.UNDECIDED,
    Verdict.ERROR: Ending.UNDECIDED,
    Verdict.FAIL: Ending.FAILED,
    None: Ending.SKIPPED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TestCase:
    """One case: `word` is the displayed verdict, `message` one sentence, `body` the facts behind a failure."""

    __test__ = False  # pytest must not collect it as a test

    suite: str
    name: str
    ending: Ending
    word: str
    seconds: float = 0.0
    message: str = ""
    body: str = ""


def cases(report: Report) -> Iterator[TestCase]:
    """Every case in the order of the report, suite by suite, with unique names per suite.

    Readers take a case of the same name for a repetition, and some keep only the last one.
    """
    used: Counter[tuple[str, str]] = Counter()
    for case in _cases(report):
        key = (case.suite, plain(case.name))
        used[key] += 1
        yield case if used[key] == 1 else replace(case, name=f"{case.name} ({used[key]})")


def _cases(report: Report) -> Iterator[TestCase]:
    for scenario in report.scenarios:
        yield _scenario("scenarios", scenario, _ending(scenario))
    for case in report.cases:
        yield _case(case)
    for control in report.controls:
        yield _scenario("controls", control, ENDING[shown_verdict(control)])
    for row in report.requirements:
        yield _requirement(row)
    for problem in report.problems:
        yield _of_run(problem.place, problem.text)
    if report.interrupted:
        yield _of_run("interrupted", report.judgement.why)
    for run, change in report.regressions:
        yield _regression(run, change)
    if all(each.verdict is Verdict.NOT_APPLICABLE for each in report.tried):
        # Otherwise all cases would be skipped, which every dashboard takes for a success.
        yield _of_run("nothing applied" if report.tried else "nothing ran", report.judgement.why)


def _ending(tried: Tried) -> Ending:
    """The status of a scenario or case; a violation that does not decide is skipped, unless it has another failure."""
    clean = tried.aside and tried.counts_as <= Verdict.PASS
    return Ending.SKIPPED if clean else ENDING[tried.counts_as]


def _of_run(name: str, text: str) -> TestCase:
    return TestCase(suite="run", name=name, ending=Ending.UNDECIDED, word="ERROR", message=text)


def _regression(run: str, change: Change) -> TestCase:
    # The ids of all others end in the name of their run.
    of = f" of {run}" if run and change.case is CaseKind.REQUIREMENT else ""
    return TestCase(
        suite="run",
        name=f"{change.kind}: {change.case} {change.id}{of}",
        ending=Ending.FAILED,
        word=change.kind.upper(),
        message=f"{change.before or 'absent'} in the baseline, {change.now or 'absent'} now: {change.reason}",
    )


def _scenario(suite: str, scenario: ScenarioReport, ending: Ending) -> TestCase:
    word = scenario_word(scenario)
    return TestCase(
        suite=suite,
        name=scenario.key,
        ending=ending,
        word=word,
        seconds=scenario.actual_s or 0.0,
        message="" if ending is Ending.PASSED else f"{word}: {scenario.reason}",
        body="\n".join(_body(scenario)) if ending in (Ending.FAILED, Ending.UNDECIDED) else "",
    )


def _case(case: ScriptCase) -> TestCase:
    ending = _ending(case)
    word = scenario_word(case)
    return TestCase(
        suite="cases",
        name=case.key,
        ending=ending,
        word=word,
        seconds=case.actual_s or 0.0,
        message="" if ending is Ending.PASSED else f"{word}: {case.reason}",
        body="\n".join(_script(case)) if ending in (Ending.FAILED, Ending.UNDECIDED) else "",
    )


def _script(case: ScriptCase) -> Iterator[str]:
    yield from _titled(case)
    for each in case.deciding[:EXAMPLES_MAX]:
        yield f"{each.what}: expected {EXPECTED_AS[Relation(each.relation)]}{each.expected}, observed {each.observed}"
    for known in case.known:
        if known.named:
            yield f"known bug: {known.id}"
    if case.replay:
        yield f"re-run: {case.replay}"


def _titled(tried: Tried) -> Iterator[str]:
    """What happened and what must be, or the claim alone."""
    what = happened(tried)
    if what:
        yield what
    if tried.claim:
        yield f"must be: {tried.claim}" if what else tried.claim


def _requirement(row: RequirementRow) -> TestCase:
    ending = Ending.SKIPPED if row.aside else ENDING[row.verdict]
    word = requirement_word(row)
    because = [f"{key}: {reason}" for key, verdict, reason in row.decided_by if verdict is row.verdict]
    failed = ending in (Ending.FAILED, Ending.UNDECIDED)
    return TestCase(
        suite="requirements",
        name=row.id,
        ending=ending,
        word=word,
        message="" if ending is Ending.PASSED else f"{word}: {row.untested or '; '.join(because[:1])}",
        body="\n".join([row.text, *because]) if failed else "",
    )


def _body(scenario: ScenarioReport) -> Iterator[str]:
    yield from _titled(scenario)
    for finding in scenario.findings:
        bug = f", known bug {finding.known_bug}" if finding.known_bug else ""
        yield f"{finding.anomaly} x {finding.count}{bug}"
        for example in finding.witnesses[:EXAMPLES_MAX]:
            facts = (example.place, example.record, example.transaction, example.told, example.fault, example.detail)
            yield "  " + " | ".join(each for each in facts if each)
    if scenario.replay:
        yield f"re-run: {scenario.replay}"
