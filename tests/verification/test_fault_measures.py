"""Fault measures are counted from the evidence: each one counts its own proof, and nothing that only looks like it."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from chaos import targets
from tests.support.planted.files import write
from tests.support.planted.histories import Planted
from tests.verification.test_coverage import S, evidence, fault, initialised, transaction
from verification.coverage import fault_measures
from verification.evidence import lso_samples
from verification.evidence.capture_reader import LogRow
from verification.evidence.rows import small_rows
from verification.evidence.run_evidence import RunEvidence, read_run
from verification.vocabulary.experiment import EFFECT, ExperimentTopic, TopicRole
from verification.vocabulary.history import (
    LEADERLESS,
    UNSEEN,
    Action,
    Entry,
    InputRange,
    Intent,
    Operation,
    Outcome,
    ProcessRecord,
    Sample,
)
from verification.vocabulary.quiescent_state import GroupOffset, QuiescentState

TIMEOUT_S = 5.0


def sample(at_s: float, high: int = 0, stable: int = 0, *, leader: int = 1, topic: str = "out") -> Sample:
    """A sample of partition 0 of a topic."""
    return Sample(
        at_ns=int(at_s * S), topic=topic, partition=0, leader=leader, high_watermark=high, last_stable_offset=stable
    )


def process(number: int, ended_s: float = 99, *, end: str = "stopped", transactional_id: str | None = "tx") -> Entry:
    """A client instance."""
    return ProcessRecord(
        process=number,
        role="producer",
        client="confluent",
        site="app",
        started_ns=0,
        ended_ns=int(ended_s * S),
        end=end,
        transactional_id=transactional_id,
    )


def told(*entries: Entry, offset: int = -1) -> RunEvidence:
    """A run with one output and one input partition, of which the group committed `offset`."""
    plain = evidence(*entries)
    topics = (
        ExperimentTopic(name="out", partitions=1, replication=3, min_in_sync=2),
        ExperimentTopic(name="in", partitions=1, replication=3, min_in_sync=2, role=TopicRole.INPUT),
    )
    experiment = replace(plain.experiment, topics=topics, group="g", transaction_timeout_s=TIMEOUT_S)
    captures = QuiescentState(group_offsets=(GroupOffset(group="g", topic="in", partition=0, offset=offset),))
    return replace(plain, experiment=experiment, captures=captures)


def test_transactions_after_are_no_appends_and_not_of_before() -> None:
    """A feeder's appends fill every window; they are no transactions, and neither is a copy of nothing."""
    append = transaction(8, action=Action.APPEND, intent=None, transactional_id=None)
    empty = transaction(8.5, action=Action.COPY, records=0)
    assert fault_measures.transactions_after(told(fault(3, 5), transaction(4), append, empty, transaction(9))) == 1
    assert fault_measures.transactions_after(told(fault(3, None), transaction(9))) == 0


def test_who_was_struck_must_work_again_himself_or_by_his_successor() -> None:
    """Transactions of clients that no fault struck prove nothing; of several struck clients the slowest one counts."""
    struck = replace(fault(3, 5), processes=(0,))
    own = transaction(8, process=3)
    other = transaction(9, process=1, transactional_id="other")
    both = (process(0), process(1, transactional_id="other"), process(3))
    assert fault_measures.struck_after(told(struck, *both, other)) == 0
    assert fault_measures.struck_after(told(struck, *both, own, other)) == 1
    assert fault_measures.struck_after(told(replace(struck, processes=(0, 1)), *both, own, own)) == 0
    assert fault_measures.struck_after(told(fault(3, 5), *both, own)) == 0, "the fault struck no client"


def copying(at_s: float, end: int, outcome: Outcome = Outcome.OK) -> Operation:
    """A copy of ten inputs up to `end`."""
    taken = InputRange(topic="in", partition=0, first=end - 10, end=end)
    return transaction(at_s, action=Action.COPY, outcome=outcome, inputs=(taken,))


