"""One line on the conditions of the proofs that decide: the replication of their topics, and who was taken away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from reports.deciding.reasons import ReasonPlace, reasons
from reports.model.conditions import NOT_RECORDED, Conditions, Replication
from reports.model.protocol_case import Tried
from reports.model.report import Report, ScenarioReport
from verification.vocabulary.verdict import Verdict


def proof_conditions(report: Report) -> str:
    """The line for the first screen: `Shown with replication factor 1, min ISR 1; broker 2, the leader, was killed …`.

    It is empty where no violation decides.
    """
    keys = list(dict.fromkeys(place.key for place in _places(report)))
    tried = {each.key: each for each in report.tried}
    proofs = [(each, each.conditions) for key in keys if (each := tried.get(key)) and each.conditions is not None]
    if not proofs:
        return ""
    shown = Counter(_replication(each, conditions) for each, conditions in proofs)
    known = sorted((each for each in shown if each is not None), key=lambda each: (each.factor, each.min_in_sync or 0))
    of = f" of {len(proofs)} proofs" if len(shown) > 1 else ""
    parts = [f"{each}{f' ({shown[each]}{of})' if of else ''}" for each in known]
    if None in shown:
        parts.append(f"replication {NOT_RECORDED}{f' ({shown[None]}{of})' if of else ''}")
    stopped = next((each.stopped[0].brief for _, each in proofs if each.stopped), "")
    changed = sum(bool(conditions.settings) for _, conditions in proofs)
    settings = (
        f"; {changed} of {len(proofs)} proofs with other broker settings than Kafka's defaults" if changed else ""
    )
    return f"Shown with {' and '.join(parts)}{f'; {stopped}' if stopped else ''}{settings}."


def _places(report: Report) -> Iterable[ReasonPlace]:
    for reason in reasons(report):
        if reason.verdict is Verdict.FAIL and not reason.accepted and not reason.is_aside:
            yield from reason.places


def _replication(tried: Tried, conditions: Conditions) -> Replication | None:
    """The least replication of the topics that a proof names, None where it was not recorded."""
    topics = tried.named_topics if isinstance(tried, ScenarioReport) else ()
    return min(conditions.among(topics), key=lambda each: (each.factor, each.min_in_sync or 0), default=None)
