"""The report of a sweep of protocol cases: what decided each case is on every face, and no case is lost."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from reports import terminal
from reports.__main__ import main
from reports.baseline import read as read_baseline
from reports.compare import against
from reports.load import load_run
from reports.model import Report
from reports.run_record import Acceptance, Ended, RunState
from reports.write import write_all
from tests.run_directories import EVERY_VERDICT, SMOKE, make_run
from tests.sweep_directories import (
    BROKEN,
    EVERY_SCRIPT,
    INAPPLICABLE,
    PASSED,
    UNDECIDED,
    UNNAMED,
    VIOLATED,
    exchange,
    make_case,
    make_sweep,
    said,
    sweep_record,
)
from tests.test_report_faces import HOSTILE, SCHEMA, page_of
from verification.script import Script, Statement, judge
from verification.verdict import Decision, ExitCode, Verdict

NAMES = ("report.html", "results.json", "junit.xml", "ctrf.json", "summary.md", "badge.json")


def swept(tmp_path: Path, scripts: tuple[Script, ...] = EVERY_SCRIPT, **changes: object) -> tuple[Report, Path]:
    """A planted sweep and the directory that its faces were written to."""
    run = make_sweep(tmp_path / "run", scripts, **changes)
    report = load_run(run)
    write_all(report, run)
    return report, run


def test_every_case_has_the_verdict_of_its_script(tmp_path: Path) -> None:
    """All six endings come from the statements, and the decision from them."""
    report, _ = swept(tmp_path)
    assert {each.key: each.verdict for each in report.cases} == {
        script.case: judge(script).verdict for script in EVERY_SCRIPT
    }
    assert {each.verdict for each in report.cases} == set(Verdict)
    assert report.judgement.exit_code is ExitCode.VIOLATION
    assert report.judgement.decision is Decision.NO_GO
    assert not report.partial
    assert not report.problems


def test_the_page_shows_what_decided_a_case(tmp_path: Path) -> None:
    """Claim, expected, observed, exchanges with codes and versions, the known bug, the command: in words."""
    _, run = swept(tmp_path)
    text = page_of(run).text
    section = text[text.index("Details") : text.index("The worst verdict of any")]
    for fact in (
        VIOLATED.claim,
        "sequence 17, first of all",
        "OUT_OF_ORDER_SEQUENCE_NUMBER (45)",
        "Produce",
        "v12",
        "broker 1",
        "1 record of producer 26, epoch 0, sequence 17",
        "known bug KB-05",
        "documented limitation",
        "that it is what shows here is not proven",
        "broker 1 closed the connection",
        "The ground for the claim was missing",
        VIOLATED.replay,
    ):
        assert fact in section, fact
    # What passed comes after what did not, and is there as well.
    assert PASSED.claim not in section
    assert text.index(VIOLATED.claim) < text.index("Cases that passed") < text.index(PASSED.claim)
    assert "nothing of it applies to 4.3.1" in text


def test_a_page_of_cases_is_self_contained(tmp_path: Path) -> None:
    """No script, no resource, unique ids, and every reference leads somewhere."""
    _, run = swept(tmp_path)
    page = page_of(run)
    assert not page.tags & {"script", "link", "iframe", "object", "embed", "img"}
    assert not page.resources
    assert len(page.ids) == len(set(page.ids))
    assert {"IDEMP-10", VIOLATED.case, PASSED.case, INAPPLICABLE.case, "family-IDEMP"} <= set(page.ids)
    for reference in page.references:
        assert reference[1:] in page.ids if reference.startswith("#") else (run / reference).exists(), reference


def test_results_of_a_sweep_follow_the_published_schema(tmp_path: Path) -> None:
    """`cases` validates, names what decided each one, and its script; guarantees are judged by scenarios alone."""
    _, run = swept(tmp_path)
    results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    jsonschema.validate(results, SCHEMA)
    assert "guarantees" not in results
    assert results["scenarios"] == []
    by_id = {each["id"]: each for each in results["cases"]}
    assert list(by_id) == [each.case for each in EVERY_SCRIPT]
    violated = by_id[VIOLATED.case]
    assert [each["what"] for each in violated["deciding"]] == ["sequence 17, first of all", "sequence 0"]
    assert [(each["id"], each["named"]) for each in violated["known"]] == [("KB-05", True)]
    assert {each["named"] for each in by_id[UNNAMED.case]["known"]} == {False}
    assert (run / violated["script"]["path"]).is_file()
    del violated["script"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(results, SCHEMA)


def test_results_without_cases_stay_valid(tmp_path: Path) -> None:
    """A run of scenarios has no `cases`, and the schema still takes it."""
    run = make_run(tmp_path / "run", EVERY_VERDICT)
    write_all(load_run(run), run)
    results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    jsonschema.validate(results, SCHEMA)
    assert "cases" not in results


def test_the_requirements_say_which_case_decided_them(tmp_path: Path) -> None:
    """A row has the worst verdict of its cases; what no case decided has a reason that fits a sweep."""
    report, _ = swept(tmp_path)
    rows = {row.id: row for row in report.requirements}
    assert rows["IDEMP-10"].verdict is Verdict.FAIL
    assert [key for key, _, _ in rows["IDEMP-10"].decided_by] == [VIOLATED.case]
    assert rows["2PC-01"].verdict is Verdict.NOT_APPLICABLE
    untested = {row.untested for row in report.requirements if row.verdict is None}
    assert "No case of this sweep decides it." in untested
    assert all("scenario" not in each for each in untested)


def test_a_sweep_in_which_everything_holds_is_a_go(tmp_path: Path) -> None:
    """Passed and inapplicable cases of a whole sweep; of a narrowed one it is only a part."""
    report, _ = swept(tmp_path / "whole", (PASSED, INAPPLICABLE))
    assert report.judgement.decision is Decision.GO
    assert "1 of 2 cases passed, 1 did not apply" in report.judgement.why
    part, _ = swept(tmp_path / "part", (PASSED,), narrowed_by="gap")
    assert part.judgement.exit_code is ExitCode.CONFORMANT
    assert part.judgement.decision is Decision.UNDECIDED
    assert part.partial == "narrowed by gap"


def test_nothing_that_applies_is_inconclusive(tmp_path: Path) -> None:
    """A sweep of nothing but inapplicable cases decided nothing."""
    report, _ = swept(tmp_path, (INAPPLICABLE,))
    assert report.judgement.exit_code is ExitCode.INCONCLUSIVE
    assert report.judgement.why.startswith("0 of 1 case applied to the subject")


@pytest.mark.parametrize(
    ("accepted", "code"), [("KB-05", ExitCode.CONFORMANT), ("IDEMP-10", ExitCode.CONFORMANT), ("KB-16", 1)]
)
def test_a_violation_is_accepted_by_its_bug_or_its_requirement(tmp_path: Path, accepted: str, code: int) -> None:
    """The bug that names the case, or every requirement that it violates; another bug accepts nothing."""
    report, run = swept(tmp_path, (PASSED, VIOLATED), accepted=(Acceptance(id=accepted),))
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
    ids=["broke off", "no ground", "broken environment"],
)
def test_an_accepted_violation_of_a_case_covers_nothing_but_itself(
    tmp_path: Path, lacking: dict[str, Any], missing: tuple[Statement, ...], error: str, code: int
) -> None:
    """A case that broke off after its accepted violation is not conformant, and its reason says why."""
    case = replace(VIOLATED, **lacking, statements=(*VIOLATED.statements, *missing))
    ended = (Ended(key=case.case, seconds=1.0, error=error),)
    report, _ = swept(tmp_path, (PASSED, case), accepted=(Acceptance(id=VIOLATED.requirements[0]),), ended=ended)
    assert (report.judgement.exit_code, report.judgement.decision) == (code, Decision.UNDECIDED)
    one = next(each for each in report.cases if each.key == case.case)
    assert (one.verdict, one.accepted) == (Verdict.FAIL, True)
    assert "; accepted, but " in one.reason
    assert case.case in report.judgement.why


@pytest.mark.parametrize(
    ("accepted", "code"), [(("KB-01",), 1), (("KB-02",), 1), (("KB-01", "KB-02"), 0), (("FENCE-01",), 0)]
)
def test_two_bugs_in_one_case_are_accepted_together(tmp_path: Path, accepted: tuple[str, ...], code: int) -> None:
    """Whoever accepts a late batch has not accepted a late offset, which the same zombie commits on 3.5.2."""
    wrong = [said(3, what, "INVALID_PRODUCER_EPOCH (47)", "NONE (0)") for what in ("Produce", "TxnOffsetCommit")]
    case = "fencing-an-idle-zombie-is-powerless-tv1"
    both = replace(VIOLATED, case=case, release="3.5.2", requirements=("FENCE-01",), statements=tuple(wrong))
    report, _ = swept(tmp_path, (both,), release="3.5.2", accepted=tuple(Acceptance(id=each) for each in accepted))
    assert report.judgement.exit_code == code


def test_a_second_defect_in_a_known_case_is_not_accepted_with_the_bug(tmp_path: Path) -> None:
    """KB-05 is accepted, and a record that is given twice in the same case still counts."""
    beside = replace(VIOLATED, statements=(*VIOLATED.statements, said(3, "the log", ["a"], ["a", "a"])))
    report, _ = swept(tmp_path, (PASSED, beside), accepted=(Acceptance(id="KB-05"),))
    assert report.judgement.exit_code is ExitCode.VIOLATION


def test_a_bug_that_does_not_name_the_case_accepts_nothing(tmp_path: Path) -> None:
    """Release and requirement alone prove nothing: KB-03 violates TXN-27 on 4.3.1, and need not be what shows."""
    report, _ = swept(tmp_path, (UNNAMED,), accepted=(Acceptance(id="KB-03"),))
    assert report.judgement.exit_code is ExitCode.VIOLATION


def test_a_planned_case_that_left_nothing_is_missed(tmp_path: Path) -> None:
    """Without a word of explanation it is an error and a problem; what broke it is told where it is known."""
    run = make_sweep(tmp_path / "run", (PASSED, VIOLATED))
    shutil.rmtree(run / "runs" / VIOLATED.case)
    report = load_run(run)
    assert report.cases[1].verdict is Verdict.ERROR
    assert [each.place for each in report.problems] == [f"runs/{VIOLATED.case}"]
    assert report.judgement.exit_code is ExitCode.ENVIRONMENT
    broken = Ended(key=VIOLATED.case, seconds=9.0, error="broker 1 did not start within 60 s")
    sweep_record((PASSED, VIOLATED), ended=(broken,)).write(run / "run.json")
    explained = load_run(run)
    assert explained.cases[1].reason == "broker 1 did not start within 60 s"
    assert not explained.problems


def test_an_interruption_leaves_cases_undecided_and_proofs_proven(tmp_path: Path) -> None:
    """What was not reached is inconclusive; a violation before Ctrl-C stays one."""
    for scripts, code in (((PASSED, UNNAMED), ExitCode.ENVIRONMENT), ((VIOLATED, UNNAMED), ExitCode.VIOLATION)):
        place = tmp_path / scripts[0].case
        run = make_sweep(place, scripts, state=RunState.INTERRUPTED, ended=(Ended(key=scripts[0].case, seconds=1.0),))
        shutil.rmtree(run / "runs" / UNNAMED.case)
        report = load_run(run)
        assert report.cases[1].verdict is Verdict.INCONCLUSIVE
        assert report.judgement.exit_code is code
        assert report.interrupted
        assert "1 cases were not reached" in terminal.render(report)


@pytest.mark.parametrize("change", ["edited", "cut", "foreign", "moved"])
def test_an_unfit_script_is_refused_by_name(tmp_path: Path, change: str) -> None:
    """Edited by hand, cut, foreign, or of another case: an ERROR that names the file, beside cases that are told."""
    run = make_sweep(tmp_path / "run", (PASSED, VIOLATED))
    path = run / "runs" / VIOLATED.case / "script.json"
    text = path.read_text(encoding="utf-8")
    path.write_text(
        {
            "edited": text.replace('"observed": "NONE (0)"', '"observed": "OUT_OF_ORDER_SEQUENCE_NUMBER (45)"'),
            "cut": text[: len(text) // 2],
            "foreign": "[]",
            "moved": (run / "runs" / PASSED.case / "script.json").read_text(encoding="utf-8"),
        }[change],
        encoding="utf-8",
    )
    report = load_run(run)
    assert [each.verdict for each in report.cases] == [Verdict.PASS, Verdict.ERROR]
    assert report.cases[1].key == VIOLATED.case
    assert "script.json" in report.problems[0].text
    assert str(tmp_path) not in report.problems[0].text
    assert report.judgement.exit_code is ExitCode.ENVIRONMENT


def test_a_case_alone_is_a_part_of_a_sweep(tmp_path: Path) -> None:
    """One case's directory renders, copied out of its sweep too, and is never a GO."""
    run = make_sweep(tmp_path / "run", EVERY_SCRIPT)
    within = load_run(run / "runs" / PASSED.case)
    copied = load_run(make_case(tmp_path / "mailed", PASSED))
    for report in (within, copied):
        assert [each.verdict for each in report.cases] == [Verdict.PASS]
        assert report.partial == "one case of a sweep"
        assert report.judgement.decision is Decision.UNDECIDED
    assert within.subject.runtime == "local"
    assert copied.subject.release == "4.3.1"


