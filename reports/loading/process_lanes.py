"""Build one lane per process and one curve per partition from a history.

A process is single-threaded, so its operations follow each other. An operation that never completed is drawn until the
next sign of its process, because its end is unknown. The run prefix of topics is left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from reports.model.timeline import Act, Curve, Lane, Point, StuckLso
from verification.vocabulary.history import History, Operation, ProcessRecord, Sample, Settled

#: Begins the names of the brokers' own topics.
INTERNAL = "__"

Clock = Callable[[int], float]


def lanes(history: History, clock: Clock) -> tuple[Lane, ...]:
    """Every process of the history by number; without its record, as in a truncated history, only its operations."""
    operations: dict[int, list[Operation]] = defaultdict(list)
    for operation in history.of(Operation):
        operations[operation.process].append(operation)
    records = {each.process: each for each in history.of(ProcessRecord)}
    return tuple(
        _lane(process, records.get(process), operations.get(process, []), clock)
        for process in sorted(records.keys() | operations.keys())
    )


def _lane(process: int, record: ProcessRecord | None, operations: list[Operation], clock: Clock) -> Lane:
    ordered = sorted(operations, key=lambda each: each.invoked_ns)
    last_ns = max((_last_sign_ns(each) for each in ordered), default=0)
    ended_ns = max(last_ns, record.ended_ns if record else 0)
    following = [*(each.invoked_ns for each in ordered[1:]), ended_ns]
    acts = (
        tuple(_act(each, next_ns, clock) for each, next_ns in zip(ordered, following, strict=True)) if ordered else ()
    )
    return Lane(
        process=process,
        role=record.role if record else "process",
        began_s=clock(record.started_ns if record else ordered[0].invoked_ns),
        ended_s=clock(ended_ns),
        acts=acts,
    )


def _last_sign_ns(operation: Operation) -> int:
    return operation.completed_ns or operation.decided_ns or operation.invoked_ns


def _act(operation: Operation, next_ns: int, clock: Clock) -> Act:
    ended_ns = operation.completed_ns if operation.completed_ns is not None else max(next_ns, _last_sign_ns(operation))
    return Act(
        operation=operation.operation,
        action=str(operation.action),
        outcome=str(operation.outcome),
        began_s=clock(operation.invoked_ns),
        decided_s=None if operation.decided_ns is None else clock(operation.decided_ns),
        ended_s=clock(ended_ns),
        told=str(operation.told) if operation.intent is not None else "",
        error=operation.error_name or "",
    )


def curves(history: History, clock: Clock) -> tuple[Curve, ...]:
    """Every sampled partition, by topic and number; without those of coordinators, which have no ends."""
    points: dict[tuple[str, int], list[Point]] = defaultdict(list)
    for sample in history.of(Sample):
        if sample.topic.startswith(INTERNAL):
            continue
        points[sample.topic, sample.partition].append(
            Point(
                at_s=clock(sample.at_ns),
                leader=sample.leader,
                high_watermark=sample.high_watermark,
                last_stable_offset=sample.last_stable_offset,
            )
        )
    return tuple(
        Curve(topic=short(topic, history), partition=partition, points=tuple(sorted(each, key=lambda one: one.at_s)))
        for (topic, partition), each in sorted(points.items())
    )


def short(topic: str, history: History) -> str:
    """The name of a topic without the run prefix."""
    return topic.removeprefix(f"{history.run}-") or topic


def stuck_lsos(history: History) -> tuple[StuckLso, ...]:
    """The partitions whose last stable offset stayed below the high watermark at the end of the run."""
    fenced = {(each.topic, each.partition): each for each in history.of(Settled) if not each.before_fencing}
    stuck = (each for each in history.of(Settled) if each.before_fencing and _is_stuck(each))
    return tuple(
        StuckLso(
            place=f"{short(each.topic, history)}-{each.partition}",
            waited_s=each.waited_s,
            bound_s=each.bound_s,
            high_watermark=each.high_watermark,
            last_stable_offset=each.last_stable_offset,
            released=(after := fenced.get((each.topic, each.partition))) is not None and not _is_stuck(after),
        )
        for each in stuck
    )


def settled_s(history: History) -> float | None:
    """The time that the slowest partition took until its last stable offset reached its high watermark."""
    waited = [each.waited_s for each in history.of(Settled) if each.before_fencing and not _is_stuck(each)]
    return max(waited, default=None)


def _is_stuck(settled: Settled) -> bool:
    return settled.last_stable_offset < settled.high_watermark
