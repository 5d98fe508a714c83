"""Build the timeline of a history: operations per time bin by outcome, fault windows, phases, and LSO lag.

An operation counts in the bin in which it completed. One that never completed (`info`) counts at its commit or abort
request, else at its start. `init` does not count: it is set-up, not workload. Bins are one second wide, or wider, so
that there are at most BINS_MAX of them: a chart has no room for more.

The lag is high watermark − last stable offset of the worst partition. A partition keeps the lag of its last sample until
the next one, because an unchanged partition is not sampled. While a leader does not answer, its lag is unknown; where
nothing is known the curve has no point, not a zero.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator

from reports.loading import alerts, availability, coordinators, process_lanes
from reports.loading.process_lanes import Clock
from reports.model.clock import instant
from reports.model.report import FaultRow
from reports.model.timeline import Bin, Coordinator, Lag, PhaseWindow, Timeline, Window
from verification.evidence.transaction_log_file import TransactionLog
from verification.vocabulary.history import (
    Action,
    FaultRecord,
    History,
    Operation,
    Outcome,
    Phase,
    ProcessRecord,
    Sample,
)

#: 120 bars of 6 px fill the chart's width; narrower ones are hard to distinguish.
BINS_MAX = 120
#: Widths that are easy to read on an axis, in seconds.
BIN_WIDTHS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600)
NS_PER_S = 1_000_000_000


def _times(history: History) -> Iterator[int]:
    for entry in history.entries:
        if isinstance(entry, Operation):
            yield entry.invoked_ns
            yield _counted_at(entry)
        elif isinstance(entry, Phase | FaultRecord):
            yield entry.began_ns
            if (end := entry.ended_ns if isinstance(entry, Phase) else entry.healed_ns) is not None:
                yield end
        elif isinstance(entry, Sample):
            yield entry.at_ns
        elif isinstance(entry, ProcessRecord):
            yield entry.started_ns


def _counted_at(operation: Operation) -> int:
    return operation.completed_ns or operation.decided_ns or operation.invoked_ns


def origin_ns(history: History) -> int:
    """The zero of a scenario's times: its first entry, or the anchor of an empty history."""
    return min(_times(history), default=history.anchor_ns)


def clock_from(origin: int) -> Clock:
    """A function from a time of the history to seconds since its zero."""
    return lambda at_ns: round((at_ns - origin) / NS_PER_S, 3)


def _seconds(at_ns: int | None, origin: int) -> float | None:
    return None if at_ns is None else round((at_ns - origin) / NS_PER_S, 3)


def fault_rows(history: History) -> tuple[FaultRow, ...]:
    """The steps of the schedule as they happened, in the order in which they began."""
    origin = origin_ns(history)
    records = sorted(history.of(FaultRecord), key=lambda each: (each.began_ns, each.step))
    return tuple(
        FaultRow(
            step=each.step,
            fault=each.fault,
            description=each.description,
            target=each.target,
            began_s=_seconds(each.began_ns, origin) or 0.0,
            confirmed_s=_seconds(each.confirmed_ns, origin),
            healed_s=_seconds(each.healed_ns, origin),
            proof=each.proof or "",
            error=each.error or "",
        )
        for each in records
    )


def _bin_width_s(end_s: float) -> float:
    wide_enough = (width for width in BIN_WIDTHS_S if end_s / width <= BINS_MAX)
    return float(next(wide_enough, max(BIN_WIDTHS_S[-1], end_s / BINS_MAX)))


def _bins(history: History, origin: int, width_s: float) -> tuple[Bin, ...]:
    counts: dict[int, dict[Outcome, int]] = defaultdict(lambda: dict.fromkeys(Outcome, 0))
    for operation in history.of(Operation):
        if operation.action is not Action.INIT:
            place = int((_counted_at(operation) - origin) / NS_PER_S / width_s)
            counts[place][operation.outcome] += 1
    return tuple(
        Bin(at_s=place * width_s, ok=by[Outcome.OK], fail=by[Outcome.FAIL], info=by[Outcome.INFO])
        for place, by in sorted(counts.items())
    )