def test_the_command_renders_a_sweep_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`python -m reports DIR` writes the same bytes again and returns the code of the decision."""
    _, run = swept(tmp_path)
    first = [(run / name).read_bytes() for name in NAMES]
    assert main([str(run)]) == ExitCode.VIOLATION
    assert [(run / name).read_bytes() for name in NAMES] == first
    assert not (run / "trace.json").exists()
    printed = capsys.readouterr().out
    assert "known    KB-05" in printed
    assert f"again    {VIOLATED.replay}" in printed
    assert PASSED.case not in printed


def test_what_is_printed_about_a_case_fits(tmp_path: Path) -> None:
    """However much is violated, a case has at most twelve lines of ordinary width."""
    many = replace(VIOLATED, statements=tuple(said(3, f"thing {n} " * 30, "a" * 900, "b" * 900) for n in range(40)))
    report, _ = swept(tmp_path, (many,))
    lines = terminal.case_lines(report.cases[0])
    assert len(lines) <= terminal.WITNESS_LINES_MAX
    assert all(len(line) <= terminal.LINE_MAX for line in lines)


def test_a_regression_between_releases_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A case that passed on one release and fails on the next is exit code 3 of diff, and named in the report."""
    good = replace(VIOLATED, release="4.2.1", statements=(said(3, "sequence 0", "NONE (0)", "NONE (0)"),))
    before = make_sweep(tmp_path / "before", (PASSED, good), release="4.2.1")
    write_all(load_run(before), before)
    after = make_sweep(tmp_path / "after", (PASSED, VIOLATED))
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
    before, _ = swept(tmp_path / "before", (PASSED, INAPPLICABLE))
    write_all(before, tmp_path / "kept")
    after = load_run(make_sweep(tmp_path / "after", (INAPPLICABLE,)))
    report = against(after, read_baseline(tmp_path / "kept"))
    assert report.judgement.exit_code is ExitCode.REGRESSION


