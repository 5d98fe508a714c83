"""The report of a protocol run: every output format shows why each case ended as it did, and no case is lost."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from reports.__main__ import main
from reports.formats import terminal
from reports.formats.write import write_all
from reports.loading.run import load_run
from tests.support.plans import EVERY_VERDICT, SMOKE
from tests.support.protocol_run_directories import (
    BROKEN,
    EVERY_SCRIPT,
    INAPPLICABLE,
    PASSED,
    UNDECIDED,
    UNNAMED,
    VIOLATED,
    exchange,
    make_case,
    make_protocol_run,
    protocol_report,
    said,
)
from tests.support.rendered_runs import HOSTILE, SCHEMA, page_of
from tests.support.run_directories import make_run
from verification.scripts.script import Script, judge
from verification.vocabulary.verdict import Decision, ExitCode, Verdict

NAMES = ("report.html", "results.json", "junit.xml", "ctrf.json", "summary.md", "badge.json")


def test_every_case_has_the_verdict_of_its_script(tmp_path: Path) -> None:
    """All six verdicts follow from the statements, and the decision follows from the verdicts."""
    report, _ = protocol_report(tmp_path)
    assert {each.key: each.verdict for each in report.cases} == {
        script.case: judge(script).verdict for script in EVERY_SCRIPT
    }
    assert {each.verdict for each in report.cases} == set(Verdict)
    assert report.judgement.exit_code is ExitCode.VIOLATION
    assert report.judgement.decision is Decision.NO_GO
    assert not report.partial
    assert not report.problems


def test_the_page_shows_what_decided_a_case(tmp_path: Path) -> None:
    """The page has claim, expected, observed, exchanges with codes and versions, the known bug, and the command."""
    _, run = protocol_report(tmp_path)
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
        "nothing proves that it caused this failure",
        "broker 1 closed the connection",
        "Precondition not met",
        VIOLATED.replay,
    ):
        assert fact in section, fact
    # Passed cases come after the others, and are there too.
    assert PASSED.claim not in section
    assert text.index(VIOLATED.claim) < text.index("Cases that passed") < text.index(PASSED.claim)
    assert "nothing of it applies to 4.3.1" in text


def test_a_page_of_cases_is_self_contained(tmp_path: Path) -> None:
    """No script, no external resource, unique ids, and every reference leads somewhere."""
    _, run = protocol_report(tmp_path)
    page = page_of(run)
    assert not page.tags & {"script", "link", "iframe", "object", "embed", "img"}
    assert not page.resources
    assert len(page.ids) == len(set(page.ids))
    assert {"IDEMP-10", VIOLATED.case, PASSED.case, INAPPLICABLE.case, "family-IDEMP"} <= set(page.ids)
    assert page.dead_links == []


def test_results_of_a_protocol_run_follow_the_published_schema(tmp_path: Path) -> None:
    """`cases` validates and has deciding statements and script of each case; only scenarios judge guarantees."""
    _, run = protocol_report(tmp_path)
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
    """A run of scenarios has no `cases`, and the schema still accepts it."""
    run = make_run(tmp_path / "run", EVERY_VERDICT)
    write_all(load_run(run), run)
    results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    jsonschema.validate(results, SCHEMA)
    assert "cases" not in results


def test_the_requirements_say_which_case_decided_them(tmp_path: Path) -> None:
    """A row has the worst verdict of its cases; an untested requirement has a reason that fits a protocol run."""
    report, _ = protocol_report(tmp_path)
    rows = {row.id: row for row in report.requirements}
    assert rows["IDEMP-10"].verdict is Verdict.FAIL
    assert [key for key, _, _ in rows["IDEMP-10"].decided_by] == [VIOLATED.case]
    assert rows["2PC-01"].verdict is Verdict.NOT_APPLICABLE
    assert rows["2PC-05"].untested.startswith("This decides it: `tox -e protocol -- --kafka 4.3.1 -k test_")
    assert rows["FENCE-08"].untested.startswith("This decides it: `tox -e conformance -- --kafka 4.3.1")


@pytest.mark.parametrize("change", ["edited", "cut", "foreign", "moved"])
def test_an_unfit_script_is_refused_by_name(tmp_path: Path, change: str) -> None:
    """A script that was edited, truncated, foreign, or of another case is an ERROR that names the file; other cases stay."""
    run = make_protocol_run(tmp_path / "run", (PASSED, VIOLATED))
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


def test_a_single_case_is_a_partial_report(tmp_path: Path) -> None:
    """The directory of one case renders, also copied out of its run, and is never a GO."""
    run = make_protocol_run(tmp_path / "run", EVERY_SCRIPT)
    within = load_run(run / "runs" / PASSED.case)
    copied = load_run(make_case(tmp_path / "mailed", PASSED))
    for report in (within, copied):
        assert [each.verdict for each in report.cases] == [Verdict.PASS]
        assert report.partial == "one case of a protocol run"
        assert report.judgement.decision is Decision.UNDECIDED
    assert within.subject.runtime == "local"
    assert copied.subject.release == "4.3.1"


def test_the_command_renders_a_protocol_run_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`python -m reports DIR` writes the same bytes again and returns the code of the decision."""
    _, run = protocol_report(tmp_path)
    first = [(run / name).read_bytes() for name in NAMES]
    assert main([str(run)]) == ExitCode.VIOLATION
    assert [(run / name).read_bytes() for name in NAMES] == first
    assert not (run / "trace.json").exists()
    printed = capsys.readouterr().out
    assert "known    KB-05" in printed
    assert f"re-run   {VIOLATED.replay}" in printed
    assert PASSED.case not in printed


