"""Formats of other people: JUnit, CTRF, the badge endpoint and the trace are valid, whatever the run was."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import jsonschema
import pytest

from reports.load import load_run
from reports.run_record import RunState
from reports.write import write_all
from tests.plans import CONTROL, EVERY_VERDICT, SMOKE
from tests.run_directories import make_run
from tests.test_report_faces import hostile_plan

CTRF = json.loads((Path(__file__).parent / "ctrf.schema.json").read_text(encoding="utf-8"))
#: What common readers of JUnit XML accept: per element its attributes, those it must have, and its children. Written
#: from the schema that Jenkins' xUnit plugin validates with (junit-10.xsd) and from the one of Windy Road.
JUNIT = {
    "testsuites": ({"name", "tests", "failures", "errors", "skipped", "time"}, set(), {"testsuite"}),
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


@pytest.fixture(params=["every verdict", "hostile", "empty", "interrupted"])
def faces(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The faces of one planted run."""
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


def test_ctrf_follows_its_schema_and_its_counts_are_those_of_its_tests(faces: Path) -> None:
    """The file validates, every status is counted, and ids are unique."""
    body = loaded(faces / "ctrf.json")
    jsonschema.Draft202012Validator.check_schema(CTRF)
    jsonschema.validate(body, CTRF)
    results = body["results"]
    counted = Counter(each["status"] for each in results["tests"])
    for status in ("passed", "failed", "skipped", "pending", "other"):
        assert results["summary"][status] == counted[status]
    assert results["summary"]["tests"] == len(results["tests"])
    assert len({each["id"] for each in results["tests"]}) == len(results["tests"])


def test_junit_uses_nothing_that_its_readers_refuse(faces: Path) -> None:
    """Only known elements and attributes, numbers where numbers belong, and one outcome per case at most."""
    for element in Xml.parse(faces / "junit.xml").iter():  # noqa: S314 - our own file
        known, needed, children = JUNIT[element.tag]
        assert needed <= set(element.attrib) <= known
        assert {child.tag for child in element} <= children
        assert element.tag != "testcase" or len(element) <= 1
        assert all(element.get(name, "0").isdecimal() for name in ("tests", "failures", "errors", "skipped"))
        assert float(element.get("time", "0")) >= 0


def test_the_badge_is_an_endpoint_badge(faces: Path) -> None:
    """The fields that shields.io requires, and green for GO alone."""
    badge = loaded(faces / "badge.json")
    assert badge["schemaVersion"] == 1
    assert set(badge) == {"schemaVersion", "label", "message", "color", "isError"}
    assert (badge["color"] == "brightgreen") == (loaded(faces / "results.json")["decision"] == "GO")


def test_the_trace_has_every_operation_and_no_overlapping_slices(faces: Path) -> None:
    """Each slice has a named thread, slices of one thread do not overlap, and nothing begins before zero."""
    events = loaded(faces / "trace.json")["traceEvents"]
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
