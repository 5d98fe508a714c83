"""The reasons for a decision: one per bug however often it shows, with links to the proof."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from reports.comparing.baseline import of_results
from reports.comparing.compare import against
from reports.comparing.results import results
from reports.deciding.reasons import Reason, ReasonPlace, reasons
from reports.formats import summary, terminal
from reports.formats.write import write_all
from reports.loading.run import load_run
from reports.model.run_record import Acceptance, RunState
from reports.model.wording import happened
from tests.support.plans import BROKEN, CONTROL, FAILED, SMOKE, UNDECIDED, Plan, found
from tests.support.protocol_run_directories import EVERY_SCRIPT, UNNAMED, VIOLATED, make_protocol_run
from tests.support.rendered_runs import page_of, rendered
from tests.support.run_directories import make_run
from verification.known_bugs.weight import Weight
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.harm import seen
from verification.vocabulary.verdict import Decision, Verdict

OFF = {"brokers: transaction.partition.verification.enable": "false"}
AGAIN = replace(FAILED, key="commit-without-leader-java", findings=(found("torn-transaction", known_bug="KB-16"),))
UNKNOWN = replace(FAILED, key="something-new", findings=(found("lost-write", count=1),))


def of(tmp_path: Path, *plans: Plan, **changes: object) -> tuple[Reason, ...]:
    """The reasons of a planted run."""
    return reasons(load_run(make_run(tmp_path, plans, **changes)))


def test_a_bug_that_shows_often_is_one_reason(tmp_path: Path) -> None:
    """A known bug has every place where it shows, and a description."""
    twice = replace(FAILED, findings=(*FAILED.findings, found("torn-transaction", count=2, known_bug="KB-16")))
    (bug,) = of(tmp_path, SMOKE, twice, AGAIN, CONTROL)
    assert (bug.name, bug.acceptable, bug.accepted, bug.verdict) == ("KB-16", "KB-16", False, Verdict.FAIL)
    assert "KAFKA-20734" in bug.text
    shown_with = "replication factor 3, min ISR 2; unclean elections not recorded"
    assert bug.places == (
        ReasonPlace(key=FAILED.key, what="hidden-committed × 40, torn-transaction × 2", conditions=shown_with),
        ReasonPlace(key=AGAIN.key, what="torn-transaction × 3", conditions=shown_with),
    )


def test_an_unknown_violation_is_named_by_its_anomaly(tmp_path: Path) -> None:
    """A reason has the definition of its anomaly; accepted ones come after those that count."""
    accepted = (Acceptance(id="KB-16"),)
    first, second = of(tmp_path, FAILED, UNKNOWN, accepted=accepted)
    assert (first.name, first.acceptable, first.accepted) == ("lost-write", "", False)
    assert "acks=all" in first.text
    assert (second.name, second.accepted) == ("KB-16", True)


def test_what_is_open_is_gathered_by_how_it_ended(tmp_path: Path) -> None:
    """A missed control, an error and an undecided scenario are reasons; a pass is not."""
    missed = replace(CONTROL, verdict=Verdict.PASS, convicted=False, findings=())
    assert [(each.verdict, each.places[0].key) for each in of(tmp_path, SMOKE, UNDECIDED, BROKEN, missed)] == [
        (Verdict.ERROR, CONTROL.key),
        (Verdict.ERROR, BROKEN.key),
        (Verdict.INCONCLUSIVE, UNDECIDED.key),
    ]


def test_a_control_that_an_interruption_left_out_is_not_missed(tmp_path: Path) -> None:
    """A control that was not judged was not missed."""
    unreached = replace(CONTROL, present=False, ended=False)
    report = load_run(make_run(tmp_path, (FAILED, unreached), state=RunState.INTERRUPTED))
    assert [(each.verdict, each.places[0].key) for each in reasons(report)] == [
        (Verdict.FAIL, FAILED.key),
        (Verdict.INCONCLUSIVE, CONTROL.key),
    ]
    assert report.judgement.why.endswith("In addition, the run was interrupted.")


def test_a_violation_that_names_nothing_is_a_reason(tmp_path: Path) -> None:
    """A foreign verdict may say FAIL without a finding; it is still a reason."""
    (reason,) = of(tmp_path, SMOKE, replace(FAILED, findings=()))
    assert (reason.verdict, reason.places[0].key, reason.acceptable) == (Verdict.FAIL, FAILED.key, "")


def test_only_an_id_that_is_enough_is_offered_for_acceptance(tmp_path: Path) -> None:
    """A case that violates two requirements stays in the decision when one of them is accepted."""
    two = replace(UNNAMED, case="transaction-a-case-of-two-sentences", requirements=("TXN-25", "TXN-27"))
    scripts = (VIOLATED, UNNAMED, two)
    for each in reasons(load_run(make_protocol_run(tmp_path / "none", scripts))):
        accepted = (Acceptance(id=each.acceptable or each.name),)
        again = reasons(load_run(make_protocol_run(tmp_path / each.name, scripts, accepted=accepted)))
        assert {one.accepted for one in again if one.name == each.name} == {bool(each.acceptable)}


def test_a_clean_run_has_none(tmp_path: Path) -> None:
    """And its page has no section for them."""
    assert of(tmp_path / "a", SMOKE, CONTROL) == ()
    _, run = rendered(tmp_path / "b", (SMOKE, CONTROL))
    assert "why" not in page_of(run).ids


def test_cases_are_gathered_by_the_bug_that_they_are(tmp_path: Path) -> None:
    """Otherwise by the violated requirement, with its text."""
    names = {each.name: each for each in reasons(load_run(make_protocol_run(tmp_path, EVERY_SCRIPT)))}
    bug = names["KB-05"]
    assert bug.places[0].what.startswith("IDEMP-10")
    unnamed = [each for each in names.values() if each.verdict is Verdict.FAIL and not each.name.startswith("KB-")]
    assert unnamed
    assert all(re.fullmatch(r"[A-Z0-9]+-\d+", each.acceptable) and each.text for each in unnamed)


def test_the_answer_links_to_the_first_violation(tmp_path: Path) -> None:
    """Reasons come first, except with a baseline: then the regressions come first."""
    report, run = rendered(tmp_path, (SMOKE, FAILED, CONTROL))
    text = (run / "report.html").read_text(encoding="utf-8")
    assert text.index('id="why"') < text.index("<dt>Subject") < text.index('id="scorecards"')
    assert f'href="#first-{FAILED.key}"' in text[: text.index("<dt>Subject")]
    assert f"first-{FAILED.key}" in page_of(run).ids
    better = load_run(make_run(tmp_path / "before", (SMOKE, replace(FAILED, verdict=Verdict.PASS, findings=()))))
    write_all(against(report, of_results(results(better))), run)
    text = (run / "report.html").read_text(encoding="utf-8")
    assert (
        text.index("<dt>Subject") < text.index('id="change"') < text.index('id="why"') < text.index('id="scorecards"')
    )


@pytest.mark.parametrize("render", [summary.render, terminal.render], ids=["summary", "terminal"])
def test_the_other_faces_say_what_a_bug_is(tmp_path: Path, render: object) -> None:
    """A CI step and a terminal show the reason above their tables."""
    assert callable(render)
    said = render(load_run(make_run(tmp_path, (SMOKE, FAILED))))
    assert said.index("dropped when its transaction ends") < said.lower().index("scenarios\n")


def test_a_violation_with_other_failures_names_them(tmp_path: Path) -> None:
    """A violation stays proven; other failures of the run are named with it."""
    why = load_run(make_run(tmp_path, (SMOKE, FAILED, BROKEN))).judgement.why
    assert why.endswith("In addition, 1 of 3 scenarios could not be run or judged.")


def test_a_go_over_an_accepted_violation_says_so_at_once(tmp_path: Path) -> None:
    """FAIL with GO needs an explanation: every output format says "accepted", guarantees apart from the others."""
    report, run = rendered(tmp_path, (SMOKE, FAILED, CONTROL), accepted=(Acceptance(id="KB-16", until="2026-12-31"),))
    assert (report.judgement.decision, report.judgement.accepted) == (Decision.GO, True)
    page = page_of(run).text
    assert "FAIL, accepted" in page[: page.index("exit code 0")]
    assert re.search(r"FAIL, accepted: [A-Za-z, ]*Visibility", page)
    assert "FAIL, accepted" in summary.render(report).splitlines()[0]
    assert "verdict FAIL, accepted, exit code 0" in terminal.render(report)


def test_one_violation_that_counts_is_enough_to_drop_the_word(tmp_path: Path) -> None:
    """A violation that counts has no such word."""
    report = load_run(make_run(tmp_path, (SMOKE, FAILED, UNKNOWN), accepted=(Acceptance(id="KB-16"),)))
    assert report.judgement.accepted is False
    assert "accepted" not in summary.render(report).splitlines()[0]


def test_what_got_worse_leads_to_its_first_violation(tmp_path: Path) -> None:
    """The first section for an upgrade links to the proof."""
    better = load_run(make_run(tmp_path / "before", (SMOKE, replace(FAILED, verdict=Verdict.PASS, findings=()))))
    report, run = rendered(tmp_path, (SMOKE, FAILED))
    write_all(against(report, of_results(results(better))), run)
    text = (run / "report.html").read_text(encoding="utf-8")
    change = text[text.index('id="change"') : text.index('id="why"')]
    assert f'href="#first-{FAILED.key}"' in change


def test_new_cases_that_pass_are_folded_and_a_new_violation_is_not(tmp_path: Path) -> None:
    """A larger catalogue must not hide the failures of a release."""
    before = load_run(make_run(tmp_path / "before", (SMOKE,)))
    report, run = rendered(tmp_path, (SMOKE, FAILED, UNDECIDED, CONTROL, replace(SMOKE, key="grown")))
    write_all(against(report, of_results(results(before))), run)
    text = (run / "report.html").read_text(encoding="utf-8")
    change = text[text.index('id="change"') : text.index('id="why"')]
    shown, folded = change.split("<details>")
    assert all(each.key in shown for each in (FAILED, UNDECIDED))
    assert all(key in folded and key not in shown for key in (CONTROL.key, "grown"))


def test_a_title_says_what_happened_and_the_claim_says_what_must_be(tmp_path: Path) -> None:
    """A violation is titled by its findings or its first short failed claim; a pass and a control keep their claims."""
    report, run = rendered(tmp_path, (SMOKE, FAILED, UNKNOWN, CONTROL))
    assert [happened(each) for each in (*report.scenarios, *report.controls)] == [
        "",
        "40 committed records that no reader received",
        "1 acknowledged record lost",
        "",
    ]
    page = (run / "report.html").read_text(encoding="utf-8")
    section = page[page.index(f'<article id="{FAILED.key}"') :]
    assert '<p class="lead">40 committed records that no reader received</p>' in section
    assert f"<p><strong>Must be:</strong> {FAILED.claim}</p>" in section
    assert f'<p class="lead">{CONTROL.claim}</p>' in page
    assert f"  must be  {FAILED.claim}" in terminal.render(report)
    case = load_run(make_protocol_run(tmp_path / "protocol", (VIOLATED,))).cases[0]
    assert happened(case) == "Sequence 17, first of all: NONE (0) instead of OUT_OF_ORDER_SEQUENCE_NUMBER (45)"
    long = replace(case.deciding[0], what="everything", observed="x" * 300)
    assert happened(replace(case, statements=(long, *case.statements))) == happened(case)


def test_every_anomaly_has_words_for_what_happened() -> None:
    """One and several; a name that is not known stays."""
    for anomaly in Anomaly:
        one, two = seen(anomaly, 1), seen(anomaly, 2)
        assert one != f"{anomaly} × 1"
        assert two not in (f"{anomaly} × 2", one.replace("1", "2", 1))
    assert seen("new-anomaly", 3) == "new-anomaly × 3"


def test_a_setting_of_the_user_is_the_reason(tmp_path: Path) -> None:
    """It does not name the finding, which decides: the bug is mended on that release."""
    hung = replace(FAILED, findings=(found("hung-transaction", count=1), found("lost-write", count=1)))
    run = make_run(tmp_path / "run", (hung,))
    (file,) = run.glob("runs/*/scenario.json")
    experiment = json.loads(file.read_text(encoding="utf-8"))
    experiment["configuration"] = OFF
    file.write_text(json.dumps(experiment), encoding="utf-8")
    write_all(report := load_run(run), run)
    first, second = reasons(report)
    assert first.text.startswith("transaction.partition.verification.enable=false brings back the mechanism of KB-01")
    assert (first.name, first.weight, first.acceptable) == ("hung-transaction", Weight.DECIDES, "")
    assert "verification" not in second.text
    assert "<strong>Your setting</strong>: transaction" in (run / "report.html").read_text(encoding="utf-8")
    assert "brings back the mechanism of" in (run / "summary.md").read_text(encoding="utf-8")


def test_a_setting_of_the_user_is_the_reason_of_a_case(tmp_path: Path) -> None:
    """Of one that shows the bug where it is not mended; another case stays without it."""
    late = replace(UNNAMED, case="transaction-batches-a-partition-that-was-not-added-takes-no-batch-tv1")
    scripts = [replace(each, configuration=OFF) for each in (late, UNNAMED)]
    run = load_run(make_protocol_run(tmp_path, scripts))
    said = {case.key: case.reason for case in run.cases}
    assert "; transaction.partition.verification.enable=false brings back" in said[late.case]
    assert "brings back" not in said[UNNAMED.case]
    assert all("transaction.partition.verification.enable=false" in case.cluster for case in run.cases)
