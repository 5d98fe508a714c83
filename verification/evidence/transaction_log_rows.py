"""The transaction log of a run as one row, with the times in which an append may have failed, or nothing was disturbed.

In an upgrade the row also has what leaders stated, and how the operations of transactional producers ended.

The history gives the first time: from the first fault, less the time that a coordinator waits for replicas, until every
replica was in sync again. The brokers' clocks date the records. Where those may differ from the clock of this machine,
the append of any record may have failed, and no time is known to be undisturbed.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from verification.vocabulary.history import Action, FaultRecord, Operation, Outcome, Phase, Sample

if TYPE_CHECKING:
    from verification.evidence.row_types import Row
    from verification.evidence.run_evidence import RunEvidence

#: The phase at whose end every replica is in sync again.
RECOVERY = "await recovery"
#: The phase at whose beginning the log is read.
CAPTURE = "capture"
#: Runtimes whose brokers share this machine's clock.
SHARED_CLOCK = frozenset({"local", "docker"})
#: A coordinator waits for replicas as long as the transaction's timeout; this is Kafka's default.
TIMEOUT_S = 60.0
EVER = (0, 1 << 62)
NS_PER_MS = 1_000_000
#: At most so many ids are named where records are missing.
MISSING_MAX = 4

Window = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The end of an operation of a transactional producer, and its time in wall-clock milliseconds."""

    process: int
    operation: int
    transactional_id: str
    began_ms: int
    ended_ms: int
    failed: bool
    error_code: int | None = None


#: When a leader was asked (wall-clock milliseconds), and its last stable offset and high watermark.
Look = tuple[int, int, int]


def rows(run: RunEvidence) -> list[Row]:
    """The transaction log as one row; no row where the log is missing or could not be read."""
    log = run.transaction_log
    if log is None or log.header.unavailable:
        return []
    undisturbed = undisturbed_ms(run)
    looks = _looks_ms(run) if undisturbed else {}
    return [
        {
            "run": run.run,
            "log": log,
            "failing_ms": failing_ms(run),
            "undisturbed_ms": undisturbed,
            "looks_ms": looks,
            "answers": _answers(run) if undisturbed else (),
        }
    ]


def unjudged(run: RunEvidence) -> str | None:
    """Why the transaction log of a run was not judged; empty when it was, None when no client used transactions.

    An id with a producer id has at least one record, which compaction keeps. So an id without a record was not read.
    """
    operations = run.history.of(Operation)
    used = {each.transactional_id for each in operations if each.transactional_id is not None}
    if not used:
        return None
    log = run.transaction_log
    if log is None:
        return "this evidence has no transaction log"
    if log.header.unavailable:
        return log.header.unavailable
    written = {each.transactional_id for each in log.entries}
    if not used & written:
        return "the transaction log has nothing of this run"
    missing = sorted({each.transactional_id or "" for each in operations if _initialised(each)} - written)
    if missing:
        shown = ", ".join(missing[:MISSING_MAX]) + (" and others" if len(missing) > MISSING_MAX else "")
        return f"the transaction log has nothing of {shown}, whose initialisation ended ok"
    return ""


def _initialised(operation: Operation) -> bool:
    """Whether a coordinator has confirmed that it knows the transactional id."""
    ended_ok = operation.action is Action.INIT and operation.outcome is Outcome.OK
    return ended_ok and operation.transactional_id is not None


def wall_clock_ns(run: RunEvidence) -> int | None:
    """The wall clock at time 0 of the run, to date the brokers' records; None where brokers may have another clock."""
    if run.experiment.runtime not in SHARED_CLOCK:
        return None
    try:
        anchor = datetime.fromisoformat(run.history.wall_clock_anchor)
    except ValueError:
        return None
    return round(anchor.timestamp() * 1_000_000) * 1_000 - run.history.anchor_ns


def failing_ms(run: RunEvidence) -> Window | None:
    """The window (wall-clock milliseconds) in which the append of a record may have failed; None for never."""
    faults = run.history.of(FaultRecord)
    if not faults:
        return None
    zero_ns = wall_clock_ns(run)
    if zero_ns is None:
        return EVER
    recovered = [each.ended_ns for each in run.history.of(Phase) if each.name == RECOVERY and not each.note]
    waited_ms = int((run.experiment.transaction_timeout_s or TIMEOUT_S) * 1000)
    from_ms = (zero_ns + min(each.began_ns for each in faults)) // NS_PER_MS - waited_ms
    return (from_ms, (zero_ns + max(recovered)) // NS_PER_MS if recovered else EVER[1])


def undisturbed_ms(run: RunEvidence) -> tuple[Window, ...]:
    """The windows (wall-clock milliseconds) of an upgrade in which every node was up; none in other runs.

    An operation is over once it is confirmed. After a fault nodes may still be starting: its time ends where the next step
    begins, or where every replica is in sync again.
    """
    zero_ns = wall_clock_ns(run)
    phases = run.history.of(Phase)
    if not run.experiment.nodes or zero_ns is None or not phases:
        return ()
    steps = sorted(run.history.of(FaultRecord), key=lambda each: each.began_ns)
    end_ns = max(each.began_ns if each.name == CAPTURE else each.ended_ns for each in phases)
    recovered_ns = next((each.ended_ns for each in phases if each.name == RECOVERY), end_ns)
    begins = [each.began_ns if each.struck_ns is None else each.struck_ns for each in steps]
    nexts = [*(each.began_ns for each in steps[1:]), recovered_ns]
    overs = [_over_ns(each) or following for each, following in zip(steps, nexts, strict=True)]
    windows = zip((phases[0].began_ns, *overs), (*begins, end_ns), strict=True)
    return tuple(((zero_ns + began) // NS_PER_MS, (zero_ns + ended) // NS_PER_MS) for began, ended in windows)


def _looks_ms(run: RunEvidence) -> dict[str, list[Look]]:
    """By partition, such as `orders-0`, what leaders stated, in order of time."""
    zero_ns = wall_clock_ns(run) or 0
    found: dict[str, list[Look]] = defaultdict(list)
    for each in sorted(run.history.of(Sample), key=lambda each: each.at_ns):
        if min(each.high_watermark, each.last_stable_offset) >= 0:
            look = ((zero_ns + each.at_ns) // NS_PER_MS, each.last_stable_offset, each.high_watermark)
            found[f"{each.topic}-{each.partition}"].append(look)
    return dict(found)


def _answers(run: RunEvidence) -> tuple[Answer, ...]:
    """Every operation of a transactional producer that ended, but for initialisations, in order of process and number."""
    zero_ns = wall_clock_ns(run) or 0
    ended = (
        Answer(
            process=each.process,
            operation=each.operation,
            transactional_id=each.transactional_id,
            began_ms=(zero_ns + each.invoked_ns) // NS_PER_MS,
            ended_ms=(zero_ns + each.completed_ns) // NS_PER_MS,
            failed=each.outcome is Outcome.FAIL,
            error_code=each.error_code,
        )
        for each in run.history.of(Operation)
        if each.transactional_id is not None and each.action is not Action.INIT and each.completed_ns is not None
    )
    return tuple(sorted(ended, key=lambda each: (each.process, each.operation)))


def _over_ns(step: FaultRecord) -> int | None:
    """When an operation was over; None for a fault, and for an operation that was not confirmed."""
    return step.confirmed_ns if step.confirmed_ns == step.healed_ns else None