@pytest.mark.parametrize(("offset", "count"), [(10, 0), (20, 0), (21, 1), (-1, 0)])
def test_inputs_are_copied_past_what_was_taken_up_until_the_heal(offset: int, count: int) -> None:
    """Inputs of failed copiers count, inputs that were taken up after the heal do not; without either the count is 0."""
    copies = (copying(2, 10), copying(4.5, 20, Outcome.FAIL), copying(6, 30))
    assert fault_measures.copied_past(told(fault(3, 5), *copies, offset=offset)) == count
    assert fault_measures.copied_past(told(fault(3, 5), copies[2], offset=offset)) == 0, (
        "nothing was tried in it before"
    )
    assert fault_measures.copied_past(told(fault(3, None), *copies, offset=offset)) == 0, "it was never healed"


@pytest.mark.parametrize(
    ("code", "name", "count"),
    [(22, "ILLEGAL_GENERATION", 1), (25, "", 1), (-1000, "CommitFailedException", 1), (90, "PRODUCER_FENCED", 0)],
)
def test_a_member_is_refused_by_its_group(code: int, name: str, count: int) -> None:
    """Only the group's own refusal shows that the member no longer belonged to it."""
    refused = transaction(4, action=Action.COPY, outcome=Outcome.FAIL, error_code=code, error_name=name)
    assert fault_measures.refused_members(told(refused)) == count


class LeftOpen:
    """A log with two records of each operation, from offset 20 on, and one of the transaction before."""

    def producer_rows(self, process: int, operation: int) -> tuple[LogRow, ...]:
        own = tuple((0, 0, 20 + index, None, process, operation, index, 0) for index in range(2))
        return (0, 0, 18, None, process, operation - 1, 0, 0), (0, 0, 19, "commit", None, None, None, 0), *own


def abandoned(*looks: Sample, others_struck: bool = False) -> RunEvidence:
    """A producer killed at 10 s with an open transaction, and the samples of its partition."""
    left = transaction(9.5, outcome=Outcome.INFO, decided_ns=None)
    struck = replace(fault(9, 12), processes=() if others_struck else (0,))
    run = told(left, process(0, 10, end="killed"), struck, sample(9, 20, 20), *looks)
    return replace(run, capture_reader=LeftOpen())


MOVING = tuple(sample(at_s, 30 + 10 * int(at_s), 20) for at_s in (10.2, 11, 13, 15))
AFTERWARDS = 1000


def standing(until_s: float) -> tuple[Sample, ...]:
    """Samples twice a second from the client's death on, of an LSO that others write past, until it is released."""
    held = [sample(half / 2, 10 * half, 20) for half in range(21, int(until_s * 2))]
    return *held, sample(until_s, AFTERWARDS, AFTERWARDS)


def test_the_lso_stands_at_what_a_killed_client_left_open() -> None:
    """The LSO must stay at its transaction for half a timeout; a short lag does not count."""
    assert fault_measures.lso_stood(abandoned(*MOVING, sample(15.5, 200, 200))) == 1
    assert fault_measures.lso_stood(abandoned(MOVING[0], sample(11, 140, 140))) == 0
    assert fault_measures.lso_stood(abandoned(*MOVING[:2], sample(15.5, 200, 200))) == 0, "no sample while it stood"
    assert fault_measures.lso_stood(told(process(0, 10, end="killed"), *MOVING)) == 0, "nothing was left open"


@pytest.mark.parametrize(("offset", "count"), [(20, 1), (18, 0), (19, 0), (21, 0)])
def test_the_lso_stands_at_the_first_record_of_the_killed_client(offset: int, count: int) -> None:
    """Also before it dies, because a slow client is in its transaction for some time; another offset is another's."""
    looks = (sample(at_s, 40, offset) for at_s in (5, 8))
    assert fault_measures.lso_stood(abandoned(*looks, sample(11, 140, 140))) == count


