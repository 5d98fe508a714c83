"""Availability figures of each fault: longest gap without a commit, recovery, latencies before, during and after.

A commit is an operation whose client received the answer *committed*, or an acknowledged append where a scenario has no
transactions. Its latency is the time from the request to the answer. It belongs to the period of the request: a commit
that waited for the end of the fault counts as during. A fault lasts from its beginning to its heal. Before is the time
since the previous fault, after is the time up to the next one.

A pipeline reports no commits. There a commit is a look, two of which come in a second, at which more of an output's
partition was decided than before. Each row is that of the partition with the longest gap; nothing is known of latencies.

Limit: if a schedule holds the clients at a sync point, the gap includes that wait. No verdict depends on the figures.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from reports.loading.process_lanes import Clock
from reports.model.report import FaultRow
from reports.model.timeline import NO_WORK, Latency, Period, Unavailability
from verification.coverage.coverage import is_work
from verification.vocabulary.history import Action, FaultRecord, History, Intent, Operation, Outcome, Sample, Told


@dataclass(frozen=True, slots=True, kw_only=True)
class _Commit:
    """`timed` says whether its latency is known."""

    asked_s: float
    done_s: float
    timed: bool = True


def unavailability(
    history: History, faults: Sequence[FaultRow], clock: Clock, outputs: Collection[str] = ()
) -> tuple[Unavailability, ...]:
    """One row per fault, in the order in which they began; none without any commit. `outputs` are those of a pipeline."""
    if outputs:
        return _of_outputs(_decided(history, outputs, clock), faults)
    operations = history.of(Operation)
    commits = sorted(_commits(operations, clock), key=lambda each: each.done_s)
    if not commits:
        return ()
    last_signs = [clock(each.completed_ns or each.decided_ns or each.invoked_ns) for each in operations]
    first_s, last_s = min(clock(each.invoked_ns) for each in operations), max(last_signs)
    return _rows(commits, [first_s, *(each.done_s for each in commits), last_s], faults)


def _decided(history: History, outputs: Collection[str], clock: Clock) -> list[list[_Commit]]:
    """For each partition of a pipeline's outputs the looks at which more was decided than before."""
    highest: dict[tuple[str, int], int] = {}
    found: dict[tuple[str, int], list[_Commit]] = {}
    for each in sorted(history.of(Sample), key=lambda each: each.at_ns):
        place = (each.topic, each.partition)
        rises = found.setdefault(place, []) if each.topic in outputs else None
        if rises is not None and each.last_stable_offset > highest.get(place, 0):
            highest[place] = each.last_stable_offset
            at_s = clock(each.at_ns)
            rises.append(_Commit(asked_s=at_s, done_s=at_s, timed=False))
    return list(found.values())


def _of_outputs(decided: Sequence[Sequence[_Commit]], faults: Sequence[FaultRow]) -> tuple[Unavailability, ...]:
    """For each fault the row of the partition with the longest gap; none if nothing was ever decided."""
    times = [one.done_s for each in decided for one in each]
    if not times:
        return ()
    # A partition in which nothing was ever decided has one gap, which is all the time of the others.
    rows = (_rows(each, [min(times), *(one.done_s for one in each), max(times)], faults) for each in decided)
    return tuple(max(each, key=lambda row: row.gap_s) for each in zip(*rows, strict=True))


def _rows(commits: Sequence[_Commit], edges: Sequence[float], faults: Sequence[FaultRow]) -> tuple[Unavailability, ...]:
    starts = [each.began_s for each in faults]
    return tuple(
        _row(
            fault,
            commits,
            edges,
            since=max((end for each in faults[:place] if (end := each.healed_s) is not None), default=-math.inf),
            until=min(starts[place + 1 :], default=math.inf),
        )
        for place, fault in enumerate(faults)
    )


def _commits(operations: Iterable[Operation], clock: Clock) -> Iterable[_Commit]:
    done = [each for each in operations if each.outcome is Outcome.OK and each.completed_ns is not None]
    transactions = [each for each in done if each.intent is not None and each.told is Told.COMMITTED]
    chosen = transactions or [each for each in done if each.action is Action.APPEND]
    for each in chosen:
        asked_ns = each.invoked_ns if each.decided_ns is None else each.decided_ns
        yield _Commit(asked_s=clock(asked_ns), done_s=clock(each.completed_ns or 0))


