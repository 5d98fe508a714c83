"""`ctrf.json`: the same cases in the Common Test Report Format (https://ctrf.io).

`rawStatus` is the verdict of this suite. Undecided cases have the status `other`, which the format reserves for statuses
that it lacks. Ids are made from suite and name, so a case keeps its id in every run. Times of the whole run are
milliseconds since 1970, or 0 if its start is unknown, because the format requires them.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from typing import Any

from reports.formats.test_cases import Ending, TestCase, cases
from reports.model.clock import instant
from reports.model.report import Report
from reports.model.wording import plain

SPECIFICATION = "1.0.0"
_STATUS = {
    Ending.PASSED: "passed",
    Ending.FAILED: "failed",
    Ending.UNDECIDED: "other",
    Ending.SKIPPED: "skipped",
}


def dumps(report: Report) -> str:
    """The text of the file; equal reports give equal bytes."""
    all_cases = tuple(cases(report))
    body = {
        "reportFormat": "CTRF",
        "specVersion": SPECIFICATION,
        "generatedBy": "onceproof",
        "results": {
            "tool": {"name": "onceproof", **({"version": report.suite} if report.suite else {})},
            "summary": _summary(report, all_cases),
            "tests": [_test(each) for each in all_cases],
            "environment": {
                "appName": "Apache Kafka",
                "appVersion": report.subject.release,
                "extra": {"runtime": report.subject.runtime, "host": dict(report.subject.host)},
            },
            "extra": {
                "decision": report.judgement.decision.value,
                "exitCode": int(report.judgement.exit_code),
                "why": report.judgement.why,
                "replay": report.replay,
            },
        },
    }
    return json.dumps(_shown(body), indent=1, ensure_ascii=True) + "\n"


def _shown(value: Any) -> Any:
    """The value with every text in it cleaned, because viewers print the decoded texts."""
    if isinstance(value, dict):
        return {plain(name): _shown(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_shown(each) for each in value]
    return plain(value) if type(value) is str else value


def _summary(report: Report, all_cases: tuple[TestCase, ...]) -> dict[str, Any]:
    statuses = Counter(_STATUS[each.ending] for each in all_cases)
    began = instant(report.started)
    start = round(began.timestamp() * 1_000) if began else 0
    names = ("passed", "failed", "skipped", "pending", "other")
    return {
        "tests": len(all_cases),
        **{name: statuses[name] for name in names},
        "suites": len({each.suite for each in all_cases}),
        "start": start,
        "stop": start + round(report.duration_s * 1_000),
        "duration": round(report.duration_s * 1_000),
    }


def _test(case: TestCase) -> dict[str, Any]:
    return {
        "id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"onceproof:{case.suite}:{plain(case.name)}")),
        "name": case.name or "unnamed",
        "status": _STATUS[case.ending],
        "rawStatus": case.word,
        "duration": round(case.seconds * 1_000),
        "suite": ["onceproof", case.suite],
        **({"message": case.message} if case.message else {}),
        **({"trace": case.body} if case.body else {}),
    }