def test_a_run_and_a_sweep_of_one_release_become_one_report(tmp_path: Path) -> None:
    """Requirements join both kinds of evidence, a column each; a copy of a sweep counts once."""
    run = make_run(tmp_path / "run", (SMOKE,))
    sweep = make_sweep(tmp_path / "sweep", EVERY_SCRIPT)
    shutil.copytree(sweep, tmp_path / "copy")
    out = tmp_path / "out"
    assert main([str(run), str(sweep), str(tmp_path / "copy"), "--out", str(out)]) == ExitCode.VIOLATION
    results = json.loads((out / "results.json").read_text(encoding="utf-8"))
    jsonschema.validate(results, SCHEMA)
    assert [each["name"] for each in results["parts"]] == ["4.3.1-local", "4.3.1-local-protocol", ""]
    assert len(results["cases"]) == len(EVERY_SCRIPT)
    rows = {each["id"]: each for each in results["requirements"]}
    assert rows["TXN-25"]["verdict"] == "PASS"
    assert rows["IDEMP-10"]["verdict"] == "FAIL"
    assert "guarantees" in results
    page = page_of(out)
    for reference in page.references:
        assert reference[1:] in page.ids if reference.startswith("#") else (out / reference).exists(), reference


def test_hostile_values_of_a_script_are_shown_and_never_interpreted(tmp_path: Path) -> None:
    """Markup and control characters in every field that a broker or a harness controls reach no face."""
    hostile = replace(
        VIOLATED,
        case="idempotence-hostile",
        claim=HOSTILE,
        requirements=("IDEMP-10", HOSTILE),
        cluster=HOSTILE,
        generation=HOSTILE,
        release=HOSTILE,
        broke=HOSTILE,
        replay=HOSTILE,
        features={HOSTILE: 2},
        exchanges=(exchange(1, HOSTILE, 1, {HOSTILE: HOSTILE}, {HOSTILE: [HOSTILE]}, to=HOSTILE, error=HOSTILE),),
        statements=(said(1, HOSTILE, HOSTILE, {HOSTILE: HOSTILE}),),
    )
    report, run = swept(tmp_path, (PASSED, hostile))
    page = page_of(run)
    assert "script" not in page.tags
    assert "<script>alert(1)</script>" in page.text
    for name in NAMES:
        assert not any(each in (run / name).read_text(encoding="utf-8") for each in "\x00\x07\u202e\x1b")
    assert "\x1b" not in terminal.render(report)
    jsonschema.validate(json.loads((run / "results.json").read_text(encoding="utf-8")), SCHEMA)


