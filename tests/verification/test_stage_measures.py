"""Stage measures count in every stage and at every roll, and the least of the counts is the one that a floor compares."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chaos.operations.migration import TakeProducerIds
from chaos.operations.placement import PlaceRoles
from chaos.operations.rolling import RollNext
from tests.verification.test_coverage import S, evidence, fault, transaction
from verification.coverage import stage_measures
from verification.coverage.coverage import coverage
from verification.evidence.transaction_log_file import LogHeader, TransactionLog
from verification.evidence.transaction_log_rows import NS_PER_MS, wall_clock_ns
from verification.vocabulary.experiment import Floor
from verification.vocabulary.history import Action, FaultRecord, InputRange, Intent, Outcome, Phase, ProcessRecord
from verification.vocabulary.transaction_log import Entry, State


def phase(name: str, began_s: float, ended_s: float) -> Phase:
    """A phase of the history."""
    return Phase(name=name, began_ns=int(began_s * S), ended_ns=int(ended_s * S))


def roll(stage: str, struck_s: float, back_s: float | None) -> FaultRecord:
    """A node goes down and comes back."""
    return replace(
        fault(struck_s, back_s, confirmed=False),
        fault=stage_measures.ROLLS[0],
        stage=stage,
        struck_ns=int(struck_s * S),
        applied_ns=None if back_s is None else int((back_s - 1) * S),
        confirmed_ns=None if back_s is None else int(back_s * S),
    )


#: Two stages of the schedule, and a phase after them.
PHASES = (phase("roll", 10, 20), phase("finalize", 20, 23), phase("after-window", 23, 30))
STEPS = (roll("roll", 11, 15), replace(fault(20.5, 21), stage="finalize"))


def test_a_total_does_not_hide_a_stage_without_work() -> None:
    """Each stage is counted by itself; what ends before, after and between stages counts for none."""
    done = [transaction(at_s) for at_s in (9, 12, 13, 24)]
    assert stage_measures.transactions_each_stage(evidence(*PHASES, *STEPS, *done)) == {"roll": 2, "finalize": 0}
    (item,) = coverage(evidence(*PHASES, *STEPS, *done, floors=(Floor(name="transactions_each_stage", need=1),)))
    assert (item.have, item.met) == (0, False)
    assert item.text == "transactions that ended as meant in each stage (least: finalize)"


def test_only_transactions_that_ended_as_meant_count() -> None:
    """A failed transaction, an append and a copy of nothing are no work of a stage."""
    failed = transaction(12, outcome=Outcome.FAIL)
    append = transaction(12.1, action=Action.APPEND, intent=None, transactional_id=None)
    nothing = transaction(12.2, action=Action.COPY, records=0)
    run = evidence(*PHASES, *STEPS, failed, append, nothing)
    assert stage_measures.transactions_each_stage(run) == {"roll": 0, "finalize": 0}


def test_aborts_and_offsets_are_counted_by_kind_of_stage() -> None:
    """An abort is one on purpose; offsets are those of copies that committed. Stages of one kind count together."""
    taken = (InputRange(topic="in", partition=0, first=0, end=5),)
    copies = [transaction(at_s, action=Action.COPY, inputs=taken) for at_s in (12, 20.5, 21)]
    copies += [transaction(13, action=Action.COPY, inputs=taken, intent=Intent.ABORT)]
    stages = (phase("roll 1", 10, 12.9), phase("roll 2", 12.9, 20), phase("finalize x", 20, 23))
    steps = [replace(STEPS[1], stage=each.name) for each in stages]
    run = evidence(*stages, *steps, *copies, transaction(14))
    assert stage_measures.aborted_each_kind(run) == {"roll": 1, "finalize": 0}
    assert stage_measures.offsets_each_kind(run) == {"roll": 1, "finalize": 2}


def test_a_transaction_spans_a_roll_from_before_the_stop_to_after_the_start() -> None:
    """One that began while the node was down, or was decided then, met only a part of the roll."""
    spans = transaction(10.5, lasts_s=5, decided_ns=int(14.1 * S))
    short = transaction(10.6, lasts_s=5, decided_ns=int(13.9 * S))
    late = transaction(11.1, lasts_s=5, decided_ns=int(15.2 * S))
    failed = transaction(10.7, lasts_s=5, decided_ns=int(15.2 * S), outcome=Outcome.FAIL)
    run = evidence(*PHASES, *STEPS, spans, short, late, failed)
    assert stage_measures.spanned_each_roll(run) == {"step 0, roll": 1}
    never_back = evidence(*PHASES, roll("roll", 11, None), spans)
    assert stage_measures.spanned_each_roll(never_back) == {"step 0, roll": 0}


def test_a_placement_lasts_until_the_next_step_of_its_stage() -> None:
    """What ends in the attack on it, or once roles are spread again, was not tried in the placement."""
    steps = [replace(fault(at_s, at_s), fault=stage_measures.PLACEMENT, stage="mixed") for at_s in (10, 16)]
    spread, attack = replace(steps[1], step=2), replace(fault(14, 15), stage="mixed", step=1)
    roll_next = roll("roll 2", 18, 19)
    done = [transaction(at_s) for at_s in (9, 11, 12, 14.5, 17)]
    run = evidence(
        *[replace(each, confirmed_ns=each.began_ns) for each in (steps[0], attack, spread)], roll_next, *done
    )
    assert stage_measures.transactions_each_placement(run) == {"step 0, mixed": 2}


def test_producer_ids_count_where_the_log_has_them_first() -> None:
    """An id that was known before is not new; one without a step that took it counts for none."""
    step = replace(fault(10, 12), fault=stage_measures.IDS_TAKEN, stage="ids", confirmed_ns=12 * S)
    run = evidence(phase("ids", 9, 13), step)
    run = replace(run, history=replace(run.history, wall_clock_anchor="2026-01-01T00:00:00+00:00"))
    assert stage_measures.ids_each_taking(run) == {"step 0, ids": 0}
    zero_ms = (wall_clock_ns(run) or 0) // NS_PER_MS
    at_s = {7: (9.0, 11.0), 8: (11.0, 14.0), 9: (11.5,), 10: (13.0,)}
    entries = tuple(
        Entry(
            partition=0,
            offset=producer_id,
            transactional_id=f"t{producer_id}",
            state=State.EMPTY,
            producer_id=producer_id,
            appended_ms=zero_ms + int(each * 1000),
        )
        for producer_id, times in at_s.items()
        for each in times
    )
    log = TransactionLog(header=LogHeader(run=run.run), entries=entries)
    assert stage_measures.ids_each_taking(replace(run, transaction_log=log)) == {"step 0, ids": 2}


def test_a_floor_on_rolls_needs_none_where_there_is_none() -> None:
    """A part of a schedule may have no roll; one that was cut short is still there, and nothing spans it."""
    floors = (Floor(name="spanned_each_roll", need=1),)
    assert coverage(evidence(transaction(1), floors=floors)) == ()
    (item,) = coverage(evidence(roll("roll", 11, None), floors=floors))
    assert (item.have, item.met) == (0, False)


def test_operations_are_known_by_the_names_of_their_classes() -> None:
    """The judge knows faults by names only."""
    assert RollNext.__name__ in stage_measures.ROLLS
    assert PlaceRoles.__name__ == stage_measures.PLACEMENT
    assert TakeProducerIds.__name__ == stage_measures.IDS_TAKEN


def member(process: int, library: str, started_s: float, group: str = "g") -> ProcessRecord:
    """A client process; its end does not matter."""
    return ProcessRecord(
        process=process,
        role="copier",
        client="java",
        site="app",
        started_ns=int(started_s * S),
        ended_ns=int(40 * S),
        end="stopped",
        group=group,
        library=library,
    )


@pytest.mark.parametrize(
    ("old_copies_at_s", "new_library", "new_group", "together"),
    [
        ((12, 15, 17), "kafka-clients 4.3.1 (Java 21.0.5)", "g", 2),
        ((12, 13.9), "kafka-clients 4.3.1 (Java 21.0.5)", "g", 0),
        ((12, 15, 17), "kafka-clients 3.9.2 (Java 21.0.5)", "g", 0),
        ((12, 15, 17), "confluent-kafka 2.16.1", "g", 0),
        ((12, 15, 17), "kafka-clients 4.3.1 (Java 21.0.5)", "other", 0),
    ],
    ids=["both", "one after the other", "one release", "another library", "another group"],
)
def test_a_group_has_both_releases_once_the_old_one_copies_after_the_new_one(
    old_copies_at_s: tuple[float, ...], new_library: str, new_group: str, together: int
) -> None:
    """A process that has started is no member yet; one that copies has partitions. The floor is met by one such copy."""
    taken = (InputRange(topic="in", partition=0, first=0, end=5),)
    members = [member(1, "kafka-clients 3.9.2 (Java 21.0.5)", 1), member(2, new_library, 13, new_group)]
    copies = [transaction(at_s, process=1, action=Action.COPY, inputs=taken) for at_s in old_copies_at_s]
    copies += [transaction(at_s, process=2, action=Action.COPY, inputs=taken) for at_s in (14, 16)]
    copies += [transaction(18, process=1, action=Action.COPY), transaction(13.5, process=2, action=Action.COPY)]
    run = evidence(*members, *copies, floors=(Floor(name="copied_together", need=1),))
    run = replace(run, experiment=replace(run.experiment, group="g"))
    assert stage_measures.copied_together(run) == together
    (item,) = coverage(run)
    assert item.met is (together > 0)
