"""Fault measures: count from the evidence whether the faults of a run met the operations that its claim is about.

It is not enough that a fault took hold. A broker may be killed while no client commits. A client may be cut off between
two transactions. The work after a fault may be that of clients that no fault struck. Each measure here counts the events
that prove the opposite, and a scenario that needs them has a floor for it (`verification.coverage.coverage`).

Free of pyspark.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from verification.evidence import lso_samples
from verification.evidence.run_evidence import RunEvidence
from verification.vocabulary.experiment import IsolationLevel
from verification.vocabulary.history import (
    LEADERLESS,
    NO_LEADER,
    Action,
    FaultRecord,
    Intent,
    Operation,
    Outcome,
    ProcessRecord,
    Told,
)

NS = lso_samples.NS
#: Answers by which a group refuses a member that no longer belongs to it: ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID,
#: REBALANCE_IN_PROGRESS, FENCED_INSTANCE_ID (KIP-447). The java client has one exception without a code for them.
REFUSED_MEMBER = frozenset({22, 25, 27, 82})
REFUSED_MEMBER_NAME = "CommitFailedException"
#: On a machine that is not busy, an operation of any workload ends within a tenth of this time when no fault holds.
HELD_UP_S = 2.0


def transactional(operation: Operation) -> bool:
    """Whether an operation is a transaction, or a copy in one."""
    return operation.action is Action.TRANSACTION or (
        operation.action is Action.COPY and operation.transactional_id is not None
    )


def last_heal_ns(evidence: RunEvidence) -> int | None:
    """The time when the last fault was healed; 0 for a run without faults, None when one never was."""
    healed = [each.healed_ns for each in evidence.history.of(FaultRecord)]
    known = [each for each in healed if each is not None]
    return None if len(known) < len(healed) else max(known, default=0)


def _done_after(evidence: RunEvidence) -> Iterator[Operation]:
    """Transactions that were begun after the last heal and ended as meant; copies that had something to copy."""
    since = last_heal_ns(evidence)
    for each in evidence.history.of(Operation):
        done = each.outcome is Outcome.OK and transactional(each)
        worked = bool(each.inputs or each.records or each.action is not Action.COPY)
        if done and worked and since is not None and each.invoked_ns > since:
            yield each


def transactions_after(evidence: RunEvidence) -> int:
    """Transactions that were begun after the last fault was healed and ended as meant."""
    return sum(1 for _ in _done_after(evidence))


def struck_after(evidence: RunEvidence) -> int:
    """The fewest transactions that a struck client, or its successor, ended after the faults; 0 without such a client."""
    owner = {each.process: each.transactional_id for each in evidence.history.of(ProcessRecord)}
    struck = {owner.get(process) for each in evidence.history.of(FaultRecord) for process in each.processes} - {None}
    done = [each.transactional_id for each in _done_after(evidence)]
    return min((done.count(each) for each in struck), default=0)


def copied_past(evidence: RunEvidence) -> int:
    """Input partitions of which the group committed more than any copier had taken up when the last fault was healed.

    So the group went past all inputs of copiers that were killed or refused. How much more there was to read does not
    matter: a slow copier never reaches the end of a fast feeder's records.
    """
    since = last_heal_ns(evidence)
    taken_up: dict[tuple[str, int], int] = {}
    for each in evidence.history.of(Operation):
        if since is not None and each.invoked_ns <= since:
            for place in each.inputs:
                at = (place.topic, place.partition)
                taken_up[at] = max(taken_up.get(at, 0), place.end)
    return sum(
        each.offset > taken_up.get((each.topic, each.partition), each.offset)
        for each in evidence.captures.group_offsets
        if each.group == evidence.experiment.group
    )


def refused_members(evidence: RunEvidence) -> int:
    """Copies that were refused because the member no longer belonged to the group."""
    return sum(
        1
        for each in evidence.history.of(Operation)
        if each.action is Action.COPY and (each.error_code in REFUSED_MEMBER or each.error_name == REFUSED_MEMBER_NAME)
    )


def lso_stood(evidence: RunEvidence) -> int:
    """Partitions whose LSO stayed at a killed client's open transaction for half a transaction timeout or more."""
    least_s = evidence.experiment.transaction_timeout_s / 2
    left = [operation for operation, _ in lso_samples.abandoned(evidence)]
    return sum(
        any(lso_samples.lso_stood_s(evidence, place, each) >= least_s for each in left)
        for place in lso_samples.outputs(evidence)
    )


def undecided_at_strike(evidence: RunEvidence) -> int:
    """Commits and aborts that were requested before a fault struck and were not answered when it was in force.

    A later request may never have reached a broker. Without `struck_ns` (older evidence) it counts as well.
    """
    strikes = [
        (each.applied_ns if each.struck_ns is None else each.struck_ns, each.applied_ns)
        for each in evidence.history.of(FaultRecord)
        if each.applied_ns is not None
    ]
    return sum(
        1
        for each in evidence.history.of(Operation)
        if each.decided_ns is not None
        and any(
            each.decided_ns <= struck and (each.completed_ns is None or each.completed_ns > applied)
            for struck, applied in strikes
        )
    )


