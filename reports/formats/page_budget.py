"""Choose the scenarios that the page shows in detail, so that a browser and a mail can carry the page.

One bug of a release can fail two hundred scenarios; their charts, witnesses and logs would be nine repetitive megabytes.
Then the page shows only some in detail: first one scenario per reason, then the others. The rest is shortened to claim,
findings, first example and the path of the evidence.
"""

from __future__ import annotations

from reports.deciding.reasons import reasons
from reports.model.report import Report

#: Bytes of all sections together; head and requirements need the rest of two megabytes.
SECTIONS_BYTES = 1_450_000
#: Bytes of a detailed section with charts and log, and of a shortened or passed one.
FULL_BYTES, SHORT_BYTES = 45_000, 6_000
#: At least so many are detailed, however many there are.
DETAILED_MIN = 8


def detailed(report: Report) -> frozenset[str]:
    """The keys of the scenarios and controls to show in detail, and of every case that did not pass."""
    unclear = [each.key for each in (*report.worst_first, *report.controls) if not each.clear]
    all_sections = len(report.tried) + len(report.controls)
    room = (SECTIONS_BYTES - all_sections * SHORT_BYTES) // (FULL_BYTES - SHORT_BYTES)
    firsts = [place.key for reason in reasons(report) for place in reason.places[:1]]
    ordered = dict.fromkeys([*(key for key in firsts if key in unclear), *unclear])
    chosen = list(ordered)[: max(room, DETAILED_MIN)]
    return frozenset((*chosen, *(each.key for each in report.cases if not each.clear)))
