"""A pass that shows a known bug stays a pass, and every format names the bug."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reports.formats import terminal
from reports.loading.run import load_run
from reports.loading.traces import of_scenario, of_script
from reports.model.wording import requirement_word
from tests.support.plans import FAILED, SMOKE
from tests.support.protocol_run_directories import PASSED, protocol_report, said
from tests.support.run_directories import make_run
from verification.evidence.run_directory import scenario_directories
from verification.scripts.script import Relation, Script
from verification.vocabulary.experiment import read
from verification.vocabulary.verdict import Decision, Verdict

DROPPED, QUEUED = ["CompleteCommit", False], ["PrepareCommit", True]
LINE = (
    "[2026-11-29T10:05:45.113Z] INFO [TxnMarkerSenderThread-3] [Transaction Marker Channel Manager 3]: Couldn't find leader "
    "endpoint for partitions Set({run}-orders-2, {run}-orders-3) while trying to send transaction markers for {run}-8, "
    "these partitions are likely deleted already and hence can be skipped (TransactionMarkerChannelManager)\n"
)


def queues(observed: object, release: str = "4.4.0") -> Script:
    """The case of a coordinator's queues, which passes with both values."""
    what = "the state without a leader, and whether a marker is queued"
    return replace(
        PASSED,
        case="metrics-the-queues-of-a-coordinator-are-empty-at-last",
        release=release,
        requirements=("ADM-08",),
        statements=(said(1, what, [QUEUED, DROPPED], observed, relation=Relation.ONE_OF),),
    )


@pytest.mark.parametrize(
    ("script", "bugs"),
    [
        (queues(DROPPED), ["KB-16"]),
        (queues(QUEUED), []),
        (queues(DROPPED, "4.2.1"), []),
        (queues(DROPPED, "trunk"), []),
    ],
    ids=["dropped", "queued", "a release without the bug", "no release"],
)
def test_only_the_value_on_a_release_with_the_bug_shows_it(script: Script, bugs: list[str]) -> None:
    """A release that is measured clean gives the other value, and on it no value shows anything."""
    assert [each.bug for each in of_script(script)] == bugs


def test_every_format_says_that_a_pass_shows_a_bug(tmp_path: Path) -> None:
    """The decision stays; the requirement, the case, the box and the sentence of the decision name the bug."""
    report, run = protocol_report(tmp_path, (PASSED, queues(DROPPED)), release="4.4.0")
    assert report.judgement.decision is Decision.GO
    assert "1 case passed and shows a known bug (KB-16)." in report.judgement.why
    row = next(each for each in report.requirements if each.id == "ADM-08")
    assert (row.verdict, requirement_word(row)) == (Verdict.PASS, "PASS, KB-16 seen")
    page = (run / "report.html").read_text(encoding="utf-8")
    # The requirement, its family, and the card of the family; the case has a note.
    assert page.count("</span> PASS, KB-16 seen</span>") == 3
    assert "known bug KB-16 seen" in page
    assert 'id="advice-KB-16"' in page
    assert "### Passes that show a known bug" in (run / "summary.md").read_text(encoding="utf-8")
    assert "passed, and shows KB-16: metrics-the-queues" in terminal.render(report)
    assert '"seen": "KB-16 seen"' in (run / "results.json").read_text(encoding="utf-8")


def test_a_violated_case_shows_no_trace(tmp_path: Path) -> None:
    """Its violation is named after a bug or not; that is another question."""
    wrong = replace(queues(DROPPED), statements=(*queues(DROPPED).statements, said(2, "the count at last", 0, 1)))
    report, _ = protocol_report(tmp_path, (wrong,), release="4.4.0")
    assert [(each.verdict, each.traces) for each in report.cases] == [(Verdict.FAIL, ())]


@pytest.mark.parametrize(
    ("release", "run", "bugs"),
    [("4.4.0", "", ["KB-16"]), ("4.2.1", "", []), ("4.4.0", "another-run", [])],
    ids=["its own line", "a release without the bug", "a line of another run"],
)
def test_a_line_of_a_broker_shows_a_bug(tmp_path: Path, release: str, run: str, bugs: list[str]) -> None:
    """Brokers of several scenarios share their logs, so a line counts where it names something of the run."""
    made = make_run(tmp_path, (replace(SMOKE, release=release), replace(FAILED, release=release)))
    smoke, failed = sorted(scenario_directories(made), key=lambda each: each.root.name != SMOKE.key)
    experiment = read(smoke.experiment)
    smoke.brokers.mkdir(exist_ok=True)
    log = smoke.brokers / "broker-1.log"
    log.write_text(LINE.format(run=run or experiment.run) * 2, encoding="utf-8")
    (shown,) = of_scenario(smoke.brokers, experiment) or (None,)
    assert [shown.bug] == bugs if shown else bugs == []
    assert shown is None or shown.text.startswith("brokers logged 2 lines such as: [Transaction Marker")
    report = load_run(made)
    assert [bool(each.traces) for each in report.scenarios] == [bool(bugs), False]
    assert failed.root.name == FAILED.key
