"""`badge.json`: the decision for a shields.io endpoint badge (https://shields.io/badges/endpoint-badge).

Next to the decision it counts the standing risks and deviations: a GO with some of them is not a GO without any.
"""

from __future__ import annotations

import json

from reports.deciding.readers import title_of
from reports.model.report import Report
from reports.model.wording import one_line
from verification.vocabulary.verdict import Decision

_COLOUR = {Decision.GO: "brightgreen", Decision.NO_GO: "red", Decision.UNDECIDED: "yellow"}
#: Characters of the message; a badge must stay small.
MESSAGE_MAX = 70


def dumps(report: Report) -> str:
    """The text of the file; `isError` fixes the colour of the badge when the run is not a GO."""
    decision, counts = report.judgement.decision, report.judgement.counts
    about = f"{decision} · {title_of(report)}" if report.subject.release else str(decision)
    about += (" (partial)" if report.partial else "") + (f", {counts}" if counts else "")
    body = {
        "schemaVersion": 1,
        "label": "exactly-once",
        "message": one_line(about, MESSAGE_MAX),
        "color": _COLOUR[decision],
        "isError": decision is not Decision.GO,
    }
    return json.dumps(body, indent=1, ensure_ascii=True) + "\n"
