"""The default rule and `--strict` in reports: what decides, what is only shown, and that a GO is a GO for every reader."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as Xml

import jsonschema
import pytest

from reports.__main__ import main
from reports.comparing.baseline import read as read_baseline
from reports.comparing.compare import against
from reports.deciding.scorecards import cards
from reports.formats import badge, ctrf, junit, summary, terminal
from reports.formats.write import write_all
from reports.loading.merge import merge
from reports.loading.run import load_run
from reports.model.report import Report
from reports.model.run_record import Acceptance
from tests.support.plans import FAILED, SMOKE, Plan, found
from tests.support.protocol_run_directories import PASSED, UNNAMED, VIOLATED, make_protocol_run
from tests.support.rendered_runs import SCHEMA, page_of
from tests.support.run_directories import make_run
from verification.known_bugs.weight import Weight
from verification.requirements.catalogue import Protects
from verification.requirements.catalogue import load as load_requirements
from verification.scripts.script import Script, Statement
from verification.scripts.script import read as read_script
from verification.vocabulary.verdict import Decision, ExitCode, Finding, Verdict

#: Six cases of a real protocol run of Kafka 4.3.1; two of them fail, by KB-19 and KB-05.
REAL = Path(__file__).parent / "golden" / "protocol-4.3.1" / "run"
FENCED = "fencing-a-zombie-that-continues-leaves-its-successors-transaction-open-tv2"
HALF = "idempotence-half-of-an-identity-is-malformed"
STRANDED = replace(FAILED, key="late-duplicate", findings=(found("stranded-producer", count=1, known_bug="KB-17"),))


@pytest.fixture
def real(tmp_path: Path) -> Path:
    """A copy of the real run, without its baseline."""
    shutil.copytree(REAL, tmp_path / "real")
    (tmp_path / "real" / "baseline.json").unlink()
    return tmp_path / "real"


def decided(report: Report) -> tuple[Decision, ExitCode]:
    """The decision with its exit code."""
    return report.judgement.decision, report.judgement.exit_code


def planted(tmp_path: Path, *plans: Plan, **changes: object) -> Report:
    """The report of a planted run, next to a scenario that passed."""
    return load_run(make_run(tmp_path, (SMOKE, *plans), **changes))


def test_a_real_run_with_known_violations_is_a_go_by_the_default_rule(
    real: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its violations are shown and stay FAIL; with --strict the same evidence is a NO-GO."""
    report = load_run(real)
    assert decided(report) == (Decision.GO, ExitCode.CONFORMANT)
    assert (report.judgement.verdict, report.judgement.risks) == (Verdict.FAIL, ("KB-05", "KB-19"))
    assert {each.id for each in report.requirements if each.verdict is Verdict.FAIL} == {
        "FENCE-01",
        "TXN-05",
        "IDEMP-10",
    }
    assert main([str(real), "--out", str(tmp_path / "default")]) == ExitCode.CONFORMANT
    assert "✓ GO (default rule)   verdict FAIL, 2 standing risks, exit code 0" in capsys.readouterr().out
    assert main([str(real), "--strict", "--out", str(tmp_path / "strict")]) == ExitCode.VIOLATION
    assert "✗ NO-GO (--strict)   verdict FAIL, exit code 1" in capsys.readouterr().out


@pytest.mark.parametrize(("case", "protects"), [(FENCED, Protects.RECORDS), (HALF, Protects.CONTRACT)])
def test_an_observation_that_no_bug_explains_is_a_no_go(real: Path, case: str, protects: Protects) -> None:
    """One changed answer in the script of a real case has no name, and decides in each class.

    In the first case the known violation is still there, next to the unknown one.
    """
    path = real / "runs" / case / "script.json"
    script = read_script(path)
    assert {load_requirements()[each].protects for each in script.requirements} == {protects}
    mutant = _changed(script, lambda each: replace(each, observed="UNKNOWN_SERVER_ERROR (-1)"))
    mutant.write(path)
    report = load_run(real)
    assert decided(report) == (Decision.NO_GO, ExitCode.VIOLATION)
    assert case in {each.key for each in report.cases if each.verdict is Verdict.FAIL and not each.aside}


def _changed(script: Script, change: Callable[[Statement], Statement]) -> Script:
    """The script with its last claim changed."""
    last = max(place for place, each in enumerate(script.statements) if not each.required)
    statements = [change(each) if place == last else each for place, each in enumerate(script.statements)]
    return replace(script, statements=tuple(statements))


