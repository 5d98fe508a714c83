"""The boxes *Does this concern you, and what to do*: which bugs have one, their releases, and how formats show them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from reports.deciding.advice_boxes import AdviceBox, box, boxes
from reports.formats import html, summary
from reports.formats.markdown import with_code
from reports.loading.run import load_run
from reports.model.run_record import Acceptance
from reports.model.vocabulary import bugs, note_on
from tests.support.plans import CONTROL, FAILED, SMOKE, found
from tests.support.protocol_run_directories import EVERY_SCRIPT, make_protocol_run
from tests.support.run_directories import make_run
from verification.known_bugs.measured import MeasuredRow

MARKER = bugs()["KB-16"]


def row(variant: str = "", **releases: tuple[str, ...]) -> MeasuredRow:
    """A row of KB-16."""
    return MeasuredRow(
        bug="KB-16", variant=variant, **{**dict.fromkeys(("affected", "clean", "not_tried"), ()), **releases}
    )


def releases_of(made: AdviceBox) -> dict[str, str]:
    """The headings of a box with their releases."""
    return dict(made.releases)


def test_neighbours_in_the_track_record_are_a_range() -> None:
    """Three or more are shown as a range; a release between that was not run breaks it."""
    rows = (row(affected=("3.6.0", "3.7.0", "3.8.1", "4.1.2"), clean=("4.2.1", "4.3.1"), not_tried=("3.9.2",)),)
    assert releases_of(box(MARKER, rows)) == {
        "Measured affected": "3.6.0 to 3.8.1, 4.1.2",
        "Measured clean": "4.2.1, 4.3.1",
        "Not tried": "3.9.2; and every release that is not named here",
    }


def test_a_variant_is_named_with_its_releases() -> None:
    """A variant of the bug never counts for the bug itself."""
    rows = (row(clean=("4.2.1",)), row("v1", affected=("4.2.1",)))
    assert releases_of(box(MARKER, rows)) == {"Measured affected": "v1: 4.2.1", "Measured clean": "4.2.1"}


def test_what_is_known_to_be_affected_is_not_untried() -> None:
    """The release of the run and the ends of the ranges were measured; a release between them is taken to share the bug."""
    known = bugs()["KB-18"]
    rows = (row(affected=("4.0.2", "4.3.1"), not_tried=("3.9.2", "4.0.0", "4.1.2", "4.4.0")),)
    assert releases_of(box(known, rows, own=["4.4.0"])) == {
        "Measured affected": "4.0.0, 4.0.2, 4.3.1, 4.4.0",
        "Taken to share it": "4.1.2",
        "Not tried": "3.9.2; and every release that is not named here",
    }
    level = (row("level-1", clean=("4.0.2",), not_tried=("4.4.0",)),)
    assert releases_of(box(known, level, own=["4.4.0"])) == {"Measured clean": "level-1: 4.0.2"}


def test_a_fix_that_is_not_released_is_announced() -> None:
    """It cannot be run today."""
    assert note_on("KB-05").endswith("not fixed yet; a fix is announced for 4.5.0.")
    assert "fixed in 3.6.0." in note_on("KB-01")


def test_a_bug_without_a_row_has_the_ends_of_its_ranges() -> None:
    """What lies between the ends is not claimed to be measured."""
    shown = releases_of(box(bugs()["KB-31"], ()))
    assert shown["Measured affected"].startswith("2.8.2, 3.9.2; releases between them: run too, or assumed")
    assert shown["Fixed in"] == "4.0.2"


def test_the_box_says_what_is_at_risk_and_how_a_system_gets_there() -> None:
    """The words follow impact and reach of the catalogue, and the reason is quoted."""
    assert box(MARKER, ()).risk == f"Records are at risk, under ordinary faults. {MARKER.reason}"
    assert box(bugs()["KB-27"], ()).risk.startswith("Neither records nor progress is at risk. Only brokers")
    assert "in an unusual order of events, such as a delayed or repeated message. " in box(bugs()["KB-17"], ()).risk


def test_only_bugs_that_the_subject_showed_have_a_box(tmp_path: Path) -> None:
    """A control's bug has none; an accepted bug has one, but does not decide."""
    planted = replace(CONTROL, findings=(found("lost-write", known_bug="KB-13"),))
    (shown,) = boxes(load_run(make_run(tmp_path / "a", [SMOKE, FAILED, planted])))
    assert (shown.id, shown.deciding) == ("KB-16", True)
    accepted = make_run(tmp_path / "b", [FAILED], accepted=(Acceptance(id="KB-16"),))
    (shown,) = boxes(load_run(accepted))
    assert (shown.id, shown.deciding) == ("KB-16", False)
    assert boxes(load_run(make_run(tmp_path / "c", [SMOKE]))) == ()


