"""The decision table: findings, crashes and coverage of a subject, and the conviction of controls."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from verification.judge.decision import VerdictInputs, attributed, convicted, decide
from verification.requirements import catalogue
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.experiment import Experiment
from verification.vocabulary.verdict import (
    CoverageItem,
    Decision,
    ExitCode,
    Finding,
    ScenarioVerdict,
    Verdict,
    code_of,
    exit_code,
    without_findings,
)
from verification.vocabulary.verdict import decide as decision_of
from verification.vocabulary.violations import RawViolation

ENOUGH = CoverageItem(name="records", have=10, need=10, text="records acknowledged")
TOO_LITTLE = CoverageItem(name="records", have=9, need=10, text="records acknowledged")
CRASH = ("check torn-transaction crashed: out of memory",)


def finding(anomaly: str, count: int = 1, known_bug: str | None = None) -> Finding:
    """A finding without examples."""
    return Finding(anomaly=anomaly, count=count, examples=(), known_bug=known_bug)


def experiment(**values: object) -> Experiment:
    """A subject's experiment that claims atomicity."""
    chosen: dict[str, object] = {"requirements": ("TXN-25",), "release": "4.3.1", **values}
    return Experiment(
        run="r",
        scenario="s",
        claim="c",
        seed=1,
        started="",
        runtime="local",
        client="confluent",
        topics=(),
        **chosen,  # type: ignore[arg-type]
    )


def judged(
    *findings: Finding,
    coverage: tuple[CoverageItem, ...] = (ENOUGH,),
    crashed: tuple[str, ...] = (),
    log_unjudged: str | None = None,
    allowed: tuple[RawViolation, ...] = (),
    **values: object,
) -> ScenarioVerdict:
    """The verdict on one run."""
    everything = VerdictInputs(
        experiment=experiment(**values),
        findings=findings,
        coverage=coverage,
        crashed=crashed,
        log_unjudged=log_unjudged,
        allowed=allowed,
    )
    return decide(everything)


def on_the_log(*findings: Finding, **values: object) -> tuple[Verdict, str] | None:
    """The verdict of a run on COORD-01; None when it has none."""
    rows = judged(*findings, **values).requirements  # type: ignore[arg-type]
    return next(((each.verdict, each.reason) for each in rows if each.id == "COORD-01"), None)


def test_the_transaction_log_is_judged_whatever_a_run_claims() -> None:
    """COORD-01 passes where the log was judged, fails by an illegal transition, and is open where there was no log."""
    assert on_the_log() is None
    passed = on_the_log(log_unjudged="")
    assert passed is not None
    assert passed[0] is Verdict.PASS
    for claims in ((), ("COORD-01",)):
        failed = on_the_log(finding("illegal-transition"), log_unjudged="", requirements=claims)
        assert failed == (Verdict.FAIL, "found 1 illegal-transition")
        opened = on_the_log(log_unjudged="this evidence has no transaction log", requirements=claims)
        assert opened == (Verdict.INCONCLUSIVE, "not judged: this evidence has no transaction log")
    assert judged(log_unjudged="no log").verdict is Verdict.PASS
    assert judged(finding("illegal-transition"), log_unjudged="").verdict is Verdict.FAIL


@pytest.mark.parametrize("anomaly", ["hung-transaction", "stuck-lso", "torn-transaction", "hidden-committed"])
def test_what_hides_committed_records_breaks_the_promise_to_show_them(anomaly: str) -> None:
    """TXN-25 wants every record of a committed transaction visible, so a transaction that hangs fails it as well."""
    (row,) = judged(finding(anomaly)).requirements
    assert (row.id, row.verdict) == ("TXN-25", Verdict.FAIL)


def test_another_finding_leaves_the_transaction_log_alone() -> None:
    """A run that fails for another reason still says that nothing is wrong with its transaction log."""
    row = on_the_log(finding("torn-transaction"), log_unjudged="")
    assert row is not None
    assert row[0] is Verdict.PASS


@pytest.mark.parametrize(
    ("findings", "coverage", "crashed", "verdict"),
    [
        ((), ENOUGH, (), Verdict.PASS),
        ((), TOO_LITTLE, (), Verdict.INCONCLUSIVE),
        ((), ENOUGH, CRASH, Verdict.ERROR),
        ((), TOO_LITTLE, CRASH, Verdict.ERROR),
        ((finding("lost-write"),), ENOUGH, (), Verdict.FAIL),
        ((finding("lost-write"),), TOO_LITTLE, (), Verdict.FAIL),
        ((finding("lost-write"),), TOO_LITTLE, CRASH, Verdict.FAIL),
    ],
)
def test_a_subjects_run_is_decided_by_the_worst_that_was_proven(
    findings: tuple[Finding, ...], coverage: CoverageItem, crashed: tuple[str, ...], verdict: Verdict
) -> None:
    """A finding beats everything, a crash beats missing coverage, missing coverage beats a pass."""
    assert judged(*findings, coverage=(coverage,), crashed=crashed).verdict is verdict