@pytest.mark.parametrize("protects", Protects)
def test_a_violation_without_a_name_is_a_no_go_in_each_class(tmp_path: Path, protects: Protects) -> None:
    """A protocol case whose violated requirement protects records, progress or the contract."""
    of_class = next(each.id for each in load_requirements().values() if each.protects is protects)
    unnamed = replace(UNNAMED, requirements=(of_class,))
    report = load_run(make_protocol_run(tmp_path, (PASSED, unnamed)))
    assert decided(report) == (Decision.NO_GO, ExitCode.VIOLATION)


@pytest.mark.parametrize(
    ("plans", "decision", "risks"),
    [
        ((STRANDED,), Decision.GO, ("KB-17",)),
        ((FAILED,), Decision.NO_GO, ()),
        ((FAILED, STRANDED), Decision.NO_GO, ("KB-17",)),
        ((replace(STRANDED, findings=(*STRANDED.findings, *FAILED.findings)),), Decision.NO_GO, ("KB-17",)),
        ((replace(STRANDED, findings=(*STRANDED.findings, found("lost-write"))),), Decision.NO_GO, ("KB-17",)),
        ((replace(STRANDED, findings=(found("stranded-producer"),)),), Decision.NO_GO, ()),
        ((replace(STRANDED, findings=(found("stranded-producer", known_bug="KB-99"),)),), Decision.NO_GO, ()),
        ((replace(STRANDED, findings=()),), Decision.NO_GO, ()),
    ],
    ids=[
        "a standing risk",
        "a bug that decides",
        "both",
        "both in one scenario",
        "an unnamed one in the same scenario",
        "no name",
        "a name that this version does not know",
        "no finding",
    ],
)
def test_each_finding_has_its_weight(
    tmp_path: Path, plans: tuple[Plan, ...], decision: Decision, risks: tuple[str, ...]
) -> None:
    """A scenario decides when one of its findings does; the others are shown anyway."""
    report = planted(tmp_path, *plans)
    assert (report.judgement.decision, report.judgement.risks) == (decision, risks)
    assert planted(tmp_path / "strict", *plans, strict=True).judgement.decision is Decision.NO_GO


def test_a_standing_risk_covers_nothing_but_itself(tmp_path: Path) -> None:
    """Too little coverage of the same scenario leaves the run undecided, and its reason says so."""
    report = planted(tmp_path, replace(STRANDED, coverage_have=12))
    assert decided(report) == (Decision.UNDECIDED, ExitCode.INCONCLUSIVE)
    assert "; standing risk, but too little was tried" in report.scenarios[1].reason
    assert "could not be decided: late-duplicate. No violation that decides was proven" in report.judgement.why


def test_a_regression_is_a_no_go_whatever_its_weight(tmp_path: Path) -> None:
    """A known bug that the baseline does not have is a reason against the new release."""
    write_all(planted(tmp_path / "before", replace(STRANDED, verdict=Verdict.PASS, findings=())), tmp_path / "before")
    report = against(planted(tmp_path / "after", STRANDED), read_baseline(tmp_path / "before"))
    assert decided(report) == (Decision.NO_GO, ExitCode.REGRESSION)
    same = against(planted(tmp_path / "again", STRANDED), read_baseline(_written(tmp_path / "after")))
    assert decided(same) == (Decision.GO, ExitCode.CONFORMANT)


def _written(run: Path) -> Path:
    write_all(load_run(run), run)
    return run


def test_an_accepted_bug_is_no_standing_risk(tmp_path: Path) -> None:
    """What the user accepted is listed as accepted, under both rules."""
    for strict in (False, True):
        report = planted(tmp_path / str(strict), STRANDED, accepted=(Acceptance(id="KB-17"),), strict=strict)
        assert decided(report) == (Decision.GO, ExitCode.CONFORMANT)
        assert (report.judgement.risks, report.judgement.aside) == ((), "accepted")


def test_merged_runs_are_decided_by_the_stricter_rule(tmp_path: Path) -> None:
    """Two runs that end GO are a GO together; if one of them was strict, every violation of both decides."""
    lenient = make_run(tmp_path / "a", (SMOKE, STRANDED))
    again = make_run(tmp_path / "b", (replace(SMOKE, release="4.2.1"),), release="4.2.1")
    assert decided(merge((lenient, again), tmp_path / "out"))[0] is Decision.GO
    strict = make_run(tmp_path / "c", (replace(SMOKE, release="4.2.1"),), release="4.2.1", strict=True)
    report = merge((lenient, strict), tmp_path / "out")
    assert decided(report) == (Decision.NO_GO, ExitCode.VIOLATION)
    assert report.judgement.rule == "--strict"
    assert {each.decision for each in report.parts} == {"GO", "NO-GO"}