@pytest.mark.parametrize(("released_s", "late"), [(15.5, False), (20.5, False), (21, True), (25, True)])
def test_an_abandoned_transaction_that_is_aborted_too_late_is_stuck(released_s: float, late: bool) -> None:
    """Timeout, abort interval and 3 s after the second sample of an open transaction, a sample must find it ended."""
    run = abandoned(*standing(released_s))
    (settled,) = [*small_rows(run)["settled"], None][:1]
    assert (settled is not None) is late
    if settled is not None:
        assert (settled["topic_index"], settled["partition"], settled["before_fencing"]) == (0, 0, True)
        assert settled["last_stable_offset"] < settled["high_watermark"]


def test_lateness_is_told_by_looks_alone() -> None:
    """Without samples, with a silent leader, or with struck brokers as well, no transaction counts as overdue."""
    assert list(lso_samples.overdue(abandoned(*MOVING))) == [], "no sample saw it move"
    stalled = (*MOVING, sample(25, AFTERWARDS, AFTERWARDS))
    assert list(lso_samples.overdue(abandoned(*stalled))) == [], "no sample from 15 s to 25 s"
    assert len(list(lso_samples.overdue(abandoned(*MOVING, sample(24, 300, 20), stalled[-1])))) == 1, (
        "a look that tells"
    )
    newer = sample(24, 300, MOVING[0].high_watermark)
    assert list(lso_samples.overdue(abandoned(*MOVING, newer, stalled[-1]))) == [], "only younger transactions are open"
    silent = tuple(replace(each, high_watermark=-1, last_stable_offset=-1) for each in standing(25)[6:-1])
    assert list(lso_samples.overdue(abandoned(*standing(25)[:6], *silent, stalled[-1]))) == []
    assert list(lso_samples.overdue(abandoned(*standing(25), others_struck=True))) == []


def test_the_bound_does_not_run_before_a_slow_look_was_answered() -> None:
    """A sample that takes seconds may show a transaction that began meanwhile; the next sample shows it answered."""
    slow = (sample(10.2, 130, 20), *(sample(half / 2, 10 * half, 20) for half in range(28, 45)))
    assert list(lso_samples.overdue(abandoned(*slow, sample(23, AFTERWARDS, AFTERWARDS)))) == []


def test_a_strike_in_mid_commit_leaves_commits_unanswered() -> None:
    """An end counts if it was requested before the fault struck and answered after it; no earlier or later one counts."""
    struck = replace(fault(3, 5), applied_ns=int(3.2 * S))
    asked = {"decided_ns": int(3.1 * S)}
    assert fault_measures.undecided_at_strike(told(struck, transaction(3, **asked))) == 1
    assert fault_measures.undecided_at_strike(told(struck, transaction(3, lasts_s=0.15, **asked))) == 0
    assert fault_measures.undecided_at_strike(told(struck, transaction(3, decided_ns=int(3.3 * S)))) == 0
    assert fault_measures.undecided_at_strike(told(struck, transaction(3))) == 0
    after_the_blow = replace(struck, struck_ns=int(3.05 * S))
    assert fault_measures.undecided_at_strike(told(after_the_blow, transaction(3, **asked))) == 0, "asked of the dead"
    assert (
        fault_measures.undecided_at_strike(told(replace(struck, struck_ns=int(3.15 * S)), transaction(3, **asked))) == 1
    )


