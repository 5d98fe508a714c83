"""Standstills: pipelines that do nothing about inputs that wait, although nothing keeps them from it.

A pipeline of others says nothing about itself, so its progress is seen in the topics. It stands still if for `BOUND_S`
before its inputs end none of its outputs was committed, while inputs waited that were decided before that time. One that
writes and aborts again and again stands still, too. The pipeline is to blame only if nothing else explains it:

* All its instances had been started, and every fault was healed, before that time. A dead member's session lasts 6 s, its
  transaction 10 s, and a worker of Kafka Connect starts for 13 to 52 s. The bound is above the sum of these.
* The machine was fast enough: clients kept a third of the pace that they had before.

Limit: one that goes on in some partitions is not found. The wait for its inputs then makes the run inconclusive.

Free of pyspark.
"""

from __future__ import annotations

from verification.evidence import lso_samples
from verification.evidence.lso_samples import NS, decided
from verification.evidence.pace import PACE_LEAST, pace
from verification.evidence.row_types import Row
from verification.evidence.run_evidence import RunEvidence
from verification.vocabulary.experiment import TopicRole
from verification.vocabulary.history import FaultRecord, Phase, ProcessRecord

BOUND_S = 90.0
#: The role of the instances of a pipeline, and the phases in which its inputs end.
ROLE, LAST_PHASES = "pipeline", ("drain the pipeline", "stop")


def rows(run: RunEvidence) -> list[Row]:
    """What a pipeline did in the last `BOUND_S` before its inputs ended: one row; none without a pipeline or such an end.

    `undisturbed_ms` is the time since the last fault was healed and the last instance was started; `waiting` are the inputs
    that were decided before the bound and not committed at the end; `moved` are the offsets that were decided in outputs
    meanwhile, in each up to the last one that is committed; `pace` is that of clients, divided by theirs before; None where
    they had done nothing. `topic_index`, `partition` and `offset` are the next input of the first partition in which inputs
    wait; None where none waits.
    """
    ended_ns = min((each.began_ns for each in run.history.of(Phase) if each.name in LAST_PHASES), default=None)
    if run.experiment.pipeline is None or ended_ns is None:
        return []
    from_ns = ended_ns - round(BOUND_S * NS)
    inputs = tuple(
        (index, at)
        for index, each in enumerate(run.experiment.topics)
        if each.role is TopicRole.INPUT
        for at in range(each.partitions)
    )
    committed = {(each.topic, each.partition): max(0, each.offset) for each in run.captures.group_offsets}
    next_of = {at: committed.get((run.experiment.topics[at[0]].name, at[1]), 0) for at in inputs}
    waiting = {at: decided(run, at, from_ns) - offset for at, offset in next_of.items()}
    first = next((at for at, count in waiting.items() if count > 0), None)
    return [
        {
            "run": run.run,
            "undisturbed_ms": (ended_ns - _disturbed_ns(run, ended_ns)) // 1_000_000,
            "waiting": sum(max(0, each) for each in waiting.values()),
            "moved": _moved(run, from_ns, ended_ns),
            "pace": pace(run, from_ns, ended_ns, before_ns=from_ns),
            "topic_index": None if first is None else first[0],
            "partition": None if first is None else first[1],
            "offset": None if first is None else next_of[first],
            "instances": sum(each.role == ROLE and each.ended_ns >= ended_ns for each in run.history.of(ProcessRecord)),
        }
    ]


def _moved(run: RunEvidence, from_ns: int, ended_ns: int) -> int:
    """The committed offsets are looked at only if any were decided: that reads all records of the outputs."""
    before = {at: decided(run, at, from_ns) for at in lso_samples.outputs(run)}
    moved = {at: end for at in before if (end := decided(run, at, ended_ns)) > before[at]}
    committed = run.capture_reader.last_offsets("committed") if moved else {}
    return sum(max(0, min(end, committed.get(at, -1) + 1) - before[at]) for at, end in moved.items())


def excuse(row: Row) -> str:
    """Why a pipeline does not stand still, or is not to blame for it; empty if it does and is."""
    if row["moved"]:
        return "its outputs moved"
    if not row["waiting"]:
        return "no input waited"
    if row["undisturbed_ms"] < BOUND_S * 1_000:
        return f"the last fault was healed, or the last instance started, within {BOUND_S:g} s"
    if row["pace"] is None or row["pace"] < PACE_LEAST:
        return "clients were too slow at that time: the machine may have been"
    return ""


def described(row: Row) -> str:
    """A standstill in words."""
    ran = f"{row['instances']} instance{'' if row['instances'] == 1 else 's'} ran"
    undisturbed_s = row["undisturbed_ms"] / 1_000
    return (
        f"for the last {BOUND_S:g} s before the inputs ended no output was committed, though {row['waiting']} offsets of"
        f" committed inputs had waited for as long; {ran}, and the last fault or start was {undisturbed_s:.0f} s before"
    )


def _disturbed_ns(run: RunEvidence, ended_ns: int) -> int:
    """When the last fault was healed, or the last instance started; the beginning of the history without either."""
    faults = (each.healed_ns or ended_ns for each in run.history.of(FaultRecord))
    starts = (each.started_ns for each in run.history.of(ProcessRecord) if each.role == ROLE)
    return max((*faults, *starts), default=run.history.anchor_ns)