def test_what_crashed_is_kept_beneath_a_violation() -> None:
    """Without the violation the verdict is that of the crash, or of the missed floor."""
    assert judged(finding("lost-write"), crashed=CRASH).crashed == CRASH
    assert without_findings(CRASH, (TOO_LITTLE,)) == (Verdict.ERROR, CRASH[0])
    assert without_findings((), (TOO_LITTLE,)) == (
        Verdict.INCONCLUSIVE,
        "too little was tried: records acknowledged: 9 of 10",
    )
    assert without_findings((), (ENOUGH,)) == (Verdict.PASS, "")


def test_a_reason_says_what_and_how_much() -> None:
    """The reason names anomaly, count, known bug, or the floor that was missed."""
    assert judged(finding("lost-write", 3, "KB-16")).reason == "found 3 lost-write (KB-16)"
    assert "records acknowledged: 9 of 10" in judged(coverage=(TOO_LITTLE,)).reason
    assert judged(crashed=CRASH).reason == CRASH[0]


def test_a_claimed_requirement_fails_by_what_it_forbids() -> None:
    """TXN-25 forbids torn transactions: a torn one refutes it."""
    (requirement,) = judged(finding("torn-transaction", 2)).requirements
    assert (requirement.id, requirement.verdict) == ("TXN-25", Verdict.FAIL)
    assert requirement.reason == "found 2 torn-transaction"


def test_a_finding_that_nobody_claimed_is_attributed_to_the_catalogue() -> None:
    """A duplicate under a claim about atomicity counts, against a row that forbids duplicates; the claim holds."""
    verdict = judged(finding("duplicate"))
    by_id = {each.id: each for each in verdict.requirements}
    (other,) = set(by_id) - {"TXN-25"}
    assert "duplicate" in catalogue.load()[other].forbids
    assert (by_id[other].verdict, by_id["TXN-25"].verdict) == (Verdict.FAIL, Verdict.PASS)
    assert "no claimed requirement forbids" in by_id[other].reason


def test_every_anomaly_can_be_attributed() -> None:
    """Every finding on the newest release is forbidden by a requirement that applies."""
    rows = dict(catalogue.load())
    assert [anomaly for anomaly in Anomaly if attributed(str(anomaly), rows, experiment()) is None] == []


def test_requirements_share_the_runs_uncertainty() -> None:
    """A requirement that was not refuted has the verdict of the run: inconclusive, or error."""
    (poor,) = judged(coverage=(TOO_LITTLE,)).requirements
    (broken,) = judged(crashed=CRASH).requirements
    assert (poor.verdict, broken.verdict) == (Verdict.INCONCLUSIVE, Verdict.ERROR)


def test_a_requirement_of_another_release_does_not_apply() -> None:
    """A row about transaction.version 2 says nothing about a run that did not speak it."""
    rows = catalogue.load()
    name = next(each.id for each in rows.values() if each.applies.transaction_version == 2)
    (silent,) = judged(requirements=(name,)).requirements
    (spoken,) = judged(requirements=(name,), versions={"transaction.version": "2"}).requirements
    assert (silent.verdict, spoken.verdict) == (Verdict.NOT_APPLICABLE, Verdict.PASS)


def test_a_pass_of_at_least_once_says_so_and_decides_no_duplicates() -> None:
    """It counts the duplicates, and leaves requirements about them untested; another defect still fails."""
    claims = ("GRP-04", "GRP-19", "TXN-25")
    again = RawViolation(anomaly=Anomaly.DUPLICATE, cause="allowed")
    ahead = replace(again, anomaly=Anomaly.OUTPUT_WITHOUT_OFFSET)
    passed = judged(requirements=claims, semantics="at-least-once", allowed=(again, again, ahead))
    said = "2 duplicates and 1 output ahead of its offset, which at-least-once allows"
    assert (passed.verdict, passed.allowed) == (Verdict.PASS, (("duplicate", 2), ("output-without-offset", 1)))
    assert passed.reason == f"{said}; nothing else was found and every coverage floor was reached"
    assert [each.id for each in passed.requirements] == ["TXN-25"]
    none = judged(requirements=claims, semantics="at-least-once")
    assert none.reason.startswith("0 duplicates, which at-least-once allows; nothing else was found")
    few = judged(requirements=claims, semantics="at-least-once", coverage=(TOO_LITTLE,))
    assert [(each.id, each.verdict) for each in few.requirements] == [("TXN-25", Verdict.INCONCLUSIVE)]
    failed = judged(finding("offset-without-output"), requirements=claims, semantics="at-least-once", allowed=(again,))
    assert failed.reason == "found 1 offset-without-output; 1 duplicate, which at-least-once allows"
    assert {each.id: each.verdict for each in failed.requirements} == {
        "GRP-04": Verdict.FAIL,
        "GRP-19": Verdict.FAIL,
        "TXN-25": Verdict.PASS,
    }
    exactly = judged(requirements=claims)
    assert (exactly.allowed, [each.id for each in exactly.requirements]) == ((), list(claims))


