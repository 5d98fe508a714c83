"""The figures of an upgrade say what each stage cost each client, from a history whose figures are known by hand."""

from __future__ import annotations

from dataclasses import replace

from reports.loading.stage_figures import StageSpan, figures
from reports.model.timeline import Latency
from reports.model.upgrade import ErrorCount, StageFigures
from tests.support.plans import ANCHOR, SECOND, SMOKE
from tests.support.planted.upgrade import STAGES, at_ns, operation, upgrade_history
from verification.vocabulary.history import Entry, FaultRecord, Outcome, ProcessRecord

BEFORE, ROLL_1, ROLL_2, FINALIZE, AFTER = range(5)
SPANS = tuple(
    StageSpan(began_ns=at_ns(began_s), ended_ns=at_ns(ended_s))
    for _, began_s, ended_s in (("before", 2.0, 4.0), *STAGES, ("after", 16.0, 20.0))
)
HISTORY = upgrade_history(SMOKE)


def figures_of(*extra: Entry, without: type[Entry] | None = None) -> tuple[dict[str, StageFigures], ...]:
    """The figures of the planted history with more entries, or without those of a type."""
    kept = tuple(each for each in HISTORY.entries if without is None or not isinstance(each, without))
    return figures(replace(HISTORY, entries=(*kept, *extra)), SPANS, lambda at: (at - ANCHOR) / SECOND)


def test_commits_count_in_the_stage_of_their_answer() -> None:
    """Rate and latency are of the commits whose answers came in the stage, both producers of a client together."""
    java = [each["java"] for each in figures_of()]
    assert [each.committed for each in java] == [8, 18, 16, 8, 16]
    assert [each.committed_per_s for each in java] == [4.0, 3.0, 4.0, 4.0, 4.0]
    assert java[ROLL_1].latency == Latency(count=18, p50_ms=100.0, p99_ms=100.0)


def test_the_longest_stop_goes_on_while_an_instance_is_replaced() -> None:
    """One producer stood still from 5 to 8 s, while the other one of its client went on."""
    java = figures_of()[ROLL_1]["java"]
    assert (java.gap_s, java.gap_began_s, java.gap_of_all_s) == (3.0, 5.0, 0.5)


def test_a_stop_up_to_the_end_counts_in_every_stage_that_it_spans() -> None:
    """It began at 15 s, within a stage, and the workload ended with it."""
    confluent = [each["confluent"] for each in figures_of()]
    assert (confluent[FINALIZE].gap_s, confluent[AFTER].gap_s, confluent[AFTER].gap_began_s) == (0.5, 5.0, 15.0)
    assert confluent[AFTER].gap_of_all_s == 5.0
    assert confluent[AFTER].committed == 0
    assert confluent[AFTER].latency.p50_ms is None


def test_errors_and_ends_are_counted_where_they_occurred() -> None:
    """The fatal error aborted a transaction whose commit was meant, and its instance was replaced; one abort was meant."""
    java = [each["java"] for each in figures_of()]
    assert java[ROLL_1].errors == (ErrorCount(name="REQUEST_TIMED_OUT", code=7, count=1),)
    assert [each.replaced for each in java] == [0, 1, 0, 0, 0]
    assert [(each.aborted_on_purpose, each.aborted, each.unknown) for each in java[ROLL_1 : ROLL_2 + 1]] == [
        (0, 1, 0),
        (1, 0, 0),
    ]
    assert all(not each["confluent"].errors for each in figures_of())


def test_an_instance_that_a_fault_struck_was_not_replaced_because_of_the_upgrade() -> None:
    """A probe pauses a producer on purpose; its end says nothing about applications."""
    struck = FaultRecord(step=9, fault="PausedZombie", description="", target="", began_ns=at_ns(8), processes=(0,))
    assert figures_of(struck)[ROLL_1]["java"].replaced == 0
    held = replace(struck, processes=(), held=(0,), confirmed_ns=at_ns(8.9))
    assert figures_of(held)[ROLL_1]["java"].replaced == 0
    assert figures_of(replace(held, confirmed_ns=at_ns(8.1)))[ROLL_1]["java"].replaced == 1


def test_a_producer_that_the_schedule_held_did_not_stand_still() -> None:
    """The wait is the harness's; what the producer then needs for its commit is not."""
    held = FaultRecord(
        step=9, fault="RollNext", description="", target="", began_ns=at_ns(5.2), confirmed_ns=at_ns(7.8), held=(0,)
    )
    java = figures_of(held)[ROLL_1]["java"]
    assert (java.gap_s, java.gap_began_s) == (1.0, 8.5)


def test_fenced_instances_and_unknown_outcomes_are_counted() -> None:
    """An instance that was told twice that it is fenced counts once; a commit without an answer is unknown."""
    told = [operation(1, "two", at, at + 0.1, outcome=Outcome.FAIL, error=("_FENCED", -144)) for at in (12.0, 12.3)]
    unanswered = replace(operation(1, "two", 13.0, 13.2), outcome=Outcome.INFO, completed_ns=None)
    java = figures_of(*told, unanswered)[ROLL_2]["java"]
    assert (java.fenced, java.unknown) == (1, 1)
    assert java.errors == (ErrorCount(name="_FENCED", code=-144, count=2),)


def test_a_history_that_was_cut_off_has_figures_of_an_unknown_client() -> None:
    """Records of processes are written at their ends; without them all operations are of one client without a name."""
    (client,) = figures_of(without=ProcessRecord)[BEFORE]
    assert client == ""
    assert figures(HISTORY, (), float) == ()
