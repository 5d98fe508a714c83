"""Flink's Kafka sink with each of its guarantees, killed and cut off.

The job is `fixtures/pipelines/flink/OrderJob.java`. The exactly-once sink flushes its transaction when a checkpoint begins,
and commits it when the checkpoint is complete. A successor begins at the newest checkpoint: it commits the transactions that
are in it, and aborts later ones. It can do so only within the transaction timeout, after which the coordinator has aborted
them; Flink's documentation asks for a timeout that is longer than the longest checkpoint and restart.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from chaos.faults.pipelines import KillInstance
from chaos.schedule import Step
from fixtures.pipelines.manifest import Pipeline
from fixtures.workloads import PipelineWorkload
from runner.scenarios.scenario import (
    BROKEN_FLOORS,
    PIPELINE_CLUSTER,
    PIPELINE_FLOORS,
    RunScenario,
    convict,
    nightly,
    requirement,
)
from suites.pipelines.attacks import (
    ANSWERS_LATE,
    ANSWERS_LOST,
    BROKERS_FAIL,
    CUT_OFF,
    KILLS,
    OUTPUT,
    PARTITIONS,
    WORKED,
)

NEWEST = "2.2.1"
#: Longer than a job is away: with another run on the same processors it wrote 28 s after its start. The sink's default is an
#: hour.
TIMEOUT_S = 60.0
#: A job that was killed 14 s after another one had not begun to write: only records that its predecessor left open waited.
KILLS_AT_WORK = (KILLS[0], Step(fault=KillInstance(OUTPUT, PARTITIONS, worked_s=0.2), after_s=2, hold_s=1))
#: Without transactions nothing shows when a job writes again. At a load of 30 two kills 14 s apart met no work.
KILLS_APART = (KILLS[0], *(replace(KILLS[0], after_s=30) for _ in range(2)))


def order_job(delivery: str) -> PipelineWorkload:
    """One process, which is a whole Flink cluster."""
    pipeline = Pipeline(
        name=f"flink-streaming-java-{NEWEST}-{delivery.lower().replace('_', '-')}",
        command=(f"{{flink-streaming-java {NEWEST}}}",),
        directory=Path(__file__).parents[2],
        environment={"ONCEPROOF_DELIVERY": delivery, "ONCEPROOF_COMMIT_MS": "1000"},
        instances=1,
    )
    return PipelineWorkload(partitions=PARTITIONS, pipeline=pipeline, transaction_timeout_s=TIMEOUT_S)


@nightly
@requirement("GRP-03", "GRP-19")
def test_flink_exactly_once(run: RunScenario) -> None:
    """A Flink job with the exactly-once sink copies each input exactly once, however often it is killed."""
    run(cluster=PIPELINE_CLUSTER, workload=order_job("EXACTLY_ONCE"), schedule=KILLS_AT_WORK, floors=PIPELINE_FLOORS)


@nightly
@requirement("GRP-03", "GRP-19", "COORD-04", "TXN-25")
def test_flink_while_brokers_and_the_network_fail(run: RunScenario) -> None:
    """A Flink job with the exactly-once sink copies each input once, though its network fails and brokers crash."""
    schedule = (*CUT_OFF, ANSWERS_LOST, ANSWERS_LATE, *BROKERS_FAIL)
    run(cluster=PIPELINE_CLUSTER, workload=order_job("EXACTLY_ONCE"), schedule=schedule, floors=BROKEN_FLOORS)


@nightly
@convict("duplicate")
def test_flink_at_least_once(run: RunScenario) -> None:
    """A Flink job with the at-least-once sink copies inputs again when it is killed before its checkpoint is complete."""
    run(cluster=PIPELINE_CLUSTER, workload=order_job("AT_LEAST_ONCE"), schedule=KILLS_APART, floors=WORKED)