def _row(
    fault: FaultRow, commits: Sequence[_Commit], edges: Sequence[float], *, since: float, until: float
) -> Unavailability:
    healed_s = edges[-1] if fault.healed_s is None else fault.healed_s
    overlapping = [(a, b) for a, b in pairwise(edges) if b >= fault.began_s and a <= healed_s]
    began_s, ended_s = max(overlapping, key=lambda gap: gap[1] - gap[0], default=(fault.began_s, fault.began_s))
    after = [each.done_s for each in commits if each.done_s >= healed_s]
    return Unavailability(
        step=fault.step,
        label=fault.description or fault.fault,
        gap_began_s=began_s,
        gap_ended_s=ended_s,
        recovered_s=None if fault.healed_s is None or not after else round(after[0] - healed_s, 3),
        before=_latency(each for each in commits if since <= each.asked_s < fault.began_s),
        during=_latency(each for each in commits if fault.began_s <= each.asked_s < healed_s),
        after=_latency(each for each in commits if healed_s <= each.asked_s < max(until, healed_s)),
    )


def _latency(commits: Iterable[_Commit]) -> Latency:
    found = list(commits)
    known = latency_of([(each.done_s - each.asked_s) * 1_000 for each in found if each.timed])
    return replace(known, count=len(found))


def latency_of(took_ms: Sequence[float]) -> Latency:
    """The quantiles of latencies in milliseconds."""
    if not took_ms:
        return Latency(count=0, p50_ms=None, p99_ms=None)
    # `inclusive` stays within the measured values; one value is both quantiles.
    cuts = statistics.quantiles(took_ms, n=100, method="inclusive") if len(took_ms) > 1 else [*took_ms] * 99
    return Latency(count=len(took_ms), p50_ms=round(cuts[49], 1), p99_ms=round(cuts[98], 1))


def fault_windows_of(operation: Operation, faults: tuple[FaultRecord, ...]) -> list[FaultRecord]:
    """The faults whose window the operation overlapped."""
    end = operation.completed_ns
    return [
        each
        for each in faults
        if (end is None or each.began_ns <= end) and (each.healed_ns is None or each.healed_ns >= operation.invoked_ns)
    ]


def is_acknowledged(operation: Operation) -> bool:
    """Whether the client received the answer that its records are in force: a commit, or a record outside transactions."""
    return operation.outcome is Outcome.OK and operation.intent is not Intent.ABORT and operation.records > 0


def periods(history: History) -> tuple[Period, ...]:
    """Operations by the faults that they met, each in one period; empty without a fault.

    These are the periods of the floors (`verification.coverage`): before the first step, while a fault held, after the last
    heal. What is in none of them is between two faults. The last row has the operations that are no work.
    """
    faults = history.of(FaultRecord)
    if not faults:
        return ()
    began_ns = min((each.step, each.began_ns) for each in faults)[1]
    ends = [each.healed_ns for each in faults]
    last_ns = math.inf if None in ends else max(end for end in ends if end is not None)

    def period_of(operation: Operation) -> str:
        if not is_work(operation):
            return NO_WORK
        if fault_windows_of(operation, faults):
            return "during"
        if (operation.completed_ns or operation.invoked_ns) < began_ns:
            return "before"
        return "after" if operation.invoked_ns > last_ns else "between"

    met: dict[str, list[Operation]] = {name: [] for name in ("before", "during", "between", "after", NO_WORK)}
    for each in history.of(Operation):
        met[period_of(each)].append(each)
    return tuple(
        Period(
            name=name,
            ok=sum(each.outcome is Outcome.OK for each in operations),
            fail=sum(each.outcome is Outcome.FAIL for each in operations),
            info=sum(each.outcome is Outcome.INFO for each in operations),
            acknowledged=sum(map(is_acknowledged, operations)),
        )
        for name, operations in met.items()
        if operations or name not in ("between", NO_WORK)
    )
