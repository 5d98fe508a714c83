"""Every requirement of the catalogue with the verdict of this run, also the untested ones.

The verdict of a requirement is the worst that any scenario or protocol case of the subject gave it. Controls do not
count: they are not the subject. An id that a scenario names and this catalogue lacks is shown without its text: the
evidence may be older or newer than the catalogue.
"""

from __future__ import annotations

from collections.abc import Iterable

from reports.model.protocol_case import ACCEPTED, Tried, aside_of, seen_in
from reports.model.report import RequirementRow, Subject
from reports.model.vocabulary import Catalogue, applies_to, family_of, why_untested
from verification.vocabulary.verdict import Verdict

_Decided = list[tuple[Tried, Verdict, str]]


def rows(catalogue: Catalogue, tried: Iterable[Tried], subject: Subject) -> tuple[RequirementRow, ...]:
    """The rows in the order of the catalogue; ids that it lacks come last."""
    decided: dict[str, _Decided] = {id_: [] for id_ in catalogue}
    for one in tried:
        for each in one.requirements:
            decided.setdefault(each.id, []).append((one, each.verdict, each.reason))
    return tuple(_row(id_, catalogue, by, subject) for id_, by in decided.items())


def _row(id_: str, catalogue: Catalogue, by: _Decided, subject: Subject) -> RequirementRow:
    known = catalogue.get(id_)
    worst = Verdict.worst(verdict for _, verdict, _ in by) if by else None
    aside = aside_of(one.aside for one, verdict, _ in by if verdict is Verdict.FAIL)
    untested = ""
    if known is not None and not by:
        spoke_tv2 = any("TV2" in client.protocol for client in subject.clients)
        untested = why_untested(known, subject.release, spoke_tv2=spoke_tv2)
    return RequirementRow(
        id=id_,
        family=known.family if known else family_of(id_),
        level=str(known.level) if known else "",
        text=known.text if known else "This version's catalogue does not have this requirement.",
        observable=known.observable if known else "",
        limitation=(known.limitation or "") if known else "",
        source=known.source if known else (),
        verdict=worst,
        untested=untested,
        accepted=aside == ACCEPTED,
        decided_by=tuple((one.key, verdict, reason) for one, verdict, reason in by),
        applies=known is None or applies_to(known, subject.release),
        protects=str(known.protects) if known else "",
        aside=aside,
        seen=seen_in(one for one, _, _ in by) if worst is Verdict.PASS else "",
    )
