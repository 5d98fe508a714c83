"""Whose the violations of a report are, where readers alone show them (`FindingReport.reader`)."""

from __future__ import annotations

from reports.model.report import Report, ScenarioReport
from verification.known_bugs.weight import Weight
from verification.vocabulary.verdict import Verdict


def reader_of(report: Report) -> str:
    """The library whose violations as a reader are all that decide; empty where there are others, or none."""
    failed = [each for each in report.tried if each.counts_as is Verdict.FAIL]
    findings = [each.findings if isinstance(each, ScenarioReport) else () for each in failed]
    readers = {one.reader for each in findings for one in each if not one.accepted and one.weight is Weight.DECIDES}
    return readers.pop() if all(findings) and len(readers) == 1 else ""


def title_of(report: Report) -> str:
    """The subject as a heading: a reader, where all that decides is its own."""
    reader = reader_of(report)
    return f"{reader} as a reader, on {report.subject.title}" if reader else report.subject.title
