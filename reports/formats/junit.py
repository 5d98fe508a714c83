"""`junit.xml`: one test case per scenario, protocol case, control and requirement, for tools that read only JUnit.

A violation that decides is a failure, any other one is a skipped case. An undecided case is an error, because the format
has no status for it and a skipped case would turn a dashboard green. Times are those of the harness. The element
`testsuites` has no count of skipped cases: the schema that Jenkins' xUnit plugin uses refuses it there.
"""

from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree as Xml

from reports.formats.test_cases import SUITES, Ending, TestCase, cases
from reports.model.clock import instant
from reports.model.report import Report
from reports.model.wording import plain

_TAG = {Ending.PASSED: "", Ending.FAILED: "failure", Ending.UNDECIDED: "error", Ending.SKIPPED: "skipped"}


def render(report: Report) -> str:
    """The whole file."""
    all_cases = tuple(cases(report))
    root = Xml.Element("testsuites", {"name": "onceproof", **_counts(all_cases)})
    del root.attrib["skipped"]
    for suite in SUITES:
        members = tuple(each for each in all_cases if each.suite == suite)
        if members:
            element = Xml.SubElement(root, "testsuite", {"name": f"onceproof.{suite}", **_counts(members)})
            if began := instant(report.started):
                element.set("timestamp", began.strftime("%Y-%m-%dT%H:%M:%S"))
            for case in members:
                _append(element, case)
    Xml.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def _counts(members: tuple[TestCase, ...]) -> dict[str, str]:
    endings = Counter(each.ending for each in members)
    return {
        "tests": str(len(members)),
        "failures": str(endings[Ending.FAILED]),
        "errors": str(endings[Ending.UNDECIDED]),
        "skipped": str(endings[Ending.SKIPPED]),
        "time": f"{sum(each.seconds for each in members):.3f}",
    }


def _append(suite: Xml.Element, case: TestCase) -> None:
    classname = f"onceproof.{case.suite}"
    element = Xml.SubElement(suite, "testcase", classname=classname, name=plain(case.name), time=f"{case.seconds:.3f}")
    if tag := _TAG[case.ending]:
        outcome = Xml.SubElement(element, tag, message=plain(case.message))
        if case.body:
            outcome.text = plain(case.body)