def _proven_leaderless_ns(evidence: RunEvidence, place: lso_samples.Place, seen_ns: int) -> int:
    """The time since when a partition that was seen without a leader had none, by the proof of a fault that still held."""
    topic = (evidence.topic(place[0]) or "").removeprefix(f"{evidence.run}-")
    led_ns = max(
        (
            each.at_ns
            for each in lso_samples.at_place(evidence, place)
            if each.leader > NO_LEADER and each.at_ns < seen_ns
        ),
        default=0,
    )
    proven = (
        each.confirmed_ns
        for each in evidence.history.of(FaultRecord)
        if each.confirmed_ns is not None
        and (each.proof or "").startswith(f"{topic}-{place[1]} {LEADERLESS}")
        and led_ns < each.confirmed_ns < seen_ns
        and (each.healed_ns is None or seen_ns < each.healed_ns)
    )
    return min(proven, default=seen_ns)


def _surely_leaderless(evidence: RunEvidence) -> Iterator[tuple[int, int]]:
    """Spans from the first look, or the fault's proof, that saw a partition without a leader, to the last such look."""
    for place in lso_samples.outputs(evidence):
        for each in lso_samples.leaderless(evidence, place):
            yield _proven_leaderless_ns(evidence, place, each.first_ns), each.last_ns


def committed_while_leaderless(evidence: RunEvidence) -> int:
    """Commits that were requested and answered ok while a partition had no leader."""
    spans = tuple(_surely_leaderless(evidence))
    return sum(
        1
        for each in evidence.history.of(Operation)
        if each.told is Told.COMMITTED
        and each.intent is Intent.COMMIT
        and each.decided_ns is not None
        and each.completed_ns is not None
        and any(began <= each.decided_ns and each.completed_ns <= ended for began, ended in spans)
    )


def _longest_undisturbed_ns(evidence: RunEvidence) -> int:
    """How long the slowest operation took that ended before the first fault began, or began after the last heal."""
    faults, healed_ns = evidence.history.of(FaultRecord), last_heal_ns(evidence)
    began_ns = min((each.began_ns for each in faults), default=0)
    return max(
        (
            each.completed_ns - each.invoked_ns
            for each in evidence.history.of(Operation)
            if each.action is not Action.INIT
            and each.completed_ns is not None
            and (each.completed_ns < began_ns or (healed_ns is not None and each.invoked_ns > healed_ns))
        ),
        default=0,
    )


def held_up(evidence: RunEvidence) -> int:
    """Operations that could not end while a fault held: under way for the last `HELD_UP_S` of it, and until it was healed.

    From the fault's proof, or from its own beginning if that was later, each took longer than the slowest operation that
    no fault met: on a busy machine an operation that is only slow may be under way for seconds when the fault is healed.
    Time after the heal counts, because there a fault may hold for less time than such an operation takes.
    """
    least_ns, slowest_ns = int(HELD_UP_S * NS), _longest_undisturbed_ns(evidence)
    windows = [
        (each.confirmed_ns, each.healed_ns)
        for each in evidence.history.of(FaultRecord)
        if each.confirmed_ns is not None and each.healed_ns is not None
    ]

    def held(operation: Operation, confirmed: int, healed: int) -> bool:
        since, done = max(operation.invoked_ns, confirmed), operation.completed_ns
        return since <= healed - least_ns and (done is None or (done >= healed and done - since > slowest_ns))

    return sum(
        1
        for each in evidence.history.of(Operation)
        if each.action is not Action.INIT and any(held(each, *window) for window in windows)
    )


def _polls(path: Path) -> Iterator[tuple[int, list[Any]]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            body = json.loads(line)
            yield body["received_ns"], body["records"]


def observed(evidence: RunEvidence) -> int:
    """Records that live observers received."""
    return sum(len(records) for path in evidence.observations.values() for _, records in _polls(path))


def observed_during(evidence: RunEvidence) -> int:
    """Records that live observers received while a fault was confirmed and not healed.

    If a fault names its target partitions, only their records count: it does not concern the leaders of the others.
    """
    count, faults = 0, evidence.history.of(FaultRecord)
    for path in evidence.observations.values():
        for at_ns, records in _polls(path):
            aims = [set(each.partitions) for each in faults if _was_in_force(each, at_ns)]
            if aims and all(aims):
                struck = set[str]().union(*aims)
                count += sum(f"{evidence.topic(index)}-{partition}" in struck for index, partition, *_ in records)
            elif aims:
                count += len(records)
    return count


def _was_in_force(fault: FaultRecord, at_ns: int) -> bool:
    """Whether a fault was confirmed and not healed at a time."""
    return (
        fault.confirmed_ns is not None
        and fault.healed_ns is not None
        and fault.confirmed_ns <= at_ns <= fault.healed_ns
    )


def observers_at_end(evidence: RunEvidence) -> int:
    """Live observers that received the last record of every partition that a reader of their isolation can see."""
    mine = set(lso_samples.outputs(evidence)) - set(lso_samples.effects(evidence))
    # For remote evidence each call is a Spark job, and there are many observers.
    ends_of = cache(evidence.capture_reader.last_offsets)
    count = 0
    for observer in evidence.experiment.observers:
        reached: dict[lso_samples.Place, int] = defaultdict(lambda: -1)
        for _, records in _polls(evidence.observations[observer.name]):
            for topic_index, partition, offset, _text in records:
                place = (topic_index, partition)
                reached[place] = max(reached[place], offset)
        everything = observer.isolation is IsolationLevel.UNCOMMITTED and evidence.experiment.has_log
        ends = ends_of("uncommitted" if everything else "committed")
        count += all(reached[place] >= end for place, end in ends.items() if place in mine)
    return count