@pytest.mark.parametrize(
    ("decided_s", "count"), [(4.1, 1), (5, 1), (3.9, 0), (6.5, 0)], ids=["proven", "sampled", "before", "unseen"]
)
def test_commits_while_leaderless_lie_within_what_was_seen(decided_s: float, count: int) -> None:
    """From the proof of the fault until the last sample without a leader; a silent leader is still a leader."""
    proven = replace(fault(3, 9), confirmed_ns=4 * S, proof=f"out-0 {LEADERLESS}")
    without = tuple(sample(at_s, -1, -1, leader=-1) for at_s in (4.3, 4.8, 5.3, 6))
    looks = (sample(3.8, 9, 9), *without, sample(8, 9, 9))
    commit = transaction(decided_s - 0.1, lasts_s=0.3, decided_ns=int(decided_s * S))
    assert fault_measures.committed_while_leaderless(told(proven, *looks, commit)) == count
    late = (looks[0], *without[2:], looks[-1])
    assert fault_measures.committed_while_leaderless(told(proven, *late, commit)) == count, "the next look was slow"
    for doubt in (
        told(replace(proven, proof=f"out-1 {LEADERLESS}"), *looks, commit),
        told(replace(proven, healed_ns=int(4.2 * S)), *looks, commit),
        told(proven, sample(4.25, 9, 9, leader=2), *looks, commit),
    ):
        assert fault_measures.committed_while_leaderless(doubt) == (count if decided_s > 4.3 else 0)
    silent = tuple(replace(each, leader=1) for each in looks)
    assert fault_measures.committed_while_leaderless(told(proven, *silent, commit)) == 0
    assert fault_measures.committed_while_leaderless(told(proven, *looks, replace(commit, intent=Intent.ABORT))) == 0


def test_a_moment_at_which_nobody_could_say_is_not_leaderless() -> None:
    """While all brokers are dead nothing is known about leaders, and earlier knowledge ends."""
    run = told(sample(1), sample(2, -1, -1, leader=UNSEEN), sample(4), sample(5, leader=-1), sample(6, leader=UNSEEN))
    assert lso_samples.leaderless(run, (0, 0)) == [
        lso_samples.Leaderless(first_ns=5 * S, last_ns=5 * S, until_ns=6 * S)
    ]
    lasting = told(sample(1), *(sample(at_s, leader=-1) for at_s in (2, 3, 4)))
    assert lso_samples.leaderless(lasting, (0, 0)) == [
        lso_samples.Leaderless(first_ns=2 * S, last_ns=4 * S, until_ns=None)
    ]


def test_faults_and_evidence_say_the_same_of_a_partition_without_a_leader() -> None:
    """Commits are counted by the proof of the fault."""
    assert fault_measures.LEADERLESS is targets.LEADERLESS


def test_held_up_is_what_a_fault_kept_from_ending() -> None:
    """Under way for the last two seconds of a fault and beyond it; a fault without proof held up no operation."""
    long, short = transaction(4, lasts_s=5), transaction(4, lasts_s=1)
    assert fault_measures.held_up(told(fault(3, 8), long, short, transaction(7, lasts_s=3))) == 1
    assert fault_measures.held_up(told(fault(3, 8, confirmed=False), long)) == 0
    assert fault_measures.held_up(told(fault(3, 4.5), transaction(1, lasts_s=5))) == 0, "the fault stood too short"


@pytest.mark.parametrize("slow_at_s", [0.5, 9.0], ids=["before", "after"])
def test_an_operation_that_is_only_slow_is_not_held_up(slow_at_s: float) -> None:
    """Where an operation takes three seconds without a fault, one that a fault held up takes longer."""
    slow, begun_late, begun_early = transaction(slow_at_s, lasts_s=2.4), transaction(5.7, lasts_s=2.4), transaction(5.5)
    assert fault_measures.held_up(told(fault(3, 8), begun_late)) == 1
    assert fault_measures.held_up(told(fault(3, 8), slow, begun_late)) == 0
    assert fault_measures.held_up(told(fault(3, 8), slow, replace(begun_early, completed_ns=9 * S))) == 1
    started = replace(slow, action=Action.INIT)
    assert fault_measures.held_up(told(fault(3, 8), started, begun_late)) == 1, "an initialisation is no operation"


def test_an_operation_that_outlasts_every_other_is_held_up_on_a_busy_machine() -> None:
    """There an operation may take longer without a fault than the fault held: seen with 4.7 s, and a hold of 4.3 s."""
    slow = transaction(10, lasts_s=4.7)
    held = fault(3, 7.3)
    assert fault_measures.held_up(told(held, slow, transaction(1, lasts_s=8.5))) == 1
    assert fault_measures.held_up(told(held, slow, transaction(1, lasts_s=6.5))) == 0, "no longer than without a fault"
    assert fault_measures.held_up(told(held, slow, replace(transaction(1), completed_ns=None))) == 1


