"""Exposure: whether the faults of a run met what its claim is about, counted from the evidence.

That a fault took hold is not enough. A broker may be killed at a moment at which nobody commits; a client may be cut
off between two transactions; the work after a fault may be that of clients which nothing had struck. Each measure here
counts what shows the opposite, and a scenario that claims it has a floor for it (`verification.coverage.coverage`).

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
from verification.vocabulary.experiment import Isolation
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
#: Answers by which a group refuses a member that it has gone on without: ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID,
#: REBALANCE_IN_PROGRESS, FENCED_INSTANCE_ID (KIP-447); the java client has one exception without a code for them.
REFUSED_MEMBER = frozenset({22, 25, 27, 82})
REFUSED_MEMBER_NAME = "CommitFailedException"
#: An operation of any workload ends within a fraction of this when nothing is in its way.
HELD_UP_S = 2.0


def transactional(operation: Operation) -> bool:
    """Whether an operation is a transaction, or a copy in one."""
    return operation.action is Action.TRANSACTION or (
        operation.action is Action.COPY and operation.transactional_id is not None
    )


def last_heal_ns(evidence: RunEvidence) -> int | None:
    """When the last fault was healed; 0 for a run without faults, None when one never was."""
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
    """Transactions after the faults, of that struck client, or its successor, which ended the fewest; 0 without any."""
    owner = {each.process: each.transactional_id for each in evidence.history.of(ProcessRecord)}
    struck = {owner.get(process) for each in evidence.history.of(FaultRecord) for process in each.processes} - {None}
    done = [each.transactional_id for each in _done_after(evidence)]
    return min((done.count(each) for each in struck), default=0)


def copied_past(evidence: RunEvidence) -> int:
    """Input partitions of which the group committed more than any copier had taken up when the last fault was healed.

    What had been taken up by then, also by who was killed or refused, was taken over and gone past. How much more there
    was to read is a question of pace: a slow copier never reaches what a fast feeder wrote meanwhile.
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
    """Copies that were refused because the group had gone on without the member."""
    return sum(
        1
        for each in evidence.history.of(Operation)
        if each.action is Action.COPY and (each.error_code in REFUSED_MEMBER or each.error_name == REFUSED_MEMBER_NAME)
    )


def lso_stood(evidence: RunEvidence) -> int:
    """Partitions whose LSO stood for half a transaction timeout or more at what a killed client had left open."""
    least_s = evidence.experiment.transaction_timeout_s / 2
    killed = lso_samples.abandoned_ns(evidence)
    return sum(
        any(lso_samples.stood_s(evidence, place, each) >= least_s for each in killed)
        for place in lso_samples.outputs(evidence)
    )


def undecided_at_strike(evidence: RunEvidence) -> int:
    """Commits and aborts that had been asked for before a fault struck and were not answered when it was in force.

    What was asked for later may never have reached a broker; without `struck_ns` (older evidence) it counts as well.
    """
    blows = [
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
            for struck, applied in blows
        )
    )


def _proven_leaderless_ns(evidence: RunEvidence, place: lso_samples.Place, seen_ns: int) -> int:
    """From when on a partition that was seen without a leader had none: since the proof of the fault that still stood."""
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
    """From the first look that saw a partition without a leader, or the proof of it, to the last one."""
    for place in lso_samples.outputs(evidence):
        for each in lso_samples.leaderless(evidence, place):
            yield _proven_leaderless_ns(evidence, place, each.first_ns), each.last_ns


def committed_while_leaderless(evidence: RunEvidence) -> int:
    """Commits that were asked for and answered ok while a partition had no leader."""
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


def held_up(evidence: RunEvidence) -> int:
    """Operations that could not end while a fault stood: under way for its last `HELD_UP_S` and until it was healed."""
    windows = [
        (each.confirmed_ns, each.healed_ns)
        for each in evidence.history.of(FaultRecord)
        if each.confirmed_ns is not None and each.healed_ns is not None
    ]
    return sum(
        1
        for each in evidence.history.of(Operation)
        if each.action is not Action.INIT
        and any(
            max(each.invoked_ns, confirmed) <= healed - HELD_UP_S * NS
            and (each.completed_ns is None or each.completed_ns >= healed)
            for confirmed, healed in windows
        )
    )


def _polls(path: Path) -> Iterator[tuple[int, list[Any]]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            body = json.loads(line)
            yield body["received_ns"], body["records"]


def observed(evidence: RunEvidence) -> int:
    """Records that live observers were given."""
    return sum(len(records) for path in evidence.observations.values() for _, records in _polls(path))


def observed_during(evidence: RunEvidence) -> int:
    """Records that live observers were given while a fault was seen to stand.

    Of a fault that names the partitions that it was aimed at, only theirs: others have leaders that it does not concern.
    """
    count, faults = 0, evidence.history.of(FaultRecord)
    for path in evidence.observations.values():
        for at_ns, records in _polls(path):
            aims = [set(each.partitions) for each in faults if _stood(each, at_ns)]
            if aims and all(aims):
                struck = set[str]().union(*aims)
                count += sum(f"{evidence.topic(index)}-{partition}" in struck for index, partition, *_ in records)
            elif aims:
                count += len(records)
    return count


def _stood(fault: FaultRecord, at_ns: int) -> bool:
    """Whether a fault was seen to stand at a moment."""
    return (
        fault.confirmed_ns is not None
        and fault.healed_ns is not None
        and fault.confirmed_ns <= at_ns <= fault.healed_ns
    )


def observers_at_end(evidence: RunEvidence) -> int:
    """Live observers that were given the last record of every partition which a reader of their isolation can see."""
    mine = set(lso_samples.outputs(evidence))
    # Of evidence elsewhere each answer is a job, and observers are many.
    ends_of = cache(evidence.captured.last_offsets)
    count = 0
    for observer in evidence.experiment.observers:
        reached: dict[lso_samples.Place, int] = defaultdict(lambda: -1)
        for _, records in _polls(evidence.observations[observer.name]):
            for topic_index, partition, offset, _text in records:
                place = (topic_index, partition)
                reached[place] = max(reached[place], offset)
        everything = observer.isolation is Isolation.UNCOMMITTED and evidence.experiment.has_log
        ends = ends_of("uncommitted" if everything else "committed")
        count += all(reached[place] >= end for place, end in ends.items() if place in mine)
    return count
