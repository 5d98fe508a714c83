"""Whose the violations of a report are: of readers that alone show them (`FindingReport.reader`), or of idle clients."""

from __future__ import annotations

from reports.model.report import Report, ScenarioReport
from verification.known_bugs.weight import Weight
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.verdict import Verdict


def reader_of(report: Report) -> str:
    """The library whose violations as a reader are all that decide; empty where there are others, or none."""
    failed = [each for each in report.tried if each.counts_as is Verdict.FAIL]
    findings = [each.findings if isinstance(each, ScenarioReport) else () for each in failed]
    readers = {one.reader for each in findings for one in each if not one.accepted and one.weight is Weight.DECIDES}
    return readers.pop() if all(findings) and len(readers) == 1 else ""


def idle_client(report: Report) -> str:
    """The client whose lack of progress is all that decides, while another client worked; empty where there is more."""
    failed = [each for each in report.tried if each.counts_as is Verdict.FAIL]
    findings = [one for each in failed if isinstance(each, ScenarioReport) for one in each.findings]
    idle = all(one.anomaly == Anomaly.NO_PROGRESS and not one.known_bug for one in findings)
    clients = {each.client if isinstance(each, ScenarioReport) else "" for each in failed}
    return clients.pop() if idle and findings and len(clients) == 1 and not report.subject.pipelines else ""


def title_of(report: Report) -> str:
    """The subject as a heading: a reader, where all that decides is its own."""
    reader = reader_of(report)
    return f"{reader} as a reader, on {report.subject.title}" if reader else report.subject.title
