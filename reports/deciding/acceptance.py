"""Decide which findings an accepted known bug or requirement covers.

An acceptance names a known bug (`KB-16`) or a requirement (`TXN-25`). A known bug covers the findings whose signature
matched that bug, and nothing else: another anomaly in the same scenario still counts. A requirement covers a finding
when every violated requirement that forbids its anomaly is accepted. A violation without a finding cannot be accepted,
because the acceptance could not say which violation it covers.

A protocol case has no findings. Its violation is accepted when all of its known bugs are accepted, or every requirement
that it violates.

An acceptance has expired when the run started after its last day. The day of the run decides, not the day of reading:
a report that is rendered again says the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from reports.model.clock import instant
from reports.model.protocol_case import KnownRow, ScriptCase
from reports.model.report import AcceptanceRow, ScenarioReport
from reports.model.run_record import Acceptance
from reports.model.vocabulary import Catalogue
from verification.vocabulary.verdict import Finding, RequirementVerdict, Verdict


def expired(acceptance: Acceptance, started: str) -> bool:
    """Whether its last day lies before the day of the run, in UTC.

    It has also expired when its last day is no date, or when the start of the run is unknown: without a proof that it
    holds, the violation counts.
    """
    if not acceptance.until:
        return False
    began = instant(started)
    try:
        return began is None or date.fromisoformat(acceptance.until[:10]) < began.date()
    except ValueError:
        return True


def holding(acceptances: Iterable[Acceptance], started: str) -> frozenset[str]:
    """The ids that are accepted on the day of the run."""
    return frozenset(each.id for each in acceptances if not expired(each, started))


def covers(
    accepted: frozenset[str],
    finding: Finding,
    verdicts: Iterable[RequirementVerdict],
    catalogue: Catalogue,
) -> bool:
    """Whether one finding is accepted, given the verdicts of its scenario on requirements."""
    if finding.known_bug is not None and finding.known_bug in accepted:
        return True
    violated = {
        each.id
        for each in verdicts
        if each.verdict is Verdict.FAIL and each.id in catalogue and finding.anomaly in catalogue[each.id].forbids
    }
    return bool(violated) and violated <= accepted


def covers_case(accepted: frozenset[str], known: Iterable[KnownRow], verdicts: Iterable[RequirementVerdict]) -> bool:
    """Whether the violation of a protocol case is accepted: all of its known bugs, or all of its requirements."""
    bugs = {each.id for each in known if each.named}
    violated = {each.id for each in verdicts if each.verdict is Verdict.FAIL}
    return any(ids and ids <= accepted for ids in (bugs, violated))


def rows(
    acceptances: Iterable[Acceptance],
    started: str,
    scenarios: Iterable[ScenarioReport],
    cases: Iterable[ScriptCase] = (),
) -> tuple[AcceptanceRow, ...]:
    """All acceptances of the user; one that covers nothing is shown too, because it should be removed."""
    subjects = tuple(scenarios)
    accepted_cases = tuple(each for each in cases if each.accepted)

    def covered(id_: str) -> int:
        in_cases = sum(1 for each in accepted_cases if id_ in _accepted_by(each))
        return in_cases + sum(
            1
            for scenario in subjects
            for finding in scenario.findings
            if finding.accepted
            and (
                finding.known_bug == id_
                or any(v.id == id_ and v.verdict is Verdict.FAIL for v in scenario.requirements)
            )
        )

    return tuple(
        AcceptanceRow(
            id=each.id,
            reason=each.reason,
            until=each.until,
            expired=expired(each, started),
            findings=covered(each.id),
        )
        for each in acceptances
    )


def _accepted_by(case: ScriptCase) -> set[str]:
    """The ids by which a case's violation can be accepted."""
    violated = {each.id for each in case.requirements if each.verdict is Verdict.FAIL}
    return violated | {each.id for each in case.known if each.named}