def test_every_output_format_shows_what_does_not_decide(tmp_path: Path) -> None:
    """Counts on the terminal and in the summary, lists on the page, weights in the results; each in the order of weights."""
    contract = replace(STRANDED, key="too-long-a-list", findings=(found("hung-transaction", known_bug="KB-28"),))
    run = make_run(tmp_path, (SMOKE, contract, STRANDED))
    report = load_run(run)
    write_all(report, run)
    said = "FAIL, 1 standing risk, 1 deviation"
    assert (report.judgement.risks, report.judgement.deviations) == (("KB-17",), ("KB-28",))
    assert said in terminal.render(report)
    assert said in summary.render(report).splitlines()[0]
    assert json.loads(badge.dumps(report))["message"] == "GO · Kafka 4.3.1, 1 standing risk, 1 deviation"
    page = page_of(run)
    assert {"not-deciding", "risks"} <= set(page.ids)
    assert "why" not in page.ids
    assert "protects records" in page.text
    assert page.text.index("Not counted by the default rule: 1 standing risk, 1 deviation.") < page.text.index(
        "Subject"
    )
    assert page.text.index("standing risk: 1 test fails") < page.text.index("deviation: 1 test fails")
    results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    jsonschema.validate(results, SCHEMA)
    assert (results["strict"], results["standing_risks"], results["deviations"]) == (False, ["KB-17"], ["KB-28"])
    assert [each["findings"][0]["weight"] for each in results["scenarios"][1:]] == [Weight.DEVIATION, Weight.RISK]
    assert [each["aside"] for each in results["scenarios"]] == ["", "deviation", "standing risk"]


RISK, DEVIATION = found("hung-transaction", known_bug="KB-17"), found("stuck-lso", known_bug="KB-28")


@pytest.mark.parametrize(
    ("findings", "accepted", "aside", "by", "bugs"),
    [
        ((RISK,), (), "standing risk", "By standing risks only", "KB-17"),
        ((DEVIATION,), (), "deviation", "By deviations only", "KB-28"),
        ((RISK, DEVIATION), (), "standing risk", "By standing risks and deviations only", "KB-17, KB-28"),
        ((RISK, DEVIATION), ("KB-17",), "deviation", "By deviations and accepted violations only", "KB-17, KB-28"),
        ((RISK,), ("KB-17",), "accepted", "By accepted violations only", "KB-17"),
        ((RISK, found("stuck-lso", known_bug="KB-16")), (), "", "", ""),
        ((RISK, found("stuck-lso")), (), "", "", ""),
    ],
)
def test_a_card_says_why_its_fail_does_not_decide(
    tmp_path: Path, findings: tuple[Finding, ...], accepted: tuple[str, ...], aside: str, by: str, bugs: str
) -> None:
    """The guarantee stays a FAIL; its card names the bugs, and the other faces have the word."""
    plans = [replace(STRANDED, key=str(number), findings=(each,)) for number, each in enumerate(findings)]
    report = planted(tmp_path, *plans, accepted=tuple(Acceptance(id=each) for each in accepted))
    write_all(report, tmp_path)
    why = f"{by}, which do not decide: {bugs}." if by else ""
    (card,) = (each for each in cards(report) if each.title == "LSO liveness")
    assert (card.verdict, card.aside, card.why_aside) == (Verdict.FAIL, aside, why)
    assert bool(aside) == (report.judgement.decision is Decision.GO)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    face = page.partition("<h3>LSO liveness</h3>")[2].partition("</li>")[0]
    word = f"FAIL, {aside}" if aside else "FAIL"
    assert f"</span> {word}</span>" in face
    assert f"<p><strong>{why}</strong></p>" in face if why else "only" not in face
    assert re.search(rf"{word}:</span> [A-Za-z, ]*LSO liveness", page)
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    jsonschema.validate(results, SCHEMA)
    assert {each["title"]: each["aside"] for each in results["guarantees"]}["LSO liveness"] == aside
    assert ("✗ LSO liveness" + (f" ({aside})" if aside else "")) in summary.render(report)


def test_no_dashboard_is_red_for_a_go(tmp_path: Path) -> None:
    """In JUnit and CTRF a violation that does not decide is skipped with its reason; with --strict it is a failure."""
    run = make_protocol_run(tmp_path, (PASSED, VIOLATED))
    for strict, failures in ((False, 0), (True, 2)):
        report = load_run(run, strict=strict)
        root = Xml.fromstring(junit.render(report))  # noqa: S314 - the file was just made here
        assert (int(root.attrib["failures"]), root.attrib["errors"]) == (failures, "0")
        assert json.loads(ctrf.dumps(report))["results"]["summary"]["failed"] == failures
        skipped = [each.attrib["message"] for each in root.iter("skipped")]
        assert any(each.startswith("FAIL, standing risk: ") for each in skipped) is not strict