def test_observers_count_while_a_fault_stands(tmp_path: Path) -> None:
    """Records that were received before or after the fault do not count."""
    path = tmp_path / "o.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as lines:
        for at_s in (1, 4, 6):
            lines.write(json.dumps({"poll": at_s, "received_ns": at_s * S, "records": [[0, 0, at_s, ""]]}) + "\n")
    run = replace(told(fault(3, 5)), observations={"o": path})
    assert (fault_measures.observed(run), fault_measures.observed_during(run)) == (3, 1)


@pytest.mark.parametrize(
    ("aims", "count"),
    [([()], 3), ([("out-1",)], 1), ([("out-2",)], 0), ([("out-1",), ()], 3), ([("out-1", "out-0")], 3)],
)
def test_observers_count_where_a_fault_was_aimed(aims: list[tuple[str, ...]], count: int, tmp_path: Path) -> None:
    """Records of partitions that a fault did not strike prove nothing about it; evidence that names none counts all."""
    path = tmp_path / "o.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as lines:
        records = [[0, 0, 4, ""], [0, 0, 5, ""], [0, 1, 4, ""]]
        lines.write(json.dumps({"poll": 1, "received_ns": 4 * S, "records": records}) + "\n")
    faults = [replace(fault(3, 5), step=step, partitions=partitions) for step, partitions in enumerate(aims)]
    run = replace(told(*faults), observations={"o": path})
    assert fault_measures.observed_during(run) == count


def test_an_observer_that_stopped_early_is_not_at_the_end(tmp_path: Path) -> None:
    """Every partition counts, to the last record that the observer's isolation shows."""
    planted = Planted(run="story")
    client = planted.client("tx-0")
    planted.transaction(client, ((0, 0), (1, 0)))
    planted.transaction(client, ((0, 0),))
    plant = planted.finish()
    run = read_run(write(plant, tmp_path / "whole"))
    assert fault_measures.observers_at_end(run) == len(run.experiment.observers) == 2
    last = max(row["received_ns"] for row in plant.rows["observations"] if row["observer_index"] == 0)
    plant.rows["observations"] = [
        row for row in plant.rows["observations"] if row["observer_index"] or row["received_ns"] < last
    ]
    assert fault_measures.observers_at_end(read_run(write(plant, tmp_path / "early"))) == 1


def test_no_observer_has_to_read_the_rows_of_a_database(tmp_path: Path) -> None:
    """They are in no topic."""
    planted = Planted(run="story")
    planted.transaction(planted.client("tx-0"), ((0, 0), (1, 0)))
    run = read_run(write(planted.finish(), tmp_path / "run"))
    named = tuple(replace(topic, shape=EFFECT, reference="value") for topic in run.experiment.topics[:1])
    source = replace(run.experiment.topics[0], name="in", role=TopicRole.INPUT)
    experiment = replace(run.experiment, topics=(*named, *run.experiment.topics[1:], source), pipeline=0)
    observations = {name: tmp_path / f"{name}.jsonl.gz" for name in run.observations}
    for path in observations.values():
        with gzip.open(path, "wt", encoding="utf-8") as lines:
            records = [[row["topic_index"], row["partition"], row["offset"], ""] for row in planted.log[1, 0]]
            lines.write(json.dumps({"poll": 1, "received_ns": 4 * S, "records": records}) + "\n")
    assert fault_measures.observers_at_end(replace(run, observations=observations)) == 0
    assert fault_measures.observers_at_end(replace(run, observations=observations, experiment=experiment)) == 2


def test_input_ranges_make_a_copy_of_nothing_else() -> None:
    """A copy with inputs is work, also where all of them were filtered away."""
    copied = transaction(
        9, action=Action.COPY, records=0, inputs=(InputRange(topic="in", partition=0, first=0, end=1),)
    )
    assert fault_measures.transactions_after(told(fault(3, 5), copied, initialised(9.5, 0))) == 1
