"""The decision on a run directory: verdict, decision, exit code, and the problems that a report must show."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reports.comparing.results import results
from reports.formats import terminal
from reports.formats.test_cases import Ending, cases
from reports.loading.run import load_run
from reports.model.errors import UnfitRunError
from reports.model.report import Report
from reports.model.run_record import Acceptance, Ended, RunState
from tests.support.plans import BROKEN, CONTROL, FAILED, INAPPLICABLE, SMOKE, STARTED, UNDECIDED, Plan, found
from tests.support.run_directories import make_run
from verification.evidence.run_directory import scenario_directories
from verification.vocabulary.experiment import read
from verification.vocabulary.verdict import Decision, ExitCode, Verdict

OTHER = Plan(key="coordinator-crash")


def outcome(report: Report) -> tuple[Verdict, Decision, ExitCode]:
    """The result of the report."""
    return report.judgement.verdict, report.judgement.decision, report.judgement.exit_code


@pytest.mark.parametrize(
    ("plans", "expected"),
    [
        ((SMOKE, OTHER, CONTROL), (Verdict.PASS, Decision.GO, ExitCode.CONFORMANT)),
        ((SMOKE, INAPPLICABLE, CONTROL), (Verdict.PASS, Decision.GO, ExitCode.CONFORMANT)),
        ((SMOKE, FAILED, BROKEN, UNDECIDED), (Verdict.FAIL, Decision.NO_GO, ExitCode.VIOLATION)),
        ((SMOKE, BROKEN, UNDECIDED), (Verdict.ERROR, Decision.UNDECIDED, ExitCode.ENVIRONMENT)),
        ((SMOKE, UNDECIDED, CONTROL), (Verdict.INCONCLUSIVE, Decision.UNDECIDED, ExitCode.INCONCLUSIVE)),
        ((INAPPLICABLE,), (Verdict.INCONCLUSIVE, Decision.UNDECIDED, ExitCode.INCONCLUSIVE)),
        ((CONTROL,), (Verdict.INCONCLUSIVE, Decision.UNDECIDED, ExitCode.INCONCLUSIVE)),
        ((), (Verdict.INCONCLUSIVE, Decision.UNDECIDED, ExitCode.INCONCLUSIVE)),
    ],
    ids=[
        "all pass",
        "one not applicable",
        "a violation",
        "an error",
        "one open",
        "nothing applies",
        "controls",
        "none",
    ],
)
def test_the_decision_follows_from_the_worst(
    tmp_path: Path, plans: tuple[Plan, ...], expected: tuple[Verdict, Decision, ExitCode]
) -> None:
    """GO needs at least one pass and nothing worse; a run of nothing is inconclusive; a violation outranks an error."""
    assert outcome(load_run(make_run(tmp_path, plans))) == expected


def test_a_decision_on_pipelines_says_that_it_is_not_about_the_release(tmp_path: Path) -> None:
    """The sentence is there where nothing else was tried, and only there."""
    run = make_run(tmp_path, (SMOKE, OTHER))
    first, second = (directory.experiment for directory in scenario_directories(run))
    replace(read(first), pipeline=1).write(first)
    assert "not about the release" not in load_run(run).judgement.why
    replace(read(second), pipeline=1).write(second)
    assert "Only pipelines were tried" in load_run(run).judgement.why


def test_a_go_on_a_cluster_of_the_user_says_what_could_not_be_run(tmp_path: Path) -> None:
    """Without commands of the user no broker is struck; on a cluster of ours the sentence would say nothing new."""
    sentence = "1 scenario could not be run on this cluster; the list of scenarios says why."
    for runtime, said in (("local", False), ("given", True)):
        run = make_run(tmp_path / runtime, (SMOKE, INAPPLICABLE, CONTROL), runtime=runtime)
        for directory in scenario_directories(run):
            replace(read(directory.experiment), runtime=runtime).write(directory.experiment)
        report = load_run(run)
        assert outcome(report) == (Verdict.PASS, Decision.GO, ExitCode.CONFORMANT)
        assert (sentence in report.judgement.why) is said


@pytest.mark.parametrize("convicted", [False, None])
def test_a_missed_control_makes_the_run_an_error(tmp_path: Path, convicted: bool | None) -> None:
    """A missed control makes the run an ERROR, even if all scenarios pass."""
    missed = replace(CONTROL, verdict=Verdict.PASS, convicted=convicted, findings=())
    report = load_run(make_run(tmp_path, (SMOKE, missed)))
    assert outcome(report) == (Verdict.ERROR, Decision.UNDECIDED, ExitCode.ENVIRONMENT)
    assert missed.key in report.judgement.why


def test_a_control_that_does_not_apply_is_not_missed(tmp_path: Path) -> None:
    """A client without the sync point that it needs says nothing about the judge; no format calls it missed."""
    inapplicable = replace(CONTROL, verdict=Verdict.NOT_APPLICABLE, convicted=None, findings=())
    run = make_run(tmp_path, (SMOKE, inapplicable))
    report = load_run(run)
    assert outcome(report) == (Verdict.PASS, Decision.GO, ExitCode.CONFORMANT)
    (control,) = report.controls
    assert (control.control_result, control.clear) == (None, True)
    assert results(report)["controls"][0]["result"] == "NOT_APPLICABLE"
    assert "MISSED" not in terminal.render(report)
    assert [each.ending for each in cases(report) if each.suite == "controls"] == [Ending.SKIPPED]


def test_a_detected_control_does_not_count_as_a_violation(tmp_path: Path) -> None:
    """The anomalies of a control are no violations of the subject, nor of any requirement."""
    control = replace(CONTROL, requirements=("TXN-25",))
    report = load_run(make_run(tmp_path, (SMOKE, control)))
    assert outcome(report) == (Verdict.PASS, Decision.GO, ExitCode.CONFORMANT)
    assert next(row for row in report.requirements if row.id == "TXN-25").verdict is Verdict.PASS


def test_a_narrowed_run_is_partial_and_never_a_go(tmp_path: Path) -> None:
    """A run narrowed by -k keeps exit code 0 and does not become GO."""
    report = load_run(make_run(tmp_path, (SMOKE, CONTROL), narrowed_by="-k no-fault"))
    assert outcome(report) == (Verdict.PASS, Decision.UNDECIDED, ExitCode.CONFORMANT)
    assert report.partial == 'narrowed to the selection "-k no-fault"'
    assert "-k no-fault" in report.judgement.why


@pytest.mark.parametrize("state", [RunState.INTERRUPTED, RunState.RUNNING])
def test_an_interrupted_run_names_what_it_did_not_reach(tmp_path: Path, state: RunState) -> None:
    """An interrupted or killed run has exit code 5, and its unfinished scenarios are inconclusive by name."""
    unreached = replace(OTHER, present=False, ended=False)
    report = load_run(make_run(tmp_path, (SMOKE, unreached), state=state))
    assert outcome(report)[1:] == (Decision.UNDECIDED, ExitCode.ENVIRONMENT)
    assert report.interrupted
    missed = report.scenarios[1]
    assert (missed.key, missed.verdict) == (OTHER.key, Verdict.INCONCLUSIVE)
    assert missed.reason == f"not run, because the run was {state.cut_short}"


def test_a_violation_of_an_interrupted_run_stays_proven(tmp_path: Path) -> None:
    """A later failure does not take back a proven violation."""
    unreached = replace(OTHER, present=False, ended=False)
    report = load_run(make_run(tmp_path, (FAILED, unreached), state=RunState.INTERRUPTED))
    assert outcome(report) == (Verdict.FAIL, Decision.NO_GO, ExitCode.VIOLATION)


def test_a_planned_scenario_that_vanished_is_an_error_by_name(tmp_path: Path) -> None:
    """A finished run without the evidence of a planned scenario is not conformant."""
    report = load_run(make_run(tmp_path, (SMOKE, replace(OTHER, present=False))))
    assert outcome(report)[2] is ExitCode.ENVIRONMENT
    assert [problem.place for problem in report.problems] == [f"runs/{OTHER.key}"]


def test_an_inapplicable_scenario_leaves_its_requirements_untested(tmp_path: Path) -> None:
    """A scenario that does not apply to this kind of cluster is no pass, no error, and no evidence."""
    plan = replace(OTHER, present=False, requirements=("IDEMP-28",))
    passed_over = (Ended(key=SMOKE.key, seconds=1.0), Ended(key=OTHER.key, seconds=0.0, inapplicable="not on docker"))
    report = load_run(make_run(tmp_path, (SMOKE, plan), ended=passed_over))
    assert outcome(report) == (Verdict.PASS, Decision.GO, ExitCode.CONFORMANT)
    assert (report.scenarios[1].verdict, report.scenarios[1].reason) == (Verdict.NOT_APPLICABLE, "not on docker")
    assert next(row for row in report.requirements if row.id == "IDEMP-28").verdict is None


def test_an_environment_error_is_the_reason_of_its_scenario(tmp_path: Path) -> None:
    """The reader sees the error of the harness for a scenario that could not run."""
    broken = replace(OTHER, verdict=None, error="broker 2 did not start within 30 s")
    report = load_run(make_run(tmp_path, (SMOKE, broken)))
    assert (report.scenarios[1].verdict, report.scenarios[1].reason) == (Verdict.ERROR, broken.error)
    assert {each.verdict for each in report.scenarios[1].requirements} == {Verdict.ERROR}


@pytest.mark.parametrize(
    ("accepted", "findings", "code"),
    [
        ("KB-16", (found("hidden-committed", known_bug="KB-16"),), ExitCode.CONFORMANT),
        ("KB-16", (found("hidden-committed", known_bug="KB-16"), found("lost-write")), ExitCode.VIOLATION),
        ("KB-16", (found("hidden-committed"),), ExitCode.VIOLATION),
        ("KB-01", (found("hidden-committed", known_bug="KB-16"),), ExitCode.VIOLATION),
        ("KB-16", (found("unheard-of"),), ExitCode.VIOLATION),
        ("KB-16", (), ExitCode.VIOLATION),
    ],
    ids=["covered", "a second anomaly", "no signature", "another bug", "forbidden by nothing", "no finding"],
)
def test_acceptance_covers_what_it_names_and_nothing_else(
    tmp_path: Path, accepted: str, findings: tuple[object, ...], code: ExitCode
) -> None:
    """An accepted known bug does not decide the exit code; any other failure does; the verdict stays FAIL."""
    plan = replace(FAILED, findings=findings)  # type: ignore[arg-type]
    report = load_run(make_run(tmp_path, (SMOKE, plan), accepted=(Acceptance(id=accepted),)))
    assert report.judgement.exit_code is code
    assert report.judgement.verdict is Verdict.FAIL


@pytest.mark.parametrize(
    ("changes", "without_findings", "code", "said"),
    [
        ({}, Verdict.PASS, ExitCode.CONFORMANT, "were accepted"),
        (
            {"coverage_have": 12},
            Verdict.INCONCLUSIVE,
            ExitCode.INCONCLUSIVE,
            "too little was tried: operations attempted during the fault: 12 of 50",
        ),
        ({"crashed": ("check duplicate crashed: x",)}, Verdict.ERROR, ExitCode.ENVIRONMENT, "check duplicate crashed"),
        ({"error": "broker 2 did not stop"}, Verdict.ERROR, ExitCode.ENVIRONMENT, "broker 2 did not stop"),
    ],
    ids=["nothing else", "an unmet floor", "a crashed check", "a broken environment"],
)
def test_an_accepted_violation_covers_nothing_but_itself(
    tmp_path: Path, changes: dict[str, object], without_findings: Verdict, code: ExitCode, said: str
) -> None:
    """Another failure of an accepted scenario decides the exit code, is its reason, and is no skipped case."""
    plan = replace(FAILED, **changes)  # type: ignore[arg-type]
    report = load_run(make_run(tmp_path, (SMOKE, plan), accepted=(Acceptance(id="KB-16"),)))
    one = report.scenarios[1]
    assert (one.verdict, one.accepted, one.without_findings) == (Verdict.FAIL, True, without_findings)
    decision = Decision.GO if code is ExitCode.CONFORMANT else Decision.UNDECIDED
    assert outcome(report) == (Verdict.FAIL, decision, code)
    assert said in f"{one.reason} {report.judgement.why}"
    ending = next(each.ending for each in cases(report) if each.name == plan.key)
    assert ending is (Ending.SKIPPED if code is ExitCode.CONFORMANT else Ending.UNDECIDED)
    if code is not ExitCode.CONFORMANT:
        assert plan.key in report.judgement.why


def test_a_requirement_can_be_accepted(tmp_path: Path) -> None:
    """Accepting every violated requirement that forbids the anomaly covers the finding; accepting another does not."""
    plan = replace(FAILED, requirements=("TXN-25", "IDEMP-01"), findings=(found("torn-transaction"),))
    covered = make_run(tmp_path / "a", (SMOKE, plan), accepted=(Acceptance(id="TXN-25"),))
    uncovered = make_run(tmp_path / "b", (SMOKE, plan), accepted=(Acceptance(id="IDEMP-01"),))
    assert load_run(covered).judgement.exit_code is ExitCode.CONFORMANT
    assert load_run(uncovered).judgement.exit_code is ExitCode.VIOLATION


def test_an_acceptance_runs_out(tmp_path: Path) -> None:
    """After its last day an acceptance is shown and no longer holds; the day of the run decides."""
    last_day = make_run(tmp_path / "a", (FAILED,), accepted=(Acceptance(id="KB-16", until="2026-11-21"),))
    day_after = make_run(tmp_path / "b", (FAILED,), accepted=(Acceptance(id="KB-16", until="2026-11-20"),))
    assert load_run(last_day).judgement.exit_code is ExitCode.CONFORMANT
    late = load_run(day_after)
    assert late.judgement.exit_code is ExitCode.VIOLATION
    assert late.acceptances[0].expired


@pytest.mark.parametrize(
    ("until", "started", "code"),
    [
        # In UTC, which dates runs, the other side of midnight is another day.
        ("2026-11-21", "2026-11-22T01:00:00+02:00", ExitCode.CONFORMANT),
        ("2026-11-21", "2026-11-21T23:00:00-02:00", ExitCode.VIOLATION),
        ("20261121", STARTED, ExitCode.CONFORMANT),
        ("next year", STARTED, ExitCode.VIOLATION),
        ("2026-11-21", "", ExitCode.VIOLATION),
        ("2026-11-21", "some day", ExitCode.VIOLATION),
        ("", "some day", ExitCode.CONFORMANT),
    ],
)
def test_only_an_acceptance_that_is_known_to_hold_does(
    tmp_path: Path, until: str, started: str, code: ExitCode
) -> None:
    """Days are of UTC; an invalid day accepts nothing."""
    run = make_run(tmp_path, (FAILED,), accepted=(Acceptance(id="KB-16", until=until),), started=started)
    assert load_run(run).judgement.exit_code is code


def test_every_requirement_of_the_catalogue_is_in_the_report(tmp_path: Path) -> None:
    """A requirement that no scenario decided is untested with a reason; claimed ids have the worst verdict."""
    report = load_run(make_run(tmp_path, (SMOKE, FAILED)))
    rows = {row.id: row for row in report.requirements}
    assert rows["TXN-25"].verdict is Verdict.FAIL
    assert [key for key, _, _ in rows["TXN-25"].decided_by] == [SMOKE.key, FAILED.key]
    untested = [row for row in rows.values() if row.verdict is None]
    assert len(untested) == len(rows) - 2
    assert all(row.untested for row in untested)


def test_a_transaction_version_2_requirement_says_that_no_client_spoke_it(tmp_path: Path) -> None:
    """Without a TV2 client the requirements of TV2 are untested, and the report says why."""
    report = load_run(make_run(tmp_path, (SMOKE,)))
    assert any("transaction version 2" in row.untested for row in report.requirements if row.family == "TV2")


def test_a_scenario_alone_is_partial(tmp_path: Path) -> None:
    """The directory of one scenario renders, inside its run or copied out of it, and is never a GO."""
    run = make_run(tmp_path / "run", (SMOKE, OTHER))
    inside = load_run(run / "runs" / SMOKE.key)
    copied = (run / "runs" / SMOKE.key).rename(tmp_path / "elsewhere")
    for report in (inside, load_run(copied)):
        assert [each.scenario for each in report.scenarios] == [SMOKE.key]
        assert outcome(report) == (Verdict.PASS, Decision.UNDECIDED, ExitCode.CONFORMANT)
        assert not report.problems


def test_what_is_no_run_directory_is_refused_in_one_sentence(tmp_path: Path) -> None:
    """A missing path, an empty directory, a foreign one, and one with only a truncated run.json."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "foreign" / "runs" / "1").mkdir(parents=True)
    (tmp_path / "foreign" / "run.json").write_text('{"name": "something else"}', encoding="utf-8")
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "run.json").write_text('{"format": 1, "kind"', encoding="utf-8")
    for name in ("missing", "empty", "foreign", "cut"):
        with pytest.raises(UnfitRunError, match=r"run directory|not a directory") as refused:
            load_run(tmp_path / name)
        assert "\n" not in str(refused.value)


