"""How much each client tried, the floors that were reached most narrowly, and the controls for each anomaly."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema

from reports.comparing.results import dumps
from reports.deciding.trust import trust
from reports.formats import html, summary
from reports.loading.run import load_run
from reports.model.report import Report
from tests.support.plans import CONTROL, FAILED, SMOKE
from tests.support.protocol_run_directories import PASSED, make_protocol_run
from tests.support.rendered_runs import SCHEMA
from tests.support.run_directories import make_run
from verification.vocabulary.verdict import CoverageItem


def some(tmp_path: Path) -> Report:
    """Two scenarios of one client, one of them with a second client, and a control of duplicates."""
    report = load_run(make_run(tmp_path, (SMOKE, FAILED, CONTROL)))
    first, second = report.scenarios
    floors = (CoverageItem(name="ok_before", have=51, need=50, text="operations ok before the first fault"),)
    java = replace(first, key=f"{first.key}-java", client="java", coverage=floors)
    return replace(report, scenarios=(first, second, java))


def test_clients_and_tests_are_counted_for_each_guarantee(tmp_path: Path) -> None:
    """A client that ran one of two scenarios is named with the other one; a guarantee counts those that decided it."""
    found = trust(some(tmp_path))
    assert found is not None
    assert [(each.client, each.ran, each.whole, len(each.left_out)) for each in found.clients] == [
        ("confluent", 2, 2, 0),
        ("java", 1, 2, 1),
    ]
    tests = {each.title: each for each in found.guarantees}
    assert tests["Atomicity"].scenarios == (2, 1)
    assert tests["Fencing"].scenarios == (0, 0)


def test_a_control_shows_only_what_it_had_to_show(tmp_path: Path) -> None:
    """A detected control stands for its anomalies; one that was missed, or another finding of it, for none."""
    report = some(tmp_path)
    (control,) = report.controls
    tests = {each.title: each for each in trust(report).guarantees}  # type: ignore[union-attr]
    assert (tests["No duplicates"].shown, tests["No duplicates"].unshown) == (("duplicate",), ("phantom-record",))
    for changed in (replace(control, convicted=False), replace(control, expects=("lost-write",))):
        found = trust(replace(report, controls=(changed,)))
        assert found is not None
        assert "duplicate" in found.unshown


def test_the_page_and_the_summary_say_it_in_the_same_words(tmp_path: Path) -> None:
    """The sentences are computed once, and results.json has the figures behind them."""
    report = some(tmp_path / "run")
    found = trust(report)
    assert found is not None
    assert found.sentences[:3] == (
        "How much was tried: confluent ran 2 of 2 scenarios; java ran 1 of 2 scenarios.",
        f"Closest to its minimum: 51 operations ok before the first fault, 50 needed ({report.scenarios[2].key}).",
        "1 of 1 control detected.",
    )
    page = html.render(report, tmp_path)
    assert all(each in page for each in found.sentences)
    assert "How much was tried: confluent ran 2 of 2 scenarios; java ran 1 of 2 scenarios." in summary.render(report)
    results = json.loads(dumps(report))
    jsonschema.validate(results, SCHEMA)
    assert results["trust"]["clients"][1]["left_out"] == [report.scenarios[1].scenario]


def test_an_upgrade_has_no_such_figures(tmp_path: Path) -> None:
    """Several clients work in each of its scenarios at once."""
    report = some(tmp_path)
    assert trust(replace(report, subject=replace(report.subject, upgraded_from="4.1.2"))) is None


def test_a_protocol_run_has_no_such_figures(tmp_path: Path) -> None:
    """Without scenarios there is nothing to compare."""
    report = load_run(make_protocol_run(tmp_path, (PASSED,)))
    assert trust(report) is None
    assert "How much was tried" not in html.render(report, tmp_path)
    assert "trust" not in json.loads(dumps(report))
