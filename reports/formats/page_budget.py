"""Which sections the page tells in full: whatever asks for attention, as long as a browser and a mail can carry all of it.

A release that fails by one bug fails many scenarios by it, and charts, witnesses and logs of two hundred of them are nine
megabytes that repeat each other. Of so many the page tells a part in full, one place of each ground before any second
one, and the others in short: what was claimed, what was found, how it began, and where the evidence is.
"""

from __future__ import annotations

from reports.deciding.reasons import reasons
from reports.model.report import Report

#: Bytes of all sections together; the head and the requirements of a page of two megabytes need the rest.
SECTIONS_BYTES = 1_600_000
#: Bytes of a section with a violation in full, charts and log included, and of one in short or of a pass.
FULL_BYTES, SHORT_BYTES = 45_000, 6_000
#: So many are told in full however many there are.
IN_FULL_MIN = 8


def detailed(report: Report) -> frozenset[str]:
    """The keys of the scenarios and controls that are told in full, and of every case that did not pass."""
    unclear = [each.key for each in (*report.worst_first, *report.controls) if not each.clear]
    all_sections = len(report.tried) + len(report.controls)
    room = (SECTIONS_BYTES - all_sections * SHORT_BYTES) // (FULL_BYTES - SHORT_BYTES)
    firsts = [place.key for ground in reasons(report) for place in ground.places[:1]]
    ordered = dict.fromkeys([*(key for key in firsts if key in unclear), *unclear])
    chosen = list(ordered)[: max(room, IN_FULL_MIN)]
    return frozenset((*chosen, *(each.key for each in report.cases if not each.clear)))
