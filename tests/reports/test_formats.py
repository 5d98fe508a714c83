"""JUnit, CTRF, the badge endpoint and the trace are valid for any run, and charts are valid files."""

from __future__ import annotations

import copy
import json
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import jsonschema
import pytest
import xmlschema

from reports.formats import ctrf as ctrf_format
from reports.formats import junit
from reports.formats.chart_file import svg
from reports.formats.charts.shapes import BoxShape, Drawing, LineShape, PathShape, TextShape
from reports.formats.write import write_all
from reports.loading.run import load_run
from reports.model.run_record import Acceptance, RunState
from reports.model.wording import in_plain_words
from tests.support.page_tools import CTRF as PUBLISHED_CTRF
from tests.support.page_tools import file_of
from tests.support.paths import ROOT
from tests.support.plans import BROKEN, CONTROL, EVERY_VERDICT, FAILED, INAPPLICABLE, SMOKE, UNDECIDED, Plan
from tests.support.rendered_runs import hostile_plan
from tests.support.run_directories import make_run
from verification.vocabulary.verdict import ExitCode

CTRF = json.loads((ROOT / "tests/support/ctrf.schema.json").read_text(encoding="utf-8"))
#: The schema by which Jenkins' xUnit plug-in accepts or refuses a file, unchanged: junit-10.xsd of jenkinsci/xunit-plugin.
XUNIT = ROOT / "tests/support/junit-10.xsd"
#: The JUnit XML that common readers accept: per element its attributes, required attributes, and children. Written
#: from the schema that Jenkins' xUnit plugin validates with (junit-10.xsd) and from the one of Windy Road.
JUNIT = {
    "testsuites": ({"name", "tests", "failures", "errors", "time"}, set(), {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "skipped", "time", "timestamp"},
        {"name", "tests", "failures", "errors"},
        {"testcase"},
    ),
    "testcase": ({"classname", "name", "time"}, {"classname", "name"}, {"failure", "error", "skipped"}),
    "failure": ({"message"}, set(), set()),
    "error": ({"message"}, set(), set()),
    "skipped": ({"message"}, set(), set()),
}

#: The phases of the Trace Event Format that are used, each with the members that its readers need; times are whole
#: microseconds. https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
TRACE = {
    "M": {"name": str, "pid": int, "tid": int, "args": dict},
    "X": {"name": str, "cat": str, "pid": int, "tid": int, "ts": int, "dur": int, "args": dict},
    "C": {"name": str, "pid": int, "ts": int, "args": dict},
}
#: The members of metadata events about a process or thread.
METADATA = {
    "process_name": ("name", str),
    "thread_name": ("name", str),
    "process_sort_index": ("sort_index", int),
    "thread_sort_index": ("sort_index", int),
}
#: The reserved colour names in use; chrome://tracing does not open a file with any other.
COLOURS = {"good", "bad", "terrible", "grey"}
GOLDEN = Path(__file__).parent / "golden" / "scenarios-4.3.1" / "run"


