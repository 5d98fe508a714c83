"""The decision about one run: findings, coverage and what broke, against the requirements that the run claims.

Free of pyspark and of files, so that the whole table can be tested. The order of its rules is the lattice of
`verification.vocabulary.verdict`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from verification.requirements import catalogue
from verification.requirements.catalogue import Decidability, Level, Requirement
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.errors import ReleaseError
from verification.vocabulary.experiment import AT_LEAST_ONCE, Experiment
from verification.vocabulary.verdict import (
    CoverageItem,
    Finding,
    RequirementVerdict,
    ScenarioVerdict,
    Verdict,
    allowance,
    without_findings,
)
from verification.vocabulary.violations import RawViolation

#: `Experiment.versions` names the finalized transaction.version under this key, where the release has it.
TRANSACTION_VERSION = "transaction.version"
#: The requirement that the transaction log decides, after every run that has one, whatever the run claims.
STATE_MACHINE = "COORD-01"
#: Both forbid `no-progress`, of other subjects.
OF_PIPELINES, OF_CLIENTS = "GRP-21", "EXP-12"
#: The anomalies that at-least-once allows of copies, and a consequence of them that it allows: the count of a duplicate. A
#: run that claims it decides no requirement that forbids one of them.
ALLOWS = (Anomaly.DUPLICATE, Anomaly.OUTPUT_WITHOUT_OFFSET)
UNDECIDED = {*ALLOWS, Anomaly.STATE_DIVERGENCE}
#: A control may name alternatives, joined by this: any one of them must be found.
ALTERNATIVE = "|"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictInputs:
    """Everything that decides a verdict.

    `log_unjudged` is the reason why the transaction log was not judged: empty when it was, None when no client used
    transactions. `allowed` are the violations that the claim of the run allows.
    """

    experiment: Experiment
    findings: tuple[Finding, ...]
    coverage: tuple[CoverageItem, ...]
    crashed: tuple[str, ...] = ()
    counts: tuple[tuple[str, int], ...] = ()
    log_unjudged: str | None = None
    allowed: tuple[RawViolation, ...] = ()

    @property
    def counted_allowed(self) -> tuple[tuple[str, int], ...]:
        """The number of each anomaly that at-least-once allows, duplicates always; empty where exactly-once is claimed."""
        if self.experiment.semantics != AT_LEAST_ONCE:
            return ()
        found = Counter(each.anomaly for each in self.allowed)
        return tuple((str(each), found[each]) for each in ALLOWS if found[each] or each is Anomaly.DUPLICATE)


def convicted(expects: Iterable[str], found: Iterable[str]) -> bool:
    """Whether exactly the named anomalies were found: each of them (or one of its alternatives), and no other."""
    groups = [frozenset(each.split(ALTERNATIVE)) for each in expects]
    present = frozenset(found)
    return all(group & present for group in groups) and present <= frozenset().union(*groups)


def _found(findings: tuple[Finding, ...]) -> str:
    return ", ".join(
        f"{each.count} {each.anomaly}" + (f" ({each.known_bug})" if each.known_bug else "") for each in findings
    )


def outcome(judged: VerdictInputs) -> tuple[Verdict, str]:
    """The verdict on a subject's run, with its reason in one sentence."""
    allowed = allowance(judged.counted_allowed)
    if judged.findings:
        return Verdict.FAIL, f"found {_found(judged.findings)}" + (f"; {allowed}" if allowed else "")
    nothing = f"{allowed}; nothing else was found" if allowed else "nothing was found"
    verdict, reason = without_findings(judged.crashed, judged.coverage)
    if verdict is Verdict.INCONCLUSIVE:
        reason = f"{nothing}, but {reason}"
    return verdict, reason or f"{nothing} and every coverage floor was reached"


def _control(judged: VerdictInputs) -> ScenarioVerdict:
    experiment = judged.experiment
    expected = ", ".join(experiment.control_expects)
    right = not judged.crashed and convicted(experiment.control_expects, [each.anomaly for each in judged.findings])
    reason = f"detected {_found(judged.findings)}"
    if not right:
        reason = f"expected exactly {expected}, found {_found(judged.findings) or 'nothing'}"
        reason += "".join(f"; {each}" for each in judged.crashed)
    return ScenarioVerdict(
        scenario=experiment.scenario,
        run=experiment.run,
        verdict=Verdict.PASS if right else Verdict.ERROR,
        reason=reason,
        findings=judged.findings,
        coverage=judged.coverage,
        requirements=(),
        control=True,
        convicted=right,
        counts=judged.counts,
        crashed=judged.crashed,
        allowed=judged.counted_allowed,
    )


