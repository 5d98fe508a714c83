"""The impact of a run: what its findings did to acknowledged operations and their records, and how formats say it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reports.deciding.impact import impact, readers_of, sentence, summed
from reports.formats import html, summary, terminal
from reports.loading.availability import periods
from reports.loading.damage import damage_of
from reports.loading.examples import Context, witness
from reports.loading.exchange import statement_row
from reports.loading.finding_records import LINES_MAX, FindingRecords
from reports.loading.run import load_run
from reports.model.damage import Damage, HeldPartition
from reports.model.protocol_case import ScriptCase
from reports.model.timeline import NO_WORK
from tests.support.plans import FAILED, SMOKE
from tests.support.run_directories import make_run
from verification.scripts.script import Relation, Statement
from verification.vocabulary.history import Action, FaultRecord, History, Intent, Operation, Outcome
from verification.vocabulary.quiescent_state import PartitionEnd
from verification.vocabulary.verdict import Finding, Verdict, Violation

#: The fault is in force from 10 to 20.
FAULT = FaultRecord(
    step=0, fault="crash", began_ns=10, confirmed_ns=12, healed_ns=20, target="broker 1", description="crash"
)
END = PartitionEnd(topic="run-orders", partition=1, start=0, high_watermark=50, last_stable_offset=40)


def operation(number: int, *, at: int, outcome: Outcome = Outcome.OK, intent: Intent = Intent.COMMIT) -> Operation:
    """An operation of process 1 with 10 records that took 5 ns."""
    return Operation(
        process=1,
        operation=number,
        action=Action.TRANSACTION,
        outcome=outcome,
        stage="done",
        invoked_ns=at,
        completed_ns=at + 5,
        decided_ns=at + 1,
        intent=intent,
        records=10,
    )


def entry(number: int, offset: int, **changed: Any) -> dict[str, Any]:
    """A visible record of an operation that was told committed."""
    whole = {
        "topic": "run-orders",
        "partition": 1,
        "offset": offset,
        "process": 1,
        "operation": number,
        "index": offset,
    }
    return {
        **whole,
        "in_log": True,
        "outcome": "commit",
        "told": "committed",
        "committed": 1,
        "uncommitted": 1,
        **changed,
    }


def of(*entries: dict[str, Any], anomaly: str = "torn-transaction", count: int = 1, operations: int = 1) -> Damage:
    """The damage of one finding, whose examples are the first operations of process 1."""
    known = Context(
        operations={(1, each): operation(each, at=12 if each == 0 else 100) for each in range(4)},
        faults=(FAULT,),
        run="run",
    )
    examples = tuple(Violation(anomaly=anomaly, process=1, operation=each) for each in range(operations))
    records = {anomaly: FindingRecords(path=Path("records.jsonl"), entries=entries)}
    made = damage_of([Finding(anomaly=anomaly, count=count, examples=examples)], records, known, [END])
    assert made is not None
    return made


def test_an_acknowledged_commit_that_ended_as_an_abort_is_a_loss() -> None:
    """It stands in the log, but no reader will ever receive it."""
    made = of(entry(0, 1), entry(0, 2, outcome="abort", committed=0), entry(0, 3, outcome="abort", committed=0))
    assert (made.lost, made.aborted, made.all_lost, made.hidden) == (0, 2, 2, 0)
    assert "2 lost (committed for the client, aborted in the log), 0 hidden" in sentence(made)


def test_records_are_counted_by_what_became_of_them() -> None:
    """Not in the log is lost; open, or behind the last stable offset, is hidden; a marker is no record."""
    made = of(
        entry(0, 1, in_log=False, outcome=None, committed=0),
        entry(0, 2, outcome="open", committed=0),
        entry(0, 3, committed=0),
        entry(0, 4),
        entry(0, 5, control="commit", told=None, committed=0),
        entry(3, 6, committed=0),
    )
    assert (made.lost, made.aborted, made.hidden) == (1, 0, 2)


def test_operations_are_those_that_were_acknowledged() -> None:
    """A hit operation counts when its client was told ok; the fault's share is of all that overlapped it."""
    made = of(entry(0, 1), operations=2, count=2)
    assert (made.operations, made.during_fault, made.acknowledged_during_fault) == (2, 1, 1)


