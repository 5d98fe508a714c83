"""`junit.xml`: one test case per scenario and control, for the many tools that read nothing else.

A violation is a failure; ERROR is an error; INCONCLUSIVE is an error too, because the format has no word for "nobody
knows" and a skipped case would turn a dashboard green; so is a control that was not convicted. NOT_APPLICABLE and an
accepted violation are skipped with their reason. Problems of the run itself become one case each, so that nothing
that keeps the run from GO can be overlooked. Times are the harness's own; the counts are those of the cases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree as Xml

from reports.model import Report, ScenarioReport
from reports.words import plain, scenario_word
from verification.verdict import Verdict

#: Worst examples repeated in a failure's text; the page and results.json have up to 32.
EXAMPLES_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    suite: str
    name: str
    seconds: float
    tag: str
    message: str = ""
    body: str = ""


def render(report: Report) -> str:
    """The whole file."""
    cases = tuple(_cases(report))
    root = Xml.Element("testsuites", {"name": "onceproof", **_counts(cases)})
    for suite in ("scenarios", "controls", "run"):
        members = tuple(each for each in cases if each.suite == suite)
        if members:
            element = Xml.SubElement(root, "testsuite", {"name": f"onceproof.{suite}", **_counts(members)})
            if report.started:
                element.set("timestamp", report.started)
            for case in members:
                _append(element, case)
    Xml.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def _cases(report: Report) -> Iterator[_Case]:
    for scenario in report.scenarios:
        tag = "skipped" if scenario.accepted else _TAG[scenario.verdict]
        yield _case("scenarios", scenario, tag)
    for control in report.controls:
        yield _case("controls", control, "" if control.convicted else "error")
    for problem in report.problems:
        yield _Case(suite="run", name=problem.place, seconds=0.0, tag="error", message=problem.text)
    if report.interrupted:
        yield _Case(suite="run", name="interrupted", seconds=0.0, tag="error", message=report.judgement.why)
    if not report.scenarios:
        # Without this a run of nothing would be an empty suite, which every dashboard takes for a success.
        yield _Case(suite="run", name="nothing was run", seconds=0.0, tag="error", message=report.judgement.why)


_TAG = {
    Verdict.NOT_APPLICABLE: "skipped",
    Verdict.PASS: "",
    Verdict.INCONCLUSIVE: "error",
    Verdict.ERROR: "error",
    Verdict.FAIL: "failure",
}


def _case(suite: str, scenario: ScenarioReport, tag: str) -> _Case:
    message = f"{scenario_word(scenario)}: {scenario.reason}" if tag else ""
    return _Case(
        suite=suite,
        name=scenario.key,
        seconds=scenario.actual_s or 0.0,
        tag=tag,
        message=message,
        body="\n".join(_body(scenario)) if tag in ("failure", "error") else "",
    )


def _body(scenario: ScenarioReport) -> Iterator[str]:
    if scenario.claim:
        yield scenario.claim
    for finding in scenario.findings:
        bug = f", known bug {finding.known_bug}" if finding.known_bug else ""
        yield f"{finding.anomaly} x {finding.count}{bug}"
        for example in finding.witnesses[:EXAMPLES_MAX]:
            facts = (example.place, example.record, example.transaction, example.told, example.fault, example.detail)
            yield "  " + " | ".join(each for each in facts if each)
    if scenario.replay:
        yield f"again: {scenario.replay}"


def _counts(cases: tuple[_Case, ...]) -> dict[str, str]:
    tags = Counter(each.tag for each in cases)
    return {
        "tests": str(len(cases)),
        "failures": str(tags["failure"]),
        "errors": str(tags["error"]),
        "skipped": str(tags["skipped"]),
        "time": f"{sum(each.seconds for each in cases):.3f}",
    }


def _append(suite: Xml.Element, case: _Case) -> None:
    classname = f"onceproof.{case.suite}"
    element = Xml.SubElement(suite, "testcase", classname=classname, name=plain(case.name), time=f"{case.seconds:.3f}")
    if case.tag:
        outcome = Xml.SubElement(element, case.tag, message=plain(case.message))
        if case.body:
            outcome.text = plain(case.body)