def _lags(history: History, origin: int, width_s: float) -> tuple[Lag, ...]:
    """The worst lag of each half bin, the resolution of a chart, and the lag at the end."""
    samples = sorted(history.of(Sample), key=lambda each: each.at_ns)
    known: dict[tuple[str, int], int] = {}
    worst: dict[int, int] = {}
    place = 0
    for sample in samples:
        now = int((sample.at_ns - origin) / NS_PER_S / width_s * 2)
        if known:
            # The known lag continues through the bins in between.
            carried = max(known.values())
            worst |= {each: max(worst.get(each, 0), carried) for each in range(place, now + 1)}
        place = now
        if min(sample.high_watermark, sample.last_stable_offset) < 0:
            known.pop((sample.topic, sample.partition), None)
        else:
            known[sample.topic, sample.partition] = max(0, sample.high_watermark - sample.last_stable_offset)
            worst[now] = max(worst.get(now, 0), *known.values())
    points = [Lag(at_s=each * width_s / 2, records=lag) for each, lag in sorted(worst.items())]
    if known:
        points.append(Lag(at_s=_seconds(samples[-1].at_ns, origin) or 0.0, records=max(known.values())))
    return tuple(points)


def _began_us(history: History, origin: int) -> int:
    """The wall clock of the origin in microseconds since 1970, 0 without an anchor in the history."""
    anchor = instant(history.wall_clock_anchor)
    if anchor is None:
        return 0
    return round(anchor.timestamp() * 1_000_000) + (origin - history.anchor_ns) // 1_000


def _coordinators(history: History, log: TransactionLog | None, origin: int, end_s: float) -> tuple[Coordinator, ...]:
    """The coordinators by the wall clock; empty without a transaction log or an anchor in the history."""
    began_us = _began_us(history, origin)
    if log is None or not began_us:
        return ()

    def clock(at_ms: int) -> float:
        return round((at_ms * 1_000 - began_us) / 1_000_000, 3)

    return coordinators.coordinators(history, log, clock, end_s)


def timeline(history: History, log: TransactionLog | None = None, *, outputs: Collection[str] = ()) -> Timeline | None:
    """The timeline of one scenario; None when the history has no times.

    `log` is the transaction log, `outputs` the topics that a pipeline writes.
    """
    times = tuple(_times(history))
    if not times:
        return None
    origin = min(times)
    end_s = max((max(times) - origin) / NS_PER_S, 1.0)
    width_s = _bin_width_s(end_s)
    faults = fault_rows(history)
    clock = clock_from(origin)
    windows = tuple(
        Window(
            step=each.step,
            label=f"{each.step} · {each.description or each.fault}",
            began_s=each.began_s,
            confirmed_s=each.confirmed_s,
            healed_s=each.healed_s,
        )
        for each in faults
    )
    phases = tuple(
        PhaseWindow(
            name=each.name,
            began_s=clock(each.began_ns),
            ended_s=clock(each.ended_ns),
        )
        for each in history.of(Phase)
    )
    return Timeline(
        bin_s=width_s,
        end_s=round(end_s, 3),
        bins=_bins(history, origin, width_s),
        windows=windows,
        phases=phases,
        lags=_lags(history, origin, width_s),
        began_us=_began_us(history, origin),
        lanes=process_lanes.lanes(history, clock),
        curves=process_lanes.curves(history, clock),
        coordinators=_coordinators(history, log, origin, end_s),
        stuck_lsos=process_lanes.stuck_lsos(history),
        settled_s=process_lanes.settled_s(history),
        unavailability=availability.unavailability(history, faults, clock, outputs),
        periods=availability.periods(history),
        alerts=alerts.alerts(history, clock),
    )