def test_an_unknown_requirement_is_an_error() -> None:
    """A claim that the catalogue does not have is a mistake of ours, not a pass."""
    (unknown,) = judged(requirements=("TXN-99",)).requirements
    assert unknown.verdict is Verdict.ERROR


@pytest.mark.parametrize(
    ("expects", "found", "right"),
    [
        (("duplicate",), ("duplicate",), True),
        (("duplicate",), (), False),
        (("duplicate",), ("lost-write",), False),
        (("duplicate",), ("duplicate", "lost-write"), False),
        (("aborted-read", "zombie-write"), ("zombie-write", "aborted-read"), True),
        (("aborted-read", "zombie-write"), ("aborted-read",), False),
        (("aborted-read|early-read",), ("early-read",), True),
        (("aborted-read|early-read",), ("aborted-read", "early-read"), True),
        (("aborted-read|early-read",), ("duplicate",), False),
    ],
)
def test_a_control_is_convicted_of_exactly_what_it_names(
    expects: tuple[str, ...], found: tuple[str, ...], right: bool
) -> None:
    """Each named anomaly must be found, and nothing else; alternatives need one of them."""
    assert convicted(expects, found) is right
    verdict = judged(*map(finding, found), control_expects=expects)
    assert (verdict.control, verdict.convicted) == (True, right)
    assert verdict.verdict is (Verdict.PASS if right else Verdict.ERROR)
    assert verdict.requirements == ()


def test_a_control_is_not_convicted_by_a_judge_that_crashed() -> None:
    """Finding the right thing proves nothing when other checks could not run."""
    verdict = judged(finding("duplicate"), control_expects=("duplicate",), crashed=CRASH)
    assert verdict.verdict is Verdict.ERROR


def test_verdicts_combine_to_the_worst() -> None:
    """Every combination of two verdicts is the higher one of the lattice."""
    for left, right in itertools.product(Verdict, Verdict):
        assert Verdict.worst((left, right)) == max(left, right)
    assert Verdict.worst(()) is Verdict.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        ((), ExitCode.INCONCLUSIVE),
        ((Verdict.PASS, Verdict.NOT_APPLICABLE), ExitCode.CONFORMANT),
        ((Verdict.PASS, Verdict.INCONCLUSIVE), ExitCode.INCONCLUSIVE),
        ((Verdict.INCONCLUSIVE, Verdict.ERROR), ExitCode.ENVIRONMENT),
        ((Verdict.ERROR, Verdict.FAIL, Verdict.PASS), ExitCode.VIOLATION),
    ],
)
def test_exit_codes_follow_the_precedence(verdicts: tuple[Verdict, ...], code: ExitCode) -> None:
    """A proven violation wins over an environment that broke, which wins over too little coverage."""
    assert exit_code(code_of(verdict) for verdict in verdicts) is code


@pytest.mark.parametrize(
    ("code", "complete", "decision"),
    [
        (ExitCode.CONFORMANT, True, Decision.GO),
        (ExitCode.CONFORMANT, False, Decision.UNDECIDED),
        (ExitCode.VIOLATION, False, Decision.NO_GO),
        (ExitCode.REGRESSION, True, Decision.NO_GO),
        (ExitCode.INCONCLUSIVE, True, Decision.UNDECIDED),
        (ExitCode.ENVIRONMENT, True, Decision.UNDECIDED),
        (ExitCode.USAGE, True, Decision.UNDECIDED),
    ],
)
def test_go_needs_a_complete_conformant_run(code: ExitCode, complete: bool, decision: Decision) -> None:
    """GO is exit code 0 of a complete profile and nothing less."""
    assert decision_of(code, complete=complete) is decision
