"""Every sentence of the catalogue with what this run says about it, the untested ones included.

A requirement's verdict is the worst that any scenario or protocol case of the subject gave it; controls have no say,
for they are not the subject. An id that a scenario claims and this version's catalogue lacks is shown too, without its
sentence: the evidence may be older or newer than the catalogue.
"""

from __future__ import annotations

from collections.abc import Iterable

from reports.model.protocol_case import Tried
from reports.model.report import RequirementRow, Subject
from reports.model.vocabulary import Catalogue, family_of, speaks_about, why_untested
from verification.vocabulary.verdict import Verdict

_Decided = list[tuple[Tried, Verdict, str]]


def rows(
    catalogue: Catalogue, tried: Iterable[Tried], subject: Subject, *, scripted: bool = False
) -> tuple[RequirementRow, ...]:
    """The table, in the order of the catalogue; ids that it does not know come last.

    `scripted` is True for a sweep of protocol cases, whose gaps have other reasons than those of a run.
    """
    decided: dict[str, _Decided] = {id_: [] for id_ in catalogue}
    for one in tried:
        for each in one.requirements:
            decided.setdefault(each.id, []).append((one, each.verdict, each.reason))
    return tuple(_row(id_, catalogue, by, subject, scripted=scripted) for id_, by in decided.items())


def _row(id_: str, catalogue: Catalogue, by: _Decided, subject: Subject, *, scripted: bool) -> RequirementRow:
    sentence = catalogue.get(id_)
    failing = [one.accepted for one, verdict, _ in by if verdict is Verdict.FAIL]
    untested = ""
    if sentence is not None and not by:
        spoke_tv2 = any("TV2" in client.protocol for client in subject.clients)
        untested = why_untested(sentence, subject.release, spoke_tv2=spoke_tv2, scripted=scripted)
    return RequirementRow(
        id=id_,
        family=sentence.family if sentence else family_of(id_),
        level=str(sentence.level) if sentence else "",
        text=sentence.text if sentence else "This version's catalogue does not have this requirement.",
        observable=sentence.observable if sentence else "",
        limitation=(sentence.limitation or "") if sentence else "",
        source=sentence.source if sentence else (),
        verdict=Verdict.worst(verdict for _, verdict, _ in by) if by else None,
        untested=untested,
        accepted=bool(failing) and all(failing),
        decided_by=tuple((one.key, verdict, reason) for one, verdict, reason in by),
        applies=sentence is None or speaks_about(sentence, subject.release),
    )
