"""The decision on a protocol run: GO, accepted violations, missing cases, and regressions."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from reports.__main__ import main
from reports.comparing.baseline import read as read_baseline
from reports.comparing.compare import against
from reports.formats import terminal
from reports.formats.write import write_all
from reports.loading.run import load_run
from reports.model.run_record import Acceptance, Ended, RunState
from tests.support.protocol_run_directories import (
    INAPPLICABLE,
    PASSED,
    UNNAMED,
    VIOLATED,
    make_protocol_run,
    protocol_report,
    protocol_run_record,
    said,
)
from tests.support.rendered_runs import SCHEMA, page_of
from verification.scripts.script import Statement
from verification.vocabulary.verdict import Decision, ExitCode, Verdict


def test_a_protocol_run_in_which_everything_holds_is_a_go(tmp_path: Path) -> None:
    """Passed and inapplicable cases of a whole protocol run are a GO; a narrowed run is partial."""
    report, _ = protocol_report(tmp_path / "whole", (PASSED, INAPPLICABLE))
    assert report.judgement.decision is Decision.GO
    assert "1 of 2 cases passed, 1 did not apply" in report.judgement.why
    part, _ = protocol_report(tmp_path / "part", (PASSED,), narrowed_by="gap")
    assert part.judgement.exit_code is ExitCode.CONFORMANT
    assert part.judgement.decision is Decision.UNDECIDED
    assert part.partial == 'narrowed to the selection "gap"'


def test_nothing_that_applies_is_inconclusive(tmp_path: Path) -> None:
    """A protocol run with only inapplicable cases decided nothing."""
    report, _ = protocol_report(tmp_path, (INAPPLICABLE,))
    assert report.judgement.exit_code is ExitCode.INCONCLUSIVE
    assert report.judgement.why.startswith("0 of 1 case applied to the subject")


@pytest.mark.parametrize(
    ("accepted", "code"), [("KB-05", ExitCode.CONFORMANT), ("IDEMP-10", ExitCode.CONFORMANT), ("KB-16", 1)]
)
def test_a_violation_is_accepted_by_its_bug_or_its_requirement(tmp_path: Path, accepted: str, code: int) -> None:
    """A case is accepted by the bug that names it, or by every requirement that it violates; by no other bug."""
    report, run = protocol_report(tmp_path, (PASSED, VIOLATED), accepted=(Acceptance(id=accepted),), strict=True)
    assert report.judgement.exit_code == code
    assert report.acceptances[0].findings == (code == 0)
    assert report.cases[1].verdict is Verdict.FAIL
    assert ("FAIL, accepted" in page_of(run).text) == (code == 0)


@pytest.mark.parametrize(
    ("lacking", "missing", "error", "code"),
    [
        ({"broke": "broker 1 closed the connection"}, (), "", ExitCode.ENVIRONMENT),
        ({}, (said(3, "the end is seen", True, False, required=True),), "", ExitCode.INCONCLUSIVE),
        ({}, (), "the cluster did not stop", ExitCode.ENVIRONMENT),
    ],
    ids=["broke off", "no precondition", "broken environment"],
)
def test_an_accepted_violation_of_a_case_covers_nothing_but_itself(
    tmp_path: Path, lacking: dict[str, Any], missing: tuple[Statement, ...], error: str, code: int
) -> None:
    """A case that stopped with an error after its accepted violation is not conformant, and its reason says why."""
    case = replace(VIOLATED, **lacking, statements=(*VIOLATED.statements, *missing))
    ended = (Ended(key=case.case, seconds=1.0, error=error),)
    report, _ = protocol_report(
        tmp_path, (PASSED, case), accepted=(Acceptance(id=VIOLATED.requirements[0]),), ended=ended
    )
    assert (report.judgement.exit_code, report.judgement.decision) == (code, Decision.UNDECIDED)
    one = next(each for each in report.cases if each.key == case.case)
    assert (one.verdict, one.accepted) == (Verdict.FAIL, True)
    assert "; accepted, but " in one.reason
    assert case.case in report.judgement.why


@pytest.mark.parametrize(
    ("accepted", "code"), [(("KB-01",), 1), (("KB-02",), 1), (("KB-01", "KB-02"), 0), (("FENCE-01",), 0)]
)
def test_two_bugs_in_one_case_are_accepted_together(tmp_path: Path, accepted: tuple[str, ...], code: int) -> None:
    """Accepting a late batch does not accept a late offset, which the same zombie commits on 3.5.2."""
    wrong = [said(3, what, "INVALID_PRODUCER_EPOCH (47)", "NONE (0)") for what in ("Produce", "TxnOffsetCommit")]
    case = "fencing-an-idle-zombie-is-powerless-tv1"
    both = replace(VIOLATED, case=case, release="3.5.2", requirements=("FENCE-01",), statements=tuple(wrong))
    report, _ = protocol_report(
        tmp_path, (both,), release="3.5.2", accepted=tuple(Acceptance(id=each) for each in accepted), strict=True
    )
    assert report.judgement.exit_code == code


def test_a_second_defect_in_a_known_case_is_not_accepted_with_the_bug(tmp_path: Path) -> None:
    """KB-05 is accepted, and a record that is delivered twice in the same case still counts."""
    doubled = replace(VIOLATED, statements=(*VIOLATED.statements, said(3, "the log", ["a"], ["a", "a"])))
    report, _ = protocol_report(tmp_path, (PASSED, doubled), accepted=(Acceptance(id="KB-05"),))
    assert report.judgement.exit_code is ExitCode.VIOLATION


def test_a_bug_that_does_not_name_the_case_accepts_nothing(tmp_path: Path) -> None:
    """Release and requirement alone prove nothing: KB-03 violates TXN-27 on 4.3.1, but need not cause this failure."""
    report, _ = protocol_report(tmp_path, (UNNAMED,), accepted=(Acceptance(id="KB-03"),))
    assert report.judgement.exit_code is ExitCode.VIOLATION


def test_a_planned_case_that_left_nothing_is_missed(tmp_path: Path) -> None:
    """It is an error and a problem; a recorded error is its reason, and then it is no problem."""
    run = make_protocol_run(tmp_path / "run", (PASSED, VIOLATED))
    shutil.rmtree(run / "runs" / VIOLATED.case)
    report = load_run(run)
    assert report.cases[1].verdict is Verdict.ERROR
    assert [each.place for each in report.problems] == [f"runs/{VIOLATED.case}"]
    assert report.judgement.exit_code is ExitCode.ENVIRONMENT
    broken = Ended(key=VIOLATED.case, seconds=9.0, error="broker 1 did not start within 60 s")
    protocol_run_record((PASSED, VIOLATED), ended=(broken,)).write(run / "run.json")
    explained = load_run(run)
    assert explained.cases[1].reason == "broker 1 did not start within 60 s"
    assert not explained.problems


def test_an_interruption_leaves_cases_undecided_and_proofs_proven(tmp_path: Path) -> None:
    """A case that did not run is inconclusive; a violation before Ctrl-C stays a violation."""
    for scripts, code in (((PASSED, UNNAMED), ExitCode.ENVIRONMENT), ((VIOLATED, UNNAMED), ExitCode.VIOLATION)):
        place = tmp_path / scripts[0].case
        ended = (Ended(key=scripts[0].case, seconds=1.0),)
        run = make_protocol_run(place, scripts, state=RunState.INTERRUPTED, ended=ended, strict=True)
        shutil.rmtree(run / "runs" / UNNAMED.case)
        report = load_run(run)
        assert report.cases[1].verdict is Verdict.INCONCLUSIVE
        assert report.judgement.exit_code is code
        assert report.interrupted
        assert "1 case did not run, because the run was interrupted." in terminal.render(report)


def test_a_regression_between_releases_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A case that passed on one release and fails on the next is exit code 3 of diff, and named in the report."""
    good = replace(VIOLATED, release="4.2.1", statements=(said(3, "sequence 0", "NONE (0)", "NONE (0)"),))
    before = make_protocol_run(tmp_path / "before", (PASSED, good), release="4.2.1")
    write_all(load_run(before), before)
    after = make_protocol_run(tmp_path / "after", (PASSED, VIOLATED))
    assert main(["diff", str(before), str(after)]) == ExitCode.REGRESSION
    printed = capsys.readouterr().out
    assert "regressed" in printed
    assert VIOLATED.case in printed
    report = against(load_run(after), read_baseline(before / "results.json"))
    assert {(str(each.case), each.id) for each in report.comparison.regressions} == {  # type: ignore[union-attr]
        ("case", VIOLATED.case),
        ("requirement", "IDEMP-10"),
    }
    write_all(report, after)
    jsonschema.validate(json.loads((after / "results.json").read_text(encoding="utf-8")), SCHEMA)
    assert main([str(before), "--baseline", str(after / "results.json")]) == ExitCode.CONFORMANT


def test_a_case_that_is_not_performed_any_more_vanished(tmp_path: Path) -> None:
    """Leaving out a case that passed is a regression."""
    before, _ = protocol_report(tmp_path / "before", (PASSED, INAPPLICABLE))
    write_all(before, tmp_path / "kept")
    after = load_run(make_protocol_run(tmp_path / "after", (INAPPLICABLE,)))
    report = against(after, read_baseline(tmp_path / "kept"))
    assert report.judgement.exit_code is ExitCode.REGRESSION