def _applies(requirement: Requirement, experiment: Experiment) -> bool:
    version = experiment.versions.get(TRANSACTION_VERSION, "")
    try:
        return catalogue.applies_to(requirement, experiment.release, int(version) if version.isdecimal() else None)
    except ReleaseError:
        # A subject without a Kafka release number must meet everything that it claims.
        return True


def _requirement(
    name: str, rows: dict[str, Requirement], judged: VerdictInputs, overall: tuple[Verdict, str]
) -> RequirementVerdict:
    requirement = rows.get(name)
    if requirement is None:
        return RequirementVerdict(id=name, verdict=Verdict.ERROR, reason="the catalogue has no such requirement")
    if not _applies(requirement, judged.experiment):
        reason = f"does not apply to {judged.experiment.release} with this client"
        return RequirementVerdict(id=name, verdict=Verdict.NOT_APPLICABLE, reason=reason)
    against = tuple(each for each in judged.findings if each.anomaly in requirement.forbids)
    if against:
        return RequirementVerdict(id=name, verdict=Verdict.FAIL, reason=f"found {_found(against)}")
    if name == STATE_MACHINE and judged.log_unjudged:
        return RequirementVerdict(id=name, verdict=Verdict.INCONCLUSIVE, reason=f"not judged: {judged.log_unjudged}")
    verdict, reason = overall
    if verdict is Verdict.FAIL:
        rest = VerdictInputs(
            experiment=judged.experiment, findings=(), coverage=judged.coverage, crashed=judged.crashed
        )
        verdict, reason = outcome(rest)
        reason = f"{reason}; none of the findings breaks this requirement" if verdict is Verdict.PASS else reason
    return RequirementVerdict(id=name, verdict=verdict, reason=reason)


def attributed(anomaly: str, rows: dict[str, Requirement], experiment: Experiment) -> str | None:
    """The requirement that a finding counts against when no claimed requirement forbids it.

    It is the first one that forbids the finding and applies to the subject and its kind. Stochastic requirements come
    first, because runs like this one decide them.
    """
    forbidding = [
        each
        for each in rows.values()
        if Anomaly(anomaly) in each.forbids and each.level is not Level.INFO and _applies(each, experiment)
    ]
    others = OF_CLIENTS if experiment.pipeline is not None else OF_PIPELINES
    forbidding.sort(
        key=lambda each: (each.id == others, each.decided is not Decidability.STOCHASTIC, each.level is not Level.MUST)
    )
    return forbidding[0].id if forbidding else None


def decide(judged: VerdictInputs) -> ScenarioVerdict:
    """The verdict on one run. Every anomaly counts: one that no claimed requirement forbids is attributed to another."""
    experiment = judged.experiment
    if experiment.is_control:
        return _control(judged)
    rows: dict[str, Requirement] = dict(catalogue.load())
    overall = outcome(judged)
    looked_at = () if judged.log_unjudged is None else (STATE_MACHINE,)
    names = dict.fromkeys((*experiment.requirements, *looked_at))
    verdicts = [_requirement(name, rows, judged, overall) for name in names]
    if experiment.semantics == AT_LEAST_ONCE:
        undecided = {name for name in names if name in rows and UNDECIDED & {*rows[name].forbids}}
        verdicts = [each for each in verdicts if each.id not in undecided or each.verdict is Verdict.FAIL]
    failed = {each.id for each in verdicts if each.verdict is Verdict.FAIL}
    for finding in judged.findings:
        if any(finding.anomaly in rows[name].forbids for name in failed):
            continue
        name = attributed(finding.anomaly, rows, experiment)
        if name is not None and name not in failed:
            failed.add(name)
            verdicts = [each for each in verdicts if each.id != name]
            reason = f"found {_found((finding,))}, which no claimed requirement forbids"
            verdicts.append(RequirementVerdict(id=name, verdict=Verdict.FAIL, reason=reason))
    return ScenarioVerdict(
        scenario=experiment.scenario,
        run=experiment.run,
        verdict=overall[0],
        reason=overall[1],
        findings=judged.findings,
        coverage=judged.coverage,
        requirements=tuple(verdicts),
        counts=judged.counts,
        crashed=judged.crashed,
        allowed=judged.counted_allowed,
    )