def test_what_is_printed_about_a_case_fits(tmp_path: Path) -> None:
    """However many claims fail, a case has at most twelve lines of ordinary width."""
    many = replace(VIOLATED, statements=tuple(said(3, f"thing {n} " * 30, "a" * 900, "b" * 900) for n in range(40)))
    report, _ = protocol_report(tmp_path, (many,))
    lines = terminal.case_lines(report.cases[0])
    assert len(lines) <= terminal.WITNESS_LINES_MAX
    assert all(len(line) <= terminal.LINE_MAX for line in lines)


def test_a_run_and_a_protocol_run_of_one_release_become_one_report(tmp_path: Path) -> None:
    """Requirements join both kinds of evidence with a column each; a copy of a protocol run counts once."""
    run = make_run(tmp_path / "run", (SMOKE,))
    protocol_run = make_protocol_run(tmp_path / "protocol_run", EVERY_SCRIPT)
    shutil.copytree(protocol_run, tmp_path / "copy")
    out = tmp_path / "out"
    assert main([str(run), str(protocol_run), str(tmp_path / "copy"), "--out", str(out)]) == ExitCode.VIOLATION
    results = json.loads((out / "results.json").read_text(encoding="utf-8"))
    jsonschema.validate(results, SCHEMA)
    assert [each["name"] for each in results["parts"]] == ["4.3.1-local", "4.3.1-local-protocol", ""]
    assert len(results["cases"]) == len(EVERY_SCRIPT)
    rows = {each["id"]: each for each in results["requirements"]}
    assert rows["TXN-25"]["verdict"] == "PASS"
    assert rows["IDEMP-10"]["verdict"] == "FAIL"
    assert "guarantees" in results
    assert page_of(out).dead_links == []


def hostile_script(text: str = HOSTILE) -> Script:
    """A script in which every field from a broker or the harness is hostile."""
    return replace(
        VIOLATED,
        case="idempotence-hostile",
        claim=text,
        requirements=("IDEMP-10", text),
        cluster=text,
        generation=text,
        release=text,
        broke=text,
        replay=text,
        features={text: 2},
        exchanges=(exchange(1, text, 1, {text: text}, {text: [text]}, to=text, error=text),),
        statements=(said(1, text, text, {text: text}),),
    )


def test_hostile_values_of_a_script_are_shown_and_never_interpreted(tmp_path: Path) -> None:
    """Markup and control characters in any field from a broker or harness are escaped in every output format."""
    report, run = protocol_report(tmp_path, (PASSED, hostile_script()))
    page = page_of(run)
    assert "script" not in page.tags
    assert "<script>alert(1)</script>" in page.text
    for name in NAMES:
        assert not any(each in (run / name).read_text(encoding="utf-8") for each in "\x00\x07\u202e\x1b")
    assert "\x1b" not in terminal.render(report)
    jsonschema.validate(json.loads((run / "results.json").read_text(encoding="utf-8")), SCHEMA)


def test_a_long_script_is_shortened_around_what_decided_it(tmp_path: Path) -> None:
    """Of hundreds of exchanges the page has the beginning, the end and the violation, and counts the omitted ones."""
    exchanges = tuple(exchange(n, f"Api{n}", 1, {}, {"ErrorCode": 0}) for n in range(1, 301))
    long = replace(VIOLATED, exchanges=exchanges, statements=(said(150, "it", 1, 2),))
    _, run = protocol_report(tmp_path, (long, replace(PASSED, exchanges=exchanges)))
    text = page_of(run).text
    for shown in ("Api1 ", "Api150 ", "Api300 ", "exchanges not shown here"):
        assert shown in text
    assert "Api100 " not in text


def test_a_broken_script_is_visible_in_every_output_format(tmp_path: Path) -> None:
    """ERROR and INCONCLUSIVE are never green: JUnit counts them as errors, CTRF as other."""
    _, run = protocol_report(tmp_path, (PASSED, UNDECIDED, BROKEN))
    ctrf = json.loads((run / "ctrf.json").read_text(encoding="utf-8"))
    statuses = {each["name"]: each["status"] for each in ctrf["results"]["tests"] if "cases" in each["suite"]}
    assert statuses == {PASSED.case: "passed", UNDECIDED.case: "other", BROKEN.case: "other"}
    assert 'name="onceproof.cases" tests="3" failures="0" errors="2"' in (run / "junit.xml").read_text(encoding="utf-8")


def test_two_hundred_cases_stay_below_two_megabytes(tmp_path: Path) -> None:
    """The report of a whole protocol run can be mailed: passed cases show their claims, not every statement."""
    exchanges = tuple(
        exchange(n, "EndTxn", 5, {"TransactionalId": "be36195a-owner"}, {"ErrorCode": 0}) for n in range(1, 16)
    )
    statements = tuple(
        said(n, "the commit is acknowledged", "NONE (0)", "NONE (0)", required=n % 3 > 0) for n in range(1, 16)
    )
    ordinary = replace(PASSED, exchanges=exchanges, statements=statements)
    _, run = protocol_report(tmp_path, (*(replace(ordinary, case=f"{PASSED.case}-{n}") for n in range(200)), VIOLATED))
    assert (run / "report.html").stat().st_size < 2_000_000


def test_the_time_of_a_case_covers_its_exchanges(tmp_path: Path) -> None:
    """Cases that share an outage take turns, so a case lasts longer than it works."""
    last = replace(PASSED.exchanges[-1], answered_ns=PASSED.exchanges[0].sent_ns + 24_300_000_000)
    shared = replace(PASSED, exchanges=(*PASSED.exchanges[:-1], last), seconds=0.8)
    report, _ = protocol_report(tmp_path, (shared,))
    assert report.cases[0].actual_s == pytest.approx(24.3)