def test_a_long_script_is_shortened_around_what_decided_it(tmp_path: Path) -> None:
    """Of hundreds of exchanges the page has the beginning, the end and the violation, and counts what it leaves out."""
    exchanges = tuple(exchange(n, f"Api{n}", 1, {}, {"ErrorCode": 0}) for n in range(1, 301))
    long = replace(VIOLATED, exchanges=exchanges, statements=(said(150, "it", 1, 2),))
    _, run = swept(tmp_path, (long, replace(PASSED, exchanges=exchanges)))
    text = page_of(run).text
    for shown in ("Api1 ", "Api150 ", "Api300 ", "exchanges left out here"):
        assert shown in text
    assert "Api100 " not in text


def test_a_broken_script_says_so_on_every_face(tmp_path: Path) -> None:
    """ERROR and INCONCLUSIVE are never green: junit counts them as errors, ctrf as other."""
    _, run = swept(tmp_path, (PASSED, UNDECIDED, BROKEN))
    ctrf = json.loads((run / "ctrf.json").read_text(encoding="utf-8"))
    statuses = {each["name"]: each["status"] for each in ctrf["results"]["tests"] if "cases" in each["suite"]}
    assert statuses == {PASSED.case: "passed", UNDECIDED.case: "other", BROKEN.case: "other"}
    assert 'name="onceproof.cases" tests="3" failures="0" errors="2"' in (run / "junit.xml").read_text(encoding="utf-8")


def test_two_hundred_cases_stay_below_two_megabytes(tmp_path: Path) -> None:
    """A whole sweep can be mailed: passed cases of ordinary length carry their claims, not every statement."""
    exchanges = tuple(
        exchange(n, "EndTxn", 5, {"TransactionalId": "be36195a-owner"}, {"ErrorCode": 0}) for n in range(1, 16)
    )
    statements = tuple(
        said(n, "the commit is acknowledged", "NONE (0)", "NONE (0)", required=n % 3 > 0) for n in range(1, 16)
    )
    ordinary = replace(PASSED, exchanges=exchanges, statements=statements)
    _, run = swept(tmp_path, (*(replace(ordinary, case=f"{PASSED.case}-{n}") for n in range(200)), VIOLATED))
    assert (run / "report.html").stat().st_size < 2_000_000