def test_a_record_of_two_findings_counts_once() -> None:
    """A transaction can be torn and hung at once."""
    hidden = entry(0, 1, outcome="open", committed=0)
    records = {
        name: FindingRecords(path=Path("records.jsonl"), entries=(dict(hidden),))
        for name in ("torn-transaction", "hung-transaction")
    }
    findings = [
        Finding(anomaly=name, count=1, examples=(Violation(anomaly=name, process=1, operation=0),)) for name in records
    ]
    made = damage_of(findings, records, Context(operations={}, faults=()), [])
    assert made is not None
    assert (made.hidden, made.held, made.any) == (1, (), True)
    assert "Nothing is held back" in sentence(made)
    unknown = damage_of(findings, records, Context(operations={}, faults=()), None)
    assert unknown is not None
    assert unknown.held is None
    assert "not recorded" in sentence(summed([made, unknown]))


def test_what_a_hung_transaction_keeps_back_is_damage() -> None:
    """Transactions that are visible in part behind it, and records of others, are counted though no example names them."""
    hidden = FindingRecords(path=Path("records.jsonl"), entries=(entry(0, 1, outcome="open", committed=0),))
    hung = Finding(
        anomaly="hung-transaction",
        count=1,
        examples=(Violation(anomaly="hung-transaction", process=1, operation=0),),
        consequences=199,
        explains=(("hidden-committed", 107), ("torn-transaction", 92)),
    )
    known = Context(operations={(1, 0): operation(0, at=12)}, faults=(FAULT,), run="run")
    made = damage_of([hung], {"hung-transaction": hidden}, known, [END])
    assert made is not None
    assert (made.operations, made.torn, made.hidden, made.hidden_at_least) == (1, 92, 108, True)
    said = sentence(made)
    assert said.startswith("1 acknowledged operation hit directly")
    assert "at least 108 hidden" in said
    assert "92 transactions visible in part" in said


@pytest.mark.parametrize(
    ("anomaly", "field"),
    [("lost-write", "lost"), ("duplicate", "doubled"), ("aborted-read", "shown"), ("early-read", "shown")],
)
def test_violations_that_are_records_count_as_such(anomaly: str, field: str) -> None:
    """The judge keeps few examples, but it counts all."""
    made = of(anomaly=anomaly, count=1_611)
    assert getattr(made, field) == 1_611
    assert made.at_least
    assert sentence(made).startswith("at least 1 acknowledged operation hit directly")


def test_a_full_file_is_a_lower_bound() -> None:
    """The file of log entries has a limit."""
    assert not of(entry(0, 1)).at_least
    assert of(*(entry(0, each) for each in range(LINES_MAX))).at_least


def test_what_is_held_back_is_named_by_partition() -> None:
    """A partition whose last stable offset is below its high watermark, without the prefix of the run."""
    assert of(entry(0, 1)).held == (HeldPartition(place="orders-1", last_stable_offset=40, high_watermark=50),)
    assert "Held back behind orders-1@40: 10 offsets." in sentence(of(entry(0, 1)))
    assert damage_of([], {}, Context(operations={}, faults=()), [END]) is None


def test_scenarios_are_summed() -> None:
    """Many partitions are cut to three by name and counted whole."""
    one = of(entry(0, 2, outcome="abort", committed=0))
    both = summed([one, one, one, replace(one, at_least=True)])
    assert both.held is not None
    assert (both.operations, both.aborted, len(both.held), both.at_least) == (4, 4, 4, True)
    assert "orders-1@40 and 1 more: 40 offsets" in sentence(both)


def test_an_example_of_a_whole_transaction_has_the_offsets_that_prove_it() -> None:
    """Told committed: the records that no reader received; told aborted: those that a reader did; else the fewer."""
    torn = Violation(anomaly="torn-transaction", process=1, operation=0)
    known = Context(operations={}, faults=(), run="run")

    def place(told: str) -> str:
        entries = [entry(0, each, told=told, committed=int(each >= 7)) for each in range(10)]
        return witness(torn, known, entries).place

    assert place("committed") == "orders-1@0, 1, 2, 3, 4 and 2 more"
    assert place("aborted") == place("unknown") == "orders-1@7, 8, 9"
    assert witness(torn, known).place == ""
    own = replace(torn, topic="run-orders", partition=0, offset=4)
    assert witness(own, known, [entry(0, 1, committed=0)]).place == "orders-0@4"


