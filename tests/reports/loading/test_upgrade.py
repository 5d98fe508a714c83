"""A report of an upgrade shows releases, levels and stages, what each stage cost, and the figures of a control."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from reports.comparing.baseline import of_results
from reports.comparing.compare import against
from reports.comparing.results import dumps
from reports.deciding.upgrade_cost import upgrade_cost
from reports.formats import terminal
from reports.formats.charts.rates import draw
from reports.formats.charts.shapes import WIDTH
from reports.formats.summary import render as summary
from reports.formats.write import write_all
from reports.loading.run import load_run
from reports.model.report import Report, ScenarioReport
from reports.model.upgrade import StageFigures, UpgradeReport
from tests.support.paths import ROOT
from tests.support.plans import EVERY_VERDICT, Plan, found
from tests.support.planted.upgrade import NEW, OLD
from tests.support.run_directories import make_run
from verification.vocabulary.verdict import Verdict, Violation

PLAN = Plan(key="rolling-upgrade", requirements=("TV2-13",), upgrade=True)
SCHEMA = json.loads((ROOT / "docs" / "results.schema.json").read_text(encoding="utf-8"))


def report_of(directory: Path, plan: Plan = PLAN) -> Report:
    """The report of a run of one upgrade."""
    return load_run(make_run(directory, (plan,), release=NEW))


def upgrade_of(report: Report) -> UpgradeReport:
    """Its upgrade."""
    (scenario,) = report.scenarios
    assert scenario.upgrade is not None
    return scenario.upgrade


def control_of(report: Report) -> dict[str, Any]:
    """The results.json of the same run as a control: equal releases, and a longest stop of 1 s in each stage."""
    body = json.loads(dumps(report))
    body["subject"]["upgraded_from"] = body["scenarios"][0]["upgrade"]["source"] = NEW
    for stage in body["scenarios"][0]["upgrade"]["stages"]:
        for client in stage["clients"]:
            client["figures"]["gap_s"] = 1.0
    return dict(body)


def test_a_node_is_down_from_the_step_until_its_proof(tmp_path: Path) -> None:
    """Without a proof it stays down; a level is final once it is confirmed."""
    upgrade = upgrade_of(report_of(tmp_path / "run"))
    bands = {band.node: [(each.release, each.began_s, each.ended_s) for each in band.spans] for band in upgrade.nodes}
    assert bands == {
        "1": [(OLD, 0.0, 4.1), ("", 4.1, 7.0), (NEW, 7.0, 20.0)],
        "2": [(OLD, 0.0, 10.5), ("", 10.5, 20.0)],
    }
    (track,) = upgrade.features
    assert [(each.level, each.began_s) for each in track.spans] == [(27, 0.0), (29, 14.8)]


def test_stages_have_their_steps_and_verdicts(tmp_path: Path) -> None:
    """The time before the first stage and after the last one are stages too; a step without a proof decides nothing."""
    upgrade = upgrade_of(report_of(tmp_path / "run"))
    assert [(each.name, each.began_s, each.verdict.name, len(each.steps)) for each in upgrade.stages] == [
        ("before", 2.0, "PASS", 0),
        ("roll 1 of 2", 4.0, "PASS", 1),
        ("roll 2 of 2", 10.0, "INCONCLUSIVE", 1),
        ("finalize metadata.version", 14.0, "PASS", 1),
        ("after", 16.0, "PASS", 0),
    ]
    assert upgrade.stages[1].steps[0].what == "RollNext of step 0"


def test_a_violation_fails_the_stage_in_which_its_operation_began(tmp_path: Path) -> None:
    """With a violation that is no example, or without a verdict, no stage passes."""
    example = Violation(anomaly="torn-transaction", process=1, operation=125)
    finding = replace(found(count=1), examples=(example,))
    plan = replace(PLAN, verdict=Verdict.FAIL, findings=(finding,))
    upgrade = upgrade_of(report_of(tmp_path / "run", plan))
    assert [each.verdict.name for each in upgrade.stages] == ["PASS", "PASS", "FAIL", "PASS", "PASS"]
    assert upgrade.stages[2].violations == (("torn-transaction", 1),)
    more = upgrade_of(report_of(tmp_path / "more", replace(plan, findings=(replace(finding, count=9),))))
    assert more.unplaced == 8
    assert {each.verdict.name for each in more.stages} == {"FAIL", "INCONCLUSIVE"}
    unjudged = upgrade_of(report_of(tmp_path / "unjudged", replace(PLAN, verdict=None)))
    assert {each.verdict.name for each in unjudged.stages} == {"INCONCLUSIVE"}


def test_the_sentence_names_the_longest_stop_and_whether_applications_need_a_restart(tmp_path: Path) -> None:
    """The stop that did not end goes through two stages; one producer was replaced."""
    report = report_of(tmp_path / "run")
    assert upgrade_cost(report) == (
        "A producer stood still for at most 5.0 s (finalize metadata.version to after, confluent). "
        "1 producer had to be replaced (roll 1 of 2), and one of confluent stood still up to the end: "
        "applications may need a restart."
    )
    assert upgrade_cost(load_run(make_run(tmp_path / "ordinary", EVERY_VERDICT))) == ""


def test_a_clean_upgrade_needs_no_restart(tmp_path: Path) -> None:
    """Without a replaced producer, and with commits up to the end, the sentence says so."""
    report = report_of(tmp_path / "run")
    (scenario,) = report.scenarios
    upgrade = upgrade_of(report)

    def mended(figures: StageFigures) -> StageFigures:
        return replace(figures, replaced=0, gap_s=0.5, gap_began_s=18.0)

    stages = tuple(
        replace(each, clients=tuple(replace(one, figures=mended(one.figures)) for one in each.clients))
        for each in upgrade.stages
    )
    clean = replace(report, scenarios=(replace(scenario, upgrade=replace(upgrade, stages=stages)),))
    assert upgrade_cost(clean).endswith("No producer was replaced, so no application needs a restart.")


def test_the_figures_of_a_control_stand_next_to_those_of_the_upgrade(tmp_path: Path) -> None:
    """A results.json is enough; the word for it says whether it was a control."""
    report = report_of(tmp_path / "run")
    compared = against(report, of_results(control_of(report)))
    upgrade = upgrade_of(compared)
    assert (upgrade.baseline_word, f"Kafka {NEW} → {NEW}" in upgrade.baseline) == ("control", True)
    gaps = [one.baseline.gap_s for each in upgrade.stages for one in each.clients if one.baseline is not None]
    assert gaps == [1.0] * 10
    assert "; in the control: 1.0 s (" in upgrade_cost(compared)
    assert upgrade_of(against(report, of_results(json.loads(dumps(report))))).baseline_word == "baseline"
    for text in (summary(compared), terminal.render(compared)):
        assert "(finalize metadata.version to after, confluent); in the control: 1.0 s" in text.replace("`", "")
        assert "5.0 s (1.0 s)" in text
    other = load_run(make_run(tmp_path / "ordinary", EVERY_VERDICT))
    assert upgrade_of(against(report, of_results(json.loads(dumps(other))))).baseline == ""


def test_results_of_an_upgrade_fit_the_schema(tmp_path: Path) -> None:
    """Alone and with a control; ordinary results have no field of an upgrade."""
    report = report_of(tmp_path / "run")
    for each in (report, against(report, of_results(control_of(report)))):
        jsonschema.validate(json.loads(dumps(each)), SCHEMA)
    ordinary = json.loads(dumps(load_run(make_run(tmp_path / "ordinary", EVERY_VERDICT))))
    assert not [each for each in (*ordinary["scenarios"], *ordinary["controls"]) if "upgrade" in each]
    assert "upgraded_from" not in ordinary["subject"]


def test_a_baseline_with_foreign_figures_is_refused(tmp_path: Path) -> None:
    """A figure that is no number is an error of the file, not a comparison with nothing."""
    body = control_of(report_of(tmp_path / "run"))
    body["scenarios"][0]["upgrade"]["stages"][0]["clients"][0]["figures"]["committed"] = "many"
    with pytest.raises(ValueError, match="committed"):
        of_results(body)


def test_every_format_names_both_releases(tmp_path: Path) -> None:
    """The upgrade is the subject, not the release at its end."""
    report = report_of(tmp_path / "run")
    written = write_all(report, tmp_path / "run")
    title = f"Upgrade of Kafka {OLD} → {NEW}"
    page = written.page.read_text(encoding="utf-8")
    assert f"<title>{report.judgement.decision} · {title}</title>" in page
    assert page.count('id="upgrade-') == 1
    assert title in summary(report)
    assert title in terminal.render(report)
    assert title in json.loads((tmp_path / "run" / "badge.json").read_text(encoding="utf-8"))["message"]


def test_the_rows_of_an_upgrade_stay_in_the_chart(tmp_path: Path) -> None:
    """Every text of the bands is in the chart, and steps that the bands show have no window."""
    (scenario,) = report_of(tmp_path / "run").scenarios
    assert isinstance(scenario, ScenarioReport)
    assert scenario.timeline is not None
    drawing = draw(scenario.timeline, phases=False, upgrade=scenario.upgrade)
    texts = [each.text for each in drawing.texts]
    for wanted in ("stage", "node 1", "node 2", "metadata", OLD, NEW, "27", "29", "2 roll 1 of 2", "5 after"):
        assert wanted in texts
    assert not [each for each in drawing.boxes if each.kind == "band"]
    assert all(each.x >= 0 and each.x + each.width <= WIDTH for each in drawing.boxes)
    assert all(each.y + each.height <= drawing.height for each in drawing.boxes)
    assert f"node 1 ran {OLD} → {NEW}" in drawing.description