def test_a_protocol_run_has_the_boxes_of_its_named_bugs(tmp_path: Path) -> None:
    """A bug that violates the same requirement without the symptoms has none."""
    report = load_run(make_protocol_run(tmp_path / "run", EVERY_SCRIPT))
    named = {known.id for case in report.cases for known in case.known if known.named}
    assert {each.id for each in boxes(report)} == named
    assert named


def test_page_and_summary_show_what_to_do(tmp_path: Path) -> None:
    """The reason links to the box; the box and the summary have the command, its cost, the log line and the releases."""
    run = make_run(tmp_path / "run", [SMOKE, FAILED])
    report = load_run(run)
    page, text = html.render(report, run), summary.render(report)
    assert page.count('href="#advice-KB-16"') >= 2
    assert '<div id="advice-KB-16">' in page
    for shown in (page, text):
        assert (
            "kafka-transactions.sh --bootstrap-server HOST:PORT abort --topic T --partition P --start-offset O" in shown
        )
        assert "throws away records" in shown
        assert "Replication factor 3" in shown
        assert "3.9.2, 4.0.1, 4.1.2, 4.2.1" in shown
    assert "`kafka.controller:type=KafkaController,name=OfflinePartitionsCount` is above 0." in text


def test_an_accepted_bug_keeps_its_box_and_leaves_the_summary(tmp_path: Path) -> None:
    """The summary has the advice on what decides the run only."""
    run = make_run(tmp_path / "run", [FAILED], accepted=(Acceptance(id="KB-16"),))
    report = load_run(run)
    assert "advice-KB-16" in html.render(report, run)
    assert "OfflinePartitionsCount" not in summary.render(report)


def test_punctuation_after_a_command_is_no_code() -> None:
    """Markdown shows the point of the sentence outside of the code."""
    assert with_code("Run `a b`. Then look: `c_d`, again.") == "Run `a b`. Then look: `c_d`, again."


def test_alerts_that_fired_come_first() -> None:
    """First those that the catalogue names, then any other one; what did not fire follows."""
    fired = {
        "ErrorsPerSec": ("ErrorsPerSec counts a sequence that was refused", "Fired in this run, at 3.0 s of a"),
        "OfflinePartitionsCount": ("OfflinePartitionsCount > 0", "Fired in this run, at 2.0 s of a"),
    }
    made = box(MARKER, (), fired=fired)
    offline = next(each for each in MARKER.advice.alert.points if "OfflinePartitionsCount" in each)
    assert made.advice.alert.points == (
        f"Fired in this run, at 2.0 s of a. {offline}",
        "Fired in this run, at 3.0 s of a: ErrorsPerSec counts a sequence that was refused.",
        *(each for each in MARKER.advice.alert.points if each != offline),
    )
    assert box(MARKER, ()).advice == MARKER.advice


def test_a_repair_is_never_cut_short(tmp_path: Path) -> None:
    """Half a repair can do harm: page and summary show every step, in order."""
    run = make_run(tmp_path / "run", [FAILED])
    report = load_run(run)
    page, text = html.render(report, run), summary.render(report)
    assert page.index("<ol><li>Stop: ") < page.index("If it was an abort: ")
    steps = [each.split(".")[0] for each in MARKER.advice.repair.points if "`" not in each]
    assert [text.index(each) for each in steps] == sorted(text.index(each) for each in steps)
    assert len(steps) >= 4