def test_every_format_says_the_impact(tmp_path: Path) -> None:
    """Page, terminal and summary have it at the top, the section of the scenario too; a clean run has none."""
    run = make_run(tmp_path / "run", [SMOKE, FAILED])
    report = load_run(run)
    said = impact(report)
    assert "acknowledged operation" in said
    page = html.render(report, run)
    assert page.count(said) == 2
    assert said in terminal.render(report)
    assert "**Impact**" in summary.render(report)
    assert impact(load_run(make_run(tmp_path / "clean", [SMOKE]))) == ""


def test_topics_have_their_replication(tmp_path: Path) -> None:
    """The first question about a violation is whether replication factor and min ISR are one's own."""
    run = make_run(tmp_path, [FAILED])
    report = load_run(run)
    assert all("replication factor" in each and "min ISR" in each for each in report.scenarios[0].topics)
    assert report.scenarios[0].topics[0] in html.render(report, run)


def claimed(what: str, expected: Any, observed: Any) -> ScriptCase:
    """A failed case with one claim that does not hold, its values in the form that the report shows."""
    said = statement_row(Statement(after=1, what=what, relation=Relation.EQUALS, expected=expected, observed=observed))
    return ScriptCase(key=what, claim="", verdict=Verdict.FAIL, reason="", statements=(said,))


@pytest.mark.parametrize(
    ("case", "shown", "hidden"),
    [
        (claimed("what a reader is given after the next commit", ["next"], ["late", "next"]), True, False),
        (claimed("what readers are given of its two partitions", [[], []], [["a"], []]), True, False),
        (claimed("what a reader is given", ["a"], []), False, True),
        (claimed("what a reader is given", ["a", "b"], ["a"]), False, True),
        # Another record in the place of the right one may have been given before; it is one too few.
        (claimed("what a reader is given", ["b"], ["a"]), False, True),
        # A second copy is no other record.
        (claimed("what a reader is given", ["a"], ["a", "a"]), False, False),
        (claimed("the markers", ["commit"], ["abort"]), False, False),
        (claimed("what a reader is given", ["a" * 700], ["b"]), False, False),
    ],
)
def test_a_case_says_what_readers_were_given(case: ScriptCase, shown: bool, hidden: bool) -> None:
    """Only claims on readers count, and only values that are there in full."""
    found = readers_of(case)
    assert (found.shown, found.hidden) == (shown, hidden)


def test_no_zero_denies_what_a_case_showed(tmp_path: Path) -> None:
    """Scenarios and cases count together: a record that a case gave to a reader is no zero of the run."""
    report = load_run(make_run(tmp_path, [SMOKE, FAILED]))
    denied = "No record reached a reader wrongly."
    assert denied in impact(report)
    gave = claimed("what a reader is given", [], ["aborted"])
    both = impact(replace(report, cases=(gave,)))
    assert denied not in both
    assert both.startswith("In scenarios: ")
    assert not impact(report).startswith("In scenarios: ")
    assert "Of 1 protocol case that failed, 1 gave a reader a record that it must not have, and 0 kept back" in both


def test_operations_are_in_the_periods_of_the_floors() -> None:
    """An operation under way while the fault held is during, also if it ended later; the rows add up to all."""
    init = replace(operation(9, at=1), action=Action.INIT, records=0)
    early, across, late = operation(0, at=2), operation(1, at=18), operation(2, at=30)
    aborted = replace(operation(3, at=31), intent=Intent.ABORT)
    history = History(run="run", anchor_ns=0, wall_clock_anchor="", entries=(init, early, across, late, aborted, FAULT))
    rows = {each.name: (each.ok, each.acknowledged) for each in periods(history)}
    assert rows == {"before": (1, 1), "during": (1, 1), "after": (2, 1), NO_WORK: (1, 0)}
