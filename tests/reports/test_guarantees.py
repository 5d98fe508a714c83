"""The cards of guarantees: what refutes one, what is no evidence against it, and when it passes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from reports.deciding import scorecards
from reports.formats import html
from reports.loading.run import load_run
from tests.support.plans import CONTROL, FAILED, SMOKE, UNDECIDED, found
from tests.support.protocol_run_directories import UNNAMED, VIOLATED, make_protocol_run
from tests.support.run_directories import make_run
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.verdict import Verdict

GOLDEN = Path(__file__).parent / "golden"


def card(run: Path, title: str) -> scorecards.Card:
    """One guarantee of a run."""
    return next(each for each in scorecards.cards(load_run(run)) if each.title == title)


def test_each_guarantee_is_judged_by_its_own_anomalies(tmp_path: Path) -> None:
    """A torn transaction refutes atomicity; untested guarantees are so marked; seeds are named."""
    torn = replace(FAILED, findings=(found("torn-transaction"),))
    run = make_run(tmp_path / "a", (SMOKE, replace(SMOKE, key="again", seed=8), torn, CONTROL))
    assert card(run, "Atomicity").verdict is Verdict.FAIL
    assert [each.key for each in card(run, "Atomicity").refuted] == [FAILED.key]
    assert card(run, "Atomicity").fact == (
        "3 scenarios tested it: no violation in 2 scenarios (seeds 7, 8; 2 faults, 360 operations during them), "
        "a violation in 1."
    )
    assert card(run, "Fencing").verdict is None
    # The control's duplicates are the control's.
    assert card(run, "No duplicates").verdict is not Verdict.FAIL
    assert card(run, "Recovery time").measured
    open_ = make_run(tmp_path / "b", (UNDECIDED,))
    assert card(open_, "Fencing").verdict is Verdict.INCONCLUSIVE


def test_guarantees_follow_the_damage_of_any_anomaly(tmp_path: Path) -> None:
    """Hidden records refute visibility and aborted ones "no loss", although the finding is a hung transaction."""
    hung = replace(FAILED, findings=(found("hung-transaction", known_bug="KB-16"),))
    run = make_run(tmp_path, (SMOKE, hung))
    path = run / "runs" / FAILED.key / "findings" / "hung-transaction" / "records.jsonl"
    row = {"topic": FAILED.topic, "partition": 0, "process": 0, "operation": 60, "told": "committed", "committed": 0}
    rows = [{**row, "offset": 1, "outcome": "abort"}, {**row, "offset": 2, "outcome": "open"}]
    path.write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
    for title, what in (
        ("No loss", "1 acknowledged records lost"),
        ("Visibility", "1 acknowledged records that no reader receives"),
        ("LSO liveness", "hung-transaction × 3"),
    ):
        shown = card(run, title)
        assert shown.verdict is Verdict.FAIL
        assert [(each.what, each.bugs) for each in shown.refuted] == [(what, ("KB-16",))]


def test_a_hung_transaction_that_shows_half_of_another_refutes_atomicity(tmp_path: Path) -> None:
    """A consequence that readers suffer from refutes its guarantee; one that repeats its cause does not."""
    explains = (("torn-transaction", 47), ("broken-sequence", 2))
    hung = replace(FAILED, findings=(replace(found("hung-transaction", known_bug="KB-16"), explains=explains),))
    run = make_run(tmp_path, (SMOKE, hung))
    shown = card(run, "Atomicity")
    assert shown.verdict is Verdict.FAIL
    assert [(each.what, each.bugs) for each in shown.refuted] == [
        ("torn-transaction × 47, by hung-transaction", ("KB-16",))
    ]
    assert card(run, "Order").verdict is not Verdict.FAIL
    assert "(torn-transaction × 47, broken-sequence × 2)" in html.render(load_run(run), run)


def test_a_case_refutes_a_guarantee_where_it_can_show_nothing_else(tmp_path: Path) -> None:
    """Its requirement forbids only anomalies of the guarantee, and its known bug can have one of them."""
    reordered = VIOLATED
    (requirement,) = reordered.requirements
    assert requirement == "IDEMP-10"
    run = make_protocol_run(tmp_path / "one", (reordered,))
    shown = card(run, "Order")
    assert (shown.verdict, shown.aside) == (Verdict.FAIL, "standing risk")
    assert [(each.key, each.what, each.bugs) for each in shown.refuted] == [
        (reordered.case, "IDEMP-10 failed", ("KB-05",))
    ]
    assert shown.fact == "No scenario of this run tested it. 1 protocol case violated it."
    assert {title: card(run, title).verdict for title in ("No loss", "Fencing")} == {"No loss": None, "Fencing": None}
    # TXN-27 forbids anomalies of three guarantees, and nothing says which of them was shown.
    several = make_protocol_run(tmp_path / "several", (UNNAMED,))
    assert {each.verdict for each in scorecards.cards(load_run(several))} == {None}


def test_coordination_follows_its_whole_family(tmp_path: Path) -> None:
    """A failed coordinator requirement refutes it, also one that a protocol case failed and one by another anomaly."""
    failed = replace(FAILED, requirements=("COORD-11",))
    run = make_run(tmp_path / "scenarios", (replace(SMOKE, requirements=("COORD-01",)), failed))
    shown = card(run, "Coordination")
    assert shown.verdict is Verdict.FAIL
    assert [(each.key, each.what) for each in shown.refuted] == [(FAILED.key, "COORD-11 failed")]
    assert shown.fact.startswith("2 scenarios tested it: no violation in 1 scenario")


def test_scenarios_of_a_card_add_up(tmp_path: Path) -> None:
    """Each scenario that tested a guarantee is counted once: pass, violation, undecided, or not counted."""
    other = replace(FAILED, key="other", findings=(found("duplicate"),), requirements=("TXN-25",))
    undecided = replace(UNDECIDED, requirements=("TXN-25",))
    torn = replace(FAILED, findings=(found("torn-transaction"),))
    fact = card(make_run(tmp_path, (SMOKE, torn, other, undecided)), "Atomicity").fact
    assert fact.startswith("4 scenarios tested it: no violation in 1 scenario ")
    assert fact.endswith(
        ", a violation in 1, 1 could not decide it, 1 could not be counted, because another guarantee failed there."
    )


def test_a_guarantee_passes_only_when_all_of_it_was_tried() -> None:
    """A pass for one anomaly of a guarantee decides neither the others nor another guarantee."""
    titles = {title: anomalies for title, _, anomalies in scorecards.GUARANTEES}
    assert titles["Fencing"] == {Anomaly.ZOMBIE_WRITE}
    assert titles["Producers survive"] == {Anomaly.STRANDED_PRODUCER}


def test_an_untested_anomaly_keeps_a_guarantee_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one anomaly more than the passing requirements forbid, the card is inconclusive and names it."""
    run = make_run(tmp_path, (SMOKE,))
    assert card(run, "Atomicity").verdict is Verdict.PASS
    more = frozenset({Anomaly.TORN_TRANSACTION, Anomaly.STRANDED_PRODUCER})
    monkeypatch.setattr(scorecards, "GUARANTEES", (("Atomicity", "all of it", more),))
    assert card(run, "Atomicity").verdict is Verdict.INCONCLUSIVE
    assert "Not tested: stranded-producer" in card(run, "Atomicity").fact


def test_a_zombie_that_ends_the_transaction_of_its_successor_refutes_fencing() -> None:
    """A real protocol run: the failed requirement of the family refutes the guarantee, with its known bug."""
    shown = card(GOLDEN / "protocol-4.3.1" / "run", "Fencing")
    assert (shown.verdict, shown.aside) == (Verdict.FAIL, "standing risk")
    assert {(each.what, each.bugs) for each in shown.refuted} == {("FENCE-01 failed", ("KB-19",))}
