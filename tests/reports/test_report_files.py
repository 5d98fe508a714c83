"""The output formats agree, survive hostile content, and are the same bytes for the same input."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as Xml

import jsonschema
import pytest

from reports.comparing.baseline import of_results
from reports.comparing.compare import against
from reports.comparing.results import results
from reports.formats import html, terminal
from reports.formats import summary as summaries
from reports.formats.issue_links import KIP_SEARCH, linked
from reports.formats.write import write_all
from reports.loading.run import load_run
from reports.model.run_record import Acceptance, RunState
from reports.model.wording import one_line, scenario_word
from tests.support.paths import ROOT
from tests.support.plans import CONTROL, EVERY_VERDICT, FAILED, SMOKE, UNDECIDED, Plan, found
from tests.support.rendered_runs import HOSTILE, READABLE, SCHEMA, hostile_run, page_of, rendered
from tests.support.run_directories import make_run
from verification.vocabulary.verdict import Circumstances, ExitCode, Verdict

#: JSON files whose texts a viewer shows.
VIEWED = ("ctrf", "badge", "trace")
GOLDEN = Path(__file__).parent / "golden"


def test_every_verdict_is_a_word_in_every_output_format(tmp_path: Path) -> None:
    """PASS, FAIL, ERROR, INCONCLUSIVE, NOT APPLICABLE and a detected control are readable everywhere."""
    report, run = rendered(tmp_path, EVERY_VERDICT)
    page = page_of(run).text
    summary = (run / "summary.md").read_text(encoding="utf-8")
    printed = terminal.render(report)
    for scenario in (*report.scenarios, *report.controls):
        for text in (page, summary, printed):
            assert scenario_word(scenario) in text
            assert scenario.key in text.replace("\\", "")
    assert {each.verdict for each in report.scenarios} == set(Verdict)
    assert "UNTESTED" in page
    assert "NO-GO" in page
    assert "NO-GO" in summary
    assert "NO-GO" in printed


def test_the_page_is_self_contained_and_needs_no_script(tmp_path: Path) -> None:
    """No script, no external resource; every reference is an existing fragment or a public issue."""
    _, run = rendered(tmp_path, EVERY_VERDICT)
    page = page_of(run)
    assert not page.tags & {"script", "link", "iframe", "object", "embed", "img"}
    assert not page.resources
    assert "@import" not in (run / "report.html").read_text(encoding="utf-8")
    assert len(page.ids) == len(set(page.ids))
    assert page.dead_links == []
    assert {"TXN-25", "IDEMP-01", FAILED.key, CONTROL.key} <= set(page.ids)


def test_the_page_names_its_evidence_and_says_where_it_lies(tmp_path: Path) -> None:
    """A page is sent without its evidence: paths are text, and each exists in the directory that the page names."""
    report, run = rendered(tmp_path, (SMOKE, FAILED))
    target = tmp_path / "other" / "place"
    write_all(report, target)
    paths = re.findall(r"<code>(runs/[^<…]+)</code>", (target / "report.html").read_text(encoding="utf-8"))
    assert len(paths) > 5
    assert all((run / each).exists() for each in paths)
    for directory, words in (
        (run, f"{run.name}, which has this page"),
        (target, f"directory of the run: {run.name} Run"),
    ):
        assert words in " ".join(page_of(directory).text.split())


def test_a_kip_and_an_issue_in_the_text_are_links_to_where_they_are_public() -> None:
    """Commands, charts, links and the head of the page stay as they are."""
    kip = f'<a href="{KIP_SEARCH}KIP-890">KIP-890</a>'
    issue = '<a href="https://issues.apache.org/jira/browse/KAFKA-20734">KAFKA-20734</a>'
    of_client = '<a href="https://github.com/confluentinc/librdkafka/issues/4953">librdkafka#4953</a>'
    assert linked("<p>KIP-890, (KAFKA-20734) librdkafka#4953.</p>") == f"<p>{kip}, ({issue}) {of_client}.</p>"
    again = "<p>KIP-890 KIP-890</p>"
    assert linked(f"{again}<section>{again}</section>") == (
        f"<p>{kip} KIP-890</p><section><p>{kip} KIP-890</p></section>"
    )
    for same in (
        "<head><title>KIP-890</title></head>",
        '<p title="KIP-890">x</p>',
        '<a href="#a">b KIP-890 <b>KAFKA-1</b></a>',
        "<code>KAFKA-20734</code>",
        "<svg><title>KIP-890</title><text>KIP-890</text></svg>",
        "<p>KIP-x, MYKAFKA-12, KAFKA-, KIP-890b</p>",
    ):
        assert linked(same) == same


def test_a_report_without_a_baseline_says_how_to_get_changes(tmp_path: Path) -> None:
    """Page and summary name the option; with a baseline they show the changes instead."""
    report, run = rendered(tmp_path, EVERY_VERDICT)
    compared = against(report, of_results(results(report)))
    for text in (page_of(run).text, summaries.render(report)):
        assert "no baseline was given" in text
    for text in (html.render(compared, run), summaries.render(compared)):
        assert "no baseline was given" not in text


def test_hostile_content_is_shown_and_never_interpreted(tmp_path: Path) -> None:
    """Markup, templates, escape sequences and broken Unicode from outside are escaped in every output format."""
    report, run = hostile_run(tmp_path)
    page = page_of(run)
    assert "script" not in page.tags
    assert "<script>alert(1)</script>" in page.text
    assert "{{7*7}}" in page.text
    summary = (run / "summary.md").read_text(encoding="utf-8")
    printed = terminal.render(report, colour=False)
    for text in ((run / "report.html").read_text(encoding="utf-8"), summary, printed):
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\ud800-\udfff]", text)
    # A command is inline code, where nothing is interpreted; its fence is longer than any inside it.
    assert "<script" not in re.sub(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", "", summary)
    tables = [line for line in summary.splitlines() if line.startswith("| ")]
    # Four columns, and five in the table of changes.
    assert {line.count("|") - line.count("\\|") for line in tables} == {5, 6}
    Xml.parse(run / "junit.xml")  # noqa: S314 - our own file, which must be well-formed
    jsonschema.validate(json.loads((run / "results.json").read_text(encoding="utf-8")), SCHEMA)
    for name in ("ctrf.json", "badge.json", "trace.json"):
        json.loads((run / name).read_text(encoding="ascii"))


def strings(value: object) -> Iterator[str]:
    """Every string of a JSON value, names of members included."""
    if isinstance(value, str):
        yield value
    for each in value.items() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        yield from strings(each)


@pytest.mark.parametrize("text", [HOSTILE, READABLE], ids=["unreadable-history", "history"])
def test_no_reader_of_an_output_file_gets_a_control_character(tmp_path: Path, text: str) -> None:
    """Viewers print decoded texts, so these are clean too; results.json keeps the values of the evidence, in escapes."""
    report, run = hostile_run(tmp_path, text)
    shown = one_line(text)
    read = {name: "\n".join(strings(json.loads((run / f"{name}.json").read_text("ascii")))) for name in VIEWED}
    root = Xml.parse(run / "junit.xml").getroot()  # noqa: S314 - our own file
    read["junit"] = "\n".join(text for each in root.iter() for text in (*each.attrib.values(), each.text or ""))
    read["terminal"] = terminal.render(report)
    read["coloured"] = re.sub(r"\x1b\[[0-9;]*m", "", terminal.render(report, colour=True))
    read["page"] = page_of(run).text
    for name, told in read.items():
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\ud800-\udfff]", told), name
    # The commands, the id of a scenario and the reason are in each that has room for them.
    for name in ("ctrf", "junit", "terminal", "page"):
        assert read[name].count(shown) >= 3, name
    assert f"re-run: {shown}" in read["terminal"]
    assert f"re-run   {shown}" in read["terminal"]
    assert f"re-run: {shown}" in read["junit"]
    # Lines of broker logs are on the page only. They are found by the times of the history.
    assert ("Lost leader of <script>alert(1)</script>" in read["page"]) is (text == READABLE)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", (run / "results.json").read_text(encoding="utf-8"))


def test_results_follow_the_published_schema(tmp_path: Path) -> None:
    """The output of a run with every verdict validates, and has the same decision as the report."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    report, run = rendered(tmp_path, EVERY_VERDICT, accepted=(Acceptance(id="KB-16", reason="known"),))
    results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    jsonschema.validate(results, SCHEMA)
    assert results["decision"] == report.judgement.decision
    assert results["exit_code"] == report.judgement.exit_code
    assert [each["id"] for each in results["scenarios"]] == [each.key for each in report.scenarios]
    assert [each["convicted"] for each in results["controls"]] == [True]
    assert len(results["requirements"]) == len(report.requirements)
    assert len(results["scenarios"][1]["findings"][0]["examples"]) == 32
    del results["decision"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(results, SCHEMA)


def test_examples_of_an_upgrade_have_their_circumstances(tmp_path: Path) -> None:
    """Judged once, kept in the verdict, and in the results by name and in words; other runs have no such field."""
    around = Circumstances(
        at_ns=5,
        stage="roll 1 of 3",
        releases={"1": "4.2.0", "2": "4.1.2"},
        levels={"metadata.version": 27},
        text="coordinator 4.2.0 on broker 1, in stage roll 1 of 3",
        coordinator=1,
    )
    plain = found("stuck-lso", detail="late")
    first = replace(plain.examples[0], circumstances=around, detail=f"{around.text}; late")
    upgraded = replace(plain, examples=(first, *plain.examples[1:]))
    _, run = rendered(tmp_path, (replace(FAILED, findings=(upgraded,)),))
    results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    jsonschema.validate(results, SCHEMA)
    (example, *others) = results["scenarios"][0]["findings"][0]["examples"]
    assert example["circumstances"] == {
        "stage": "roll 1 of 3",
        "releases": {"1": "4.2.0", "2": "4.1.2"},
        "levels": {"metadata.version": 27},
        "text": around.text,
        "coordinator": 1,
        "leaders": [],
    }
    assert example["detail"].startswith(around.text)
    assert all("circumstances" not in each for each in others)


def test_results_say_that_a_run_was_interrupted(tmp_path: Path) -> None:
    """`interrupted` is true after Ctrl-C, and the file is still valid."""
    unreached = replace(UNDECIDED, present=False, ended=False)
    _, run = rendered(tmp_path, (SMOKE, unreached), state=RunState.INTERRUPTED)
    results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    jsonschema.validate(results, SCHEMA)
    assert results["interrupted"] is True
    assert results["exit_code"] == ExitCode.ENVIRONMENT
    printed = terminal.render(load_run(run))
    assert "1 scenario or control did not run, because the run was interrupted." in printed
    assert "re-run   " not in printed


def test_a_client_without_records_is_not_recorded(tmp_path: Path) -> None:
    """A run whose only scenario left no evidence says so on the page and in the summary."""
    _, run = rendered(tmp_path, (replace(SMOKE, present=False),))
    assert "confluent: not recorded" in page_of(run).text
    assert "confluent: not recorded" in (run / "summary.md").read_text(encoding="utf-8")


def test_junit_counts_are_those_of_its_cases(tmp_path: Path) -> None:
    """One case per scenario, control and requirement; failures, errors and skipped add up at both levels."""
    report, run = rendered(tmp_path, EVERY_VERDICT)
    root = Xml.parse(run / "junit.xml").getroot()  # noqa: S314 - our own file
    counts = {
        suite.get("name"): [suite.get(name) for name in ("tests", "failures", "errors", "skipped")]
        for suite in root.iter("testsuite")
    }
    # Subjects: one pass, a violation, an error, one open, one not applicable. Requirements: TXN-25 and ISO-01 are
    # violated, FENCE-01 is open, the others are untested.
    assert counts["onceproof.scenarios"] == ["5", "1", "2", "1"]
    assert counts["onceproof.controls"] == ["1", "0", "0", "0"]
    rows = len(report.requirements)
    assert counts["onceproof.requirements"] == [str(rows), "2", "1", str(rows - 3)]
    for element in (root, *root.iter("testsuite")):
        cases = list(element.iter("testcase"))
        assert int(element.get("tests", "-1")) == len(cases)
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            if element is not root or name != "skipped":
                assert int(element.get(name, "-1")) == sum(1 for case in cases if case.find(tag) is not None)


def test_junit_of_nothing_is_not_green(tmp_path: Path) -> None:
    """An empty run and an interrupted run each have a case with an error."""
    _, empty = rendered(tmp_path / "a", ())
    _, stopped = rendered(tmp_path / "b", (SMOKE,), state=RunState.INTERRUPTED)
    for run in (empty, stopped):
        assert int(Xml.parse(run / "junit.xml").getroot().get("errors", "0")) >= 1  # noqa: S314 - our own file


def test_a_witness_has_at_most_twelve_lines_and_the_command_is_whole(tmp_path: Path) -> None:
    """However many findings there are, the details fit; record, place, transaction, producer and fault are in them."""
    many = replace(
        FAILED,
        reason="long " * 100,
        findings=tuple(found(name, count=40) for name in ("lost-write", "duplicate", *("torn-transaction",) * 12)),
    )
    report, _ = rendered(tmp_path, (SMOKE, FAILED, replace(many, key="many"), UNDECIDED))
    for scenario in report.scenarios:
        lines = terminal.witness_lines(scenario)
        assert len(lines) <= terminal.WITNESS_LINES_MAX
        assert all(len(line) <= terminal.LINE_MAX for line in lines)
    told = "\n".join(terminal.witness_lines(report.scenarios[1]))
    for fact in (
        "hidden-committed × 40",
        "KB-16",
        "process 0, operation 60",
        "billing-events-0@1042",
        "id 1000",
        "step 1",
    ):
        assert fact in told
    printed = terminal.render(report)
    assert f"re-run   {report.scenarios[1].replay}" in printed


def test_colour_is_for_terminals_and_never_against_no_color(tmp_path: Path) -> None:
    """NO_COLOR wins; without a terminal there is no escape sequence unless FORCE_COLOR is set."""
    report, run = rendered(tmp_path, EVERY_VERDICT)
    with (run / "summary.md").open(encoding="utf-8") as stream:
        assert not terminal.colour_wanted(stream, {})
        assert terminal.colour_wanted(stream, {"FORCE_COLOR": "1"})
        assert not terminal.colour_wanted(stream, {"FORCE_COLOR": "1", "NO_COLOR": "1"})
    assert "\x1b" not in terminal.render(report)
    assert "\x1b" in terminal.render(report, colour=True)


def test_the_summary_stays_below_fifty_kilobytes(tmp_path: Path) -> None:
    """Hundreds of scenarios with endless reasons are cut; the worst stays, and omitted lines are counted."""
    long = [Plan(key=f"scenario-{number:03d}-{'x' * 80}", error="é|<`" * 2_000, present=False) for number in range(300)]
    summary = summaries.render(load_run(make_run(tmp_path, (*long, FAILED)))).encode("utf-8")
    assert len(summary) < 50_000
    text = summary.decode("utf-8")
    assert FAILED.key in text.replace("\\", "")
    assert "more lines are not shown here" in text


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    """Rendering twice, and rendering a copy elsewhere, changes no byte of any output file."""
    _, run = rendered(tmp_path, EVERY_VERDICT)
    names = ("report.html", "results.json", "junit.xml", "ctrf.json", "summary.md", "badge.json", "trace.json")
    first = [(run / name).read_bytes() for name in names]
    write_all(load_run(run), run)
    assert [(run / name).read_bytes() for name in names] == first
    copy = Path(shutil.copytree(run, tmp_path / "copied" / "run"))
    write_all(load_run(copy), copy)
    assert [(copy / name).read_bytes() for name in names] == first


def test_the_command_renders_again_and_returns_the_code_of_the_decision(tmp_path: Path) -> None:
    """`python -m reports` writes the files without Spark, a Kafka client or Docker, and returns 4 for a foreign path."""
    run = make_run(tmp_path / "run", (SMOKE, FAILED))
    code = (
        "import sys, reports.__main__ as m; r = m.main(sys.argv[1:]);"
        "bad = {'pyspark', 'confluent_kafka', 'docker', 'testcontainers'} & set(sys.modules);"
        "sys.exit(99 if bad else int(r))"
    )

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
        )

    whole = call(str(run))
    assert whole.returncode == ExitCode.VIOLATION
    assert "NO-GO" in whole.stdout
    assert (run / "report.html").is_file()
    plain = subprocess.run(
        [sys.executable, "-m", "reports", str(run)],
        cwd=ROOT,
        capture_output=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert plain.returncode == ExitCode.VIOLATION
    assert b"NO-GO" in plain.stdout
    several = call(str(run), str(run / "runs" / SMOKE.key), "--out", str(tmp_path / "out"))
    assert several.returncode == ExitCode.VIOLATION
    assert (tmp_path / "out" / "results.json").is_file()
    foreign = call(str(tmp_path))
    assert foreign.returncode == ExitCode.USAGE
    assert len(foreign.stderr.strip().splitlines()) == 1
    assert call().returncode == ExitCode.USAGE


#: Values as Python writes them: names of constants, and the beginnings of lists and mappings.
PYTHON_VALUE = re.compile(r"\b(None(?! of)|True|False)\b|\[\[|\[\(|\{'|\['")


@pytest.mark.parametrize("case", sorted(each.name for each in GOLDEN.iterdir() if each.is_dir()))
def test_no_output_that_people_read_has_a_value_of_python(case: str, tmp_path: Path) -> None:
    """Page, summary, terminal and JUnit of real runs; the pattern finds such values."""
    run = tmp_path / "run"
    shutil.copytree(GOLDEN / case / "run", run)
    report = load_run(run)
    write_all(report, run)
    shown = [page_of(run).text, terminal.render(report)]
    shown += [(run / name).read_text(encoding="utf-8") for name in ("summary.md", "junit.xml")]
    assert [each[0] for text in shown for each in PYTHON_VALUE.finditer(text)] == []
    for value in (None, True, [[0, 1]], {"a": 1}, ["a"]):
        assert PYTHON_VALUE.search(f"observed {value!r}, expected 1")