def test_damage_is_named_and_never_dropped(tmp_path: Path) -> None:
    """A truncated history, a truncated verdict, a foreign directory and a missing run.json are named problems."""
    run = make_run(tmp_path, (SMOKE, OTHER, UNDECIDED))
    history = run / "runs" / SMOKE.key / "history.jsonl"
    history.write_text(history.read_text(encoding="utf-8")[:-40], encoding="utf-8")
    verdicts = run / "runs" / OTHER.key / "verdicts.json"
    verdicts.write_bytes(b'{"format": 1, "verdict": "PA\xff')
    (run / "runs" / "stray").mkdir()
    report = load_run(run)
    assert {problem.place for problem in report.problems} == {
        f"runs/{SMOKE.key}",
        f"runs/{OTHER.key}",
        "runs/stray",
    }
    assert [each.verdict for each in report.scenarios[:2]] == [Verdict.ERROR, Verdict.ERROR]
    assert report.scenarios[0].timeline is not None
    (run / "run.json").unlink()
    assert "run.json" in {problem.place for problem in load_run(run).problems}
    assert load_run(run).judgement.exit_code is ExitCode.ENVIRONMENT


def test_a_verdict_of_another_run_is_not_believed(tmp_path: Path) -> None:
    """A verdicts.json that was copied from another run cannot pass a scenario."""
    run = make_run(tmp_path, (SMOKE, OTHER))
    source, target = (run / "runs" / key / "verdicts.json" for key in (SMOKE.key, OTHER.key))
    target.write_bytes(source.read_bytes())
    report = load_run(run)
    assert report.scenarios[1].verdict is Verdict.ERROR
    assert "belongs to run" in report.scenarios[1].reason


def test_an_error_after_the_judgement_takes_a_pass_back_but_no_violation(tmp_path: Path) -> None:
    """A scenario whose environment failed is no pass; one that failed stays failed."""
    ended = tuple(Ended(key=plan.key, seconds=1.0, error="the cluster did not stop") for plan in (SMOKE, FAILED))
    report = load_run(make_run(tmp_path, (SMOKE, FAILED), ended=ended))
    assert [each.verdict for each in report.scenarios] == [Verdict.ERROR, Verdict.FAIL]
