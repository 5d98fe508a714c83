"""Planted histories of a pipeline that commits nothing: its own fault, or that of something else."""

from __future__ import annotations

from typing import Any

from tests.support.planted.busy import Found, found
from tests.support.planted.copies import COPIED, IN, OUT
from tests.support.planted.histories import Plant, Planted
from verification.evidence.stalls.standstills import BOUND_S
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.history import Intent, Phase, ProcessRecord, Sample

S = 1_000_000_000
#: A client writes one input every ten seconds, four of them before the bound.
EVERY_S, BEFORE, SINCE = 10, 4, int(BOUND_S) // 10
#: The start of a transactional client is one operation more before the bound.
STARTED = BEFORE / (BEFORE + 1)


def row_of(run: str = "planted", **over: Any) -> dict[str, Any]:
    """The row of a pipeline that stood still from its start on, next to a client that went on."""
    return {
        "run": run,
        "undisturbed_ms": round(BOUND_S + BEFORE * EVERY_S) * 1_000,
        "waiting": BEFORE,
        "moved": 0,
        "pace": 1.0,
        "topic_index": IN,
        "partition": 0,
        "offset": 0,
        "instances": 1,
        **over,
    }


def _standing(run: str, *, started_s: int = 0, goes_on: bool = True, decision: str = "") -> Planted:
    """An instance that is started at a time, and inputs; without `goes_on` none in the bound.

    With a decision the output of the first input is written within the bound, in a transaction that ends so; if it ends in
    an abort, again and again.
    """
    planted = Planted(run=run, topics=(COPIED[IN], COPIED[OUT]), fan_out=1, pipeline=0, order_claimed=False)
    began_ns = planted.now
    instance, feeder = planted.client(), planted.client()
    copier = planted.client("copier") if decision else None
    for number in range(BEFORE + SINCE):
        planted.now = began_ns + number * EVERY_S * S
        if goes_on or number < BEFORE:
            planted.plain(feeder, ((IN, 0),))
            planted.entries.append(_sample(planted, IN, len(planted.log[IN, 0])))
        if copier is not None and decision and number > BEFORE:
            planted.transaction(copier, ((OUT, 0),), intent=Intent(decision), decision=decision, sources=[(0, 0)])
            planted.entries.append(_sample(planted, OUT, len(planted.log[OUT, 0])))
            decision = decision if decision == Intent.ABORT else ""
    planted.now = ended_ns = began_ns + (BEFORE + SINCE) * EVERY_S * S
    planted.entries += [
        Phase(name="stop", began_ns=ended_ns, ended_ns=ended_ns),
        ProcessRecord(
            process=instance.process,
            role="pipeline",
            client="orders",
            site="pipeline",
            started_ns=began_ns + started_s * S,
            ended_ns=ended_ns,
            end="stopped",
        ),
    ]
    return planted


def _sample(planted: Planted, topic: int, end: int) -> Sample:
    return Sample(
        at_ns=planted.tick(),
        topic=planted.topics[topic].name,
        partition=0,
        leader=1,
        high_watermark=end,
        last_stable_offset=end,
    )


def _done(planted: Planted, **over: Any) -> Plant:
    plant = planted.finish()
    plant.rows["standstills"] = [row_of(planted.run, **over)]
    return plant


def stalled(run: str) -> tuple[Plant, set[Found]]:
    """Nothing kept it from its inputs."""
    return _done(_standing(run)), {found(str(Anomaly.NO_PROGRESS), None, topic_index=IN, partition=0, offset=0)}


def stalled_with_its_clients(run: str) -> tuple[Plant, set[Found]]:
    """Clients did nothing either, so the machine may have been too slow."""
    return _done(_standing(run, goes_on=False), pace=0.0), set()


def stalled_after_a_start(run: str) -> tuple[Plant, set[Found]]:
    """An instance was started within the bound."""
    return _done(_standing(run, started_s=BEFORE * EVERY_S + 1), undisturbed_ms=round(BOUND_S - 1) * 1_000), set()


def stalled_without_inputs(run: str) -> tuple[Plant, set[Found]]:
    """All inputs that came before the bound are committed, and their outputs are there."""
    planted = _standing(run)
    planted.transaction(planted.client("copier"), ((OUT, 0),) * BEFORE, sources=[(0, at) for at in range(BEFORE)])
    plant = _done(planted, waiting=0, topic_index=None, partition=None, offset=None)
    plant.rows["group_offsets"].append({"run": run, "topic_index": IN, "partition": 0, "offset": BEFORE})
    return plant, set()


def stalled_until_late(run: str) -> tuple[Plant, set[Found]]:
    """Some output was committed within the bound."""
    plant = _done(
        _standing(run, decision=Intent.COMMIT),
        moved=1,
        waiting=BEFORE - 1,
        offset=1,
        pace=(SINCE + 1) / SINCE * STARTED,
    )
    plant.rows["group_offsets"].append({"run": run, "topic_index": IN, "partition": 0, "offset": 1})
    return plant, set()


def stalled_by_aborts(run: str) -> tuple[Plant, set[Found]]:
    """Within the bound an output was written again and again, and each was aborted."""
    return _done(_standing(run, decision=Intent.ABORT), pace=(2 * SINCE - 1) / SINCE * STARTED), stalled(run)[1]