@pytest.fixture(params=["every verdict", "hostile", "empty", "interrupted"])
def outputs(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The output files of one planted run."""
    plans = {
        "every verdict": EVERY_VERDICT,
        "hostile": (SMOKE, hostile_plan()),
        "empty": (),
        "interrupted": (SMOKE, CONTROL),
    }[request.param]
    state = RunState.INTERRUPTED if request.param == "interrupted" else RunState.FINISHED
    run = make_run(tmp_path / "run", plans, state=state)
    write_all(load_run(run), run)
    return run


def loaded(path: Path) -> Any:
    """A JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


def test_ctrf_follows_its_schema_and_its_counts_are_those_of_its_tests(outputs: Path) -> None:
    """The file validates, every status is counted, and ids are unique."""
    body = loaded(outputs / "ctrf.json")
    jsonschema.Draft202012Validator.check_schema(CTRF)
    jsonschema.validate(body, CTRF)
    results = body["results"]
    counted = Counter(each["status"] for each in results["tests"])
    for status in ("passed", "failed", "skipped", "pending", "other"):
        assert results["summary"][status] == counted[status]
    assert results["summary"]["tests"] == len(results["tests"])
    assert len({each["id"] for each in results["tests"]}) == len(results["tests"])


def test_ctrf_follows_the_published_schema(outputs: Path) -> None:
    """The file validates, formats of ids and times included; an unknown status, a foreign member or a lost one do not."""
    schema = json.loads(file_of(PUBLISHED_CTRF))
    jsonschema.Draft7Validator.check_schema(schema)
    judge = jsonschema.Draft7Validator(schema, format_checker=jsonschema.FormatChecker())
    body = loaded(outputs / "ctrf.json")
    assert list(judge.iter_errors(body)) == []
    for member, value in (("status", "undecided"), ("duration", "long"), ("id", "not a uuid"), ("verdict", "PASS")):
        wrong = copy.deepcopy(body)
        wrong["results"]["tests"][0][member] = value
        assert not judge.is_valid(wrong), member
    del body["results"]["summary"]["stop"]
    assert not judge.is_valid(body)


def test_junit_follows_the_schema_of_the_xunit_plugin(outputs: Path) -> None:
    """The file validates; a count of skipped cases at the root, a verbal time or a nameless case do not."""
    schema = xmlschema.XMLSchema(XUNIT)
    assert list(schema.iter_errors(outputs / "junit.xml")) == []
    for place, attribute, value in (
        (".", "skipped", "1"),
        ("testsuite", "time", "long"),
        (".//testcase", "name", None),
    ):
        tree = Xml.parse(outputs / "junit.xml")  # noqa: S314 - our own file
        found = tree.getroot() if place == "." else tree.find(place)
        assert found is not None
        if value is None:
            del found.attrib[attribute]
        else:
            found.set(attribute, value)
        assert not schema.is_valid(tree), place


@pytest.mark.parametrize("run", sorted(GOLDEN.parent.parent.glob("*/run")), ids=lambda run: run.parent.name)
def test_files_of_real_runs_follow_the_published_schemas(run: Path) -> None:
    """A run of scenarios and a protocol run, both with violations."""
    report = load_run(run)
    schema = json.loads(file_of(PUBLISHED_CTRF))
    judge = jsonschema.Draft7Validator(schema, format_checker=jsonschema.FormatChecker())
    assert list(judge.iter_errors(json.loads(ctrf_format.dumps(report)))) == []
    text = junit.render(report)
    assert "<failure" in text
    assert list(xmlschema.XMLSchema(XUNIT).iter_errors(text)) == []


def test_junit_uses_nothing_that_its_readers_refuse(outputs: Path) -> None:
    """Only known elements and attributes, numbers where numbers belong, and at most one outcome per case."""
    for element in Xml.parse(outputs / "junit.xml").iter():  # noqa: S314 - our own file
        known, needed, children = JUNIT[element.tag]
        assert needed <= set(element.attrib) <= known
        assert {child.tag for child in element} <= children
        assert element.tag != "testcase" or len(element) <= 1
        assert all(element.get(name, "0").isdecimal() for name in ("tests", "failures", "errors", "skipped"))
        assert float(element.get("time", "0")) >= 0


@pytest.mark.parametrize(
    ("plans", "changes"),
    [
        ((), {}),
        ((INAPPLICABLE,), {}),
        ((INAPPLICABLE, CONTROL), {}),
        ((SMOKE, replace(CONTROL, convicted=False)), {}),
        ((SMOKE, BROKEN), {}),
        ((SMOKE, UNDECIDED), {}),
        ((SMOKE, FAILED), {}),
        ((SMOKE,), {"problems": ("one", "another")}),
        ((SMOKE,), {"state": RunState.INTERRUPTED}),
        ((SMOKE, replace(FAILED, crashed=("a check",))), {"accepted": (Acceptance(id="KB-16"),)}),
        ((SMOKE, CONTROL), {}),
        ((SMOKE, INAPPLICABLE), {}),
        ((SMOKE, FAILED), {"accepted": (Acceptance(id="KB-16"),)}),
    ],
)
def test_a_dashboard_is_green_exactly_when_the_exit_code_is_0(
    tmp_path: Path, plans: tuple[Plan, ...], changes: dict[str, Any]
) -> None:
    """Both formats have no failed and no open case exactly then; case names are unique."""
    report = load_run(make_run(tmp_path, plans, **changes))
    root = Xml.fromstring(junit.render(report))  # noqa: S314 - our own text
    ctrf = json.loads(ctrf_format.dumps(report))["results"]
    green = report.judgement.exit_code is ExitCode.CONFORMANT
    assert (root.get("failures"), root.get("errors")) == ("0", "0") if green else root.findall(".//testcase/*")
    assert (ctrf["summary"]["failed"] + ctrf["summary"]["other"] == 0) is green
    names = [(each.get("classname"), each.get("name")) for each in root.iter("testcase")]
    assert len(names) == len(set(names))
    assert len({each["id"] for each in ctrf["tests"]}) == len(names)


def test_the_badge_is_an_endpoint_badge(outputs: Path) -> None:
    """The fields that shields.io requires, and green only for GO."""
    badge = loaded(outputs / "badge.json")
    assert badge["schemaVersion"] == 1
    assert set(badge) == {"schemaVersion", "label", "message", "color", "isError"}
    assert (badge["color"] == "brightgreen") == (loaded(outputs / "results.json")["decision"] == "GO")


def test_the_trace_has_every_operation_and_no_overlapping_slices(outputs: Path) -> None:
    """Each slice has a named thread, slices of one thread do not overlap, and no slice begins before zero."""
    events = loaded(outputs / "trace.json")["traceEvents"]
    named = {(each["pid"], each["tid"]) for each in events if each["name"] == "thread_name"}
    threads = defaultdict(list)
    for each in events:
        assert each["ts"] >= 0
        if each["ph"] == "X":
            assert each["dur"] >= 0
            threads[each["pid"], each["tid"]].append(each)
    assert threads.keys() <= named
    for slices in threads.values():
        for before, after in pairwise(slices):
            assert before["ts"] + before["dur"] <= after["ts"]
    operations = [each for each in events if each.get("cat") == "operation"]
    # 240 operations per planted history.
    assert len(operations) == 240 * len({each["pid"] for each in events})


def follows_the_format(trace: Any) -> None:
    """The members that Perfetto and chrome://tracing require of a file in the JSON object format."""
    assert trace["displayTimeUnit"] in {"ms", "ns"}
    named = Counter()
    for each in trace["traceEvents"]:
        for member, kind in TRACE[each["ph"]].items():
            assert type(each[member]) is kind, each
        assert each.get("cname", "grey") in COLOURS
        if each["ph"] == "C":
            assert each["args"]
            assert all(type(value) in (int, float) for value in each["args"].values())
        if each["ph"] == "M":
            member, kind = METADATA[each["name"]]
            assert type(each["args"][member]) is kind
            assert each["args"][member] != ""
            named[each["name"], each["pid"], each["tid"]] += 1
    # A second name of a process or thread would replace the first.
    assert set(named.values()) <= {1}
    assert {each["pid"] for each in trace["traceEvents"]} == {pid for kind, pid, _ in named if kind == "process_name"}


def test_the_trace_follows_its_format(outputs: Path) -> None:
    """Times are microseconds: planted operations begin ten times a second."""
    trace = loaded(outputs / "trace.json")
    follows_the_format(trace)
    for pid in {each["pid"] for each in trace["traceEvents"]}:
        began = sorted(
            each["ts"] for each in trace["traceEvents"] if (each["pid"], each.get("cat")) == (pid, "operation")
        )
        assert began == [number * 100_000 for number in range(240)]


def test_the_trace_of_a_real_run_follows_its_format_and_lies_on_its_clock(tmp_path: Path) -> None:
    """Scenarios are placed by the wall clock: the last of the run began minutes after the first."""
    report = load_run(GOLDEN)
    write_all(report, tmp_path)
    trace = loaded(tmp_path / "trace.json")
    follows_the_format(trace)
    told = [each for each in (*report.scenarios, *report.controls) if each.timeline is not None]
    began_us = {number: each.timeline.began_us for number, each in enumerate(told, start=1) if each.timeline}
    first = {
        pid: min(each["ts"] for each in trace["traceEvents"] if each["pid"] == pid and each["ph"] == "X")
        for pid in began_us
    }
    assert first == {pid: at_us - min(began_us.values()) for pid, at_us in began_us.items()}
    assert max(first.values()) > 60_000_000


SVG = "{http://www.w3.org/2000/svg}"
DRAWING = Drawing(
    height=100,
    boxes=(BoxShape(x=1, y=2, width=3, height=4, kind="band"),),
    lines=(LineShape(x1=0, y1=50, x2=960, y2=50, kind="axis"),),
    texts=(TextShape(x=5, y=6, text="a < b & \x07c"),),
    paths=(PathShape(d="M0 0L9 9", kind="against tail"),),
    description="a line that rises",
)


def test_a_chart_file_is_drawn_without_a_style_sheet() -> None:
    """Every shape has its colour as an attribute, and the background is white also on dark pages."""
    root = Xml.fromstring(svg(DRAWING, "A title"))  # noqa: S314 - our own text
    assert [each.tag.removeprefix(SVG) for each in root] == ["title", "desc", "rect", "rect", "line", "path", "text"]
    assert (root.findtext(f"{SVG}title"), root.findtext(f"{SVG}desc")) == ("A title", "a line that rises")
    background, band = root.iter(f"{SVG}rect")
    assert background.attrib == {"width": "960", "height": "100", "fill": "#ffffff"}
    assert band.get("fill-opacity") == "0.14"
    (path,) = root.iter(f"{SVG}path")
    assert (path.get("stroke"), path.get("stroke-dasharray"), path.get("fill")) == ("#c9772b", "5 3", "none")


def test_texts_of_a_chart_file_are_escaped() -> None:
    """A control character would make the file invalid."""
    (text,) = Xml.fromstring(svg(DRAWING, "A title")).iter(f"{SVG}text")  # noqa: S314 - our own text
    assert text.text is not None
    assert text.text.startswith("a < b & ")
    assert "\x07" not in text.text


@pytest.mark.parametrize(
    ("detail", "said"),
    [
        ("told committed; 60 of 69 records", "answer to the client: committed; 60 of 69 records"),
        ("decided it: abort, told: aborted", "decided it: abort, answer to the client: aborted"),
        (
            "producer 7; open at no coordinator",
            "producer 7; open on the partition, although its coordinator has no open transaction",
        ),
        ("told so 12 ms after its operation had begun", "its error came 12 ms after its operation had begun"),
        ("records told apart", "records told apart"),
    ],
)
def test_a_detail_has_no_word_that_only_the_checks_use(detail: str, said: str) -> None:
    """The checks are short; a reader gets whole words."""
    assert in_plain_words(detail) == said
