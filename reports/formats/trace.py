"""`trace.json`: every operation, transaction, fault and phase as a trace for Perfetto and chrome://tracing.

The format is the Trace Event Format. A scenario is a process of the trace, and each client process a thread in it. Each
operation is a complete slice (`X`) named by outcome and action. Perfetto colours by name, so equal outcomes have equal
colours; `cname` does the same in chrome://tracing. Each fault step has its own thread, because faults overlap and
slices of one thread must not. Each transactional id has a thread with its unfinished transactions. A counter (`C`)
shows the LSO lag of the worst partition. Times are microseconds since the start of the first scenario, by the wall
clock of each host.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from reports.model.report import Report, ScenarioReport
from reports.model.timeline import Act, Coordinator, Lane, Timeline
from reports.model.wording import one_line, scenario_word

#: Threads of faults and phases come before those of the client processes, whose numbers start at 0.
PHASES, FAULTS, PROCESSES = 1, 10, 1_000
#: Threads of coordinators come after them.
COORDINATORS = 1_000_000
#: The palette of the format: a reserved name per outcome.
_COLOUR = {"ok": "good", "fail": "bad", "info": "terrible"}
Event = dict[str, Any]


def dumps(report: Report) -> str:
    """The text of the file, one event per line for easy comparison; equal reports give equal bytes."""
    lines = (json.dumps(each, ensure_ascii=True, separators=(",", ":")) for each in _events(report))
    return '{"displayTimeUnit":"ms","traceEvents":[\n' + ",\n".join(lines) + "\n]}\n"


def _events(report: Report) -> Iterator[Event]:
    timed = [each for each in (*report.scenarios, *report.controls) if each.timeline is not None]
    zero_us = min((each.timeline.began_us for each in timed if each.timeline and each.timeline.began_us), default=0)
    for pid, scenario in enumerate(timed, start=1):
        yield from _scenario(pid, scenario, zero_us)


def _scenario(pid: int, scenario: ScenarioReport, zero_us: int) -> Iterator[Event]:
    timeline = scenario.timeline
    assert timeline is not None, "only scenarios with a history are drawn"
    at_us = max(timeline.began_us - zero_us, 0)
    yield _meta("process_name", pid, 0, name=f"{one_line(scenario.key)} {scenario_word(scenario)}")
    yield _meta("process_sort_index", pid, 0, sort_index=pid)
    yield _meta("thread_name", pid, PHASES, name="phases")
    for phase in timeline.phases:
        yield _slice(pid, PHASES, at_us, phase.began_s, phase.ended_s, name=one_line(phase.name), cat="phase")
    yield from _faults(pid, timeline, at_us)
    for lane in timeline.lanes:
        yield from _lane(pid, lane, at_us)
    yield from _coordinators(pid, timeline.coordinators, at_us)
    for lag in timeline.lags:
        args = {"records": lag.records}
        yield {"ph": "C", "pid": pid, "tid": 0, "ts": at_us + _us(lag.at_s), "name": "LSO lag", "args": args}


def _faults(pid: int, timeline: Timeline, at_us: int) -> Iterator[Event]:
    for place, window in enumerate(timeline.windows):
        tid = FAULTS + place
        yield _meta("thread_name", pid, tid, name=f"fault step {window.step}")
        healed_s = timeline.end_s if window.healed_s is None else window.healed_s
        args = {"confirmed_s": window.confirmed_s, "healed_s": window.healed_s}
        name = one_line(window.label)
        yield _slice(pid, tid, at_us, window.began_s, healed_s, name=name, cat="fault", args=args)


def _coordinators(pid: int, coordinators: tuple[Coordinator, ...], at_us: int) -> Iterator[Event]:
    all_ids = ((of, each) for of in coordinators for each in of.ids)
    for tid, (of, each) in enumerate(all_ids, start=COORDINATORS):
        yield _meta("thread_name", pid, tid, name=f"coordinator {of.partition} of id {one_line(each.transactional_id)}")
        yield _meta("thread_sort_index", pid, tid, sort_index=tid)
        for one in each.spans:
            yield _slice(pid, tid, at_us, one.began_s, one.ended_s, name=one.state, cat="coordinator")


def _lane(pid: int, lane: Lane, at_us: int) -> Iterator[Event]:
    tid = PROCESSES + lane.process
    yield _meta("thread_name", pid, tid, name=f"{one_line(lane.role)} {lane.process}")
    yield _meta("thread_sort_index", pid, tid, sort_index=tid)
    free_us = 0
    for act in lane.acts:
        event = _act(pid, tid, at_us, act)
        # Rounding may let a slice begin a microsecond before its predecessor ends; slices of a thread must not overlap.
        event["ts"] = max(event["ts"], free_us)
        free_us = event["ts"] + event["dur"]
        yield event


def _act(pid: int, tid: int, at_us: int, act: Act) -> Event:
    args: Event = {"operation": act.operation, "told": act.told, "error": one_line(act.error)}
    if act.decided_s is not None:
        args["decided_after_us"] = _us(act.decided_s) - _us(act.began_s)
    name = f"{act.outcome} {act.action}"
    event = _slice(pid, tid, at_us, act.began_s, act.ended_s, name=name, cat="operation", args=args)
    return {**event, "cname": _COLOUR.get(act.outcome, "grey")}


def _meta(kind: str, pid: int, tid: int, **args: object) -> Event:
    return {"ph": "M", "pid": pid, "tid": tid, "ts": 0, "name": kind, "args": args}


def _slice(
    pid: int,
    tid: int,
    at_us: int,
    began_s: float,
    ended_s: float,
    *,
    name: str,
    cat: str,
    args: Event | None = None,
) -> Event:
    return {
        "ph": "X",
        "pid": pid,
        "tid": tid,
        "ts": at_us + _us(began_s),
        "dur": max(_us(ended_s) - _us(began_s), 0),
        "name": name or cat,
        "cat": cat,
        "args": args or {},
    }


def _us(at_s: float) -> int:
    return round(at_s * 1_000_000)
