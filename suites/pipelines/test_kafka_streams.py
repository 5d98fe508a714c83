"""Kafka Streams: a stateless topology, with each of its two guarantees.

The application is `fixtures/pipelines/streams/OrderCopy.java`. Its transactional id is new at every start, so nothing
fences the transaction of an instance that was killed: it ends by its timeout, and readers wait as long.
"""

from __future__ import annotations

from pathlib import Path

from chaos.faults.pipelines import KillInstance
from chaos.schedule import Step
from fixtures.pipelines.manifest import Pipeline
from fixtures.workloads import PipelineWorkload
from runner.scenarios.scenario import PIPELINE_CLUSTER, PIPELINE_FLOORS, STRUCK, RunScenario, convict, requirement

PARTITIONS = 4
NEWEST = "4.3.1"
#: Longer than the transaction timeout (10 s), so that the second kill meets an instance that works again.
KILLS = tuple(Step(fault=KillInstance("billing-events", PARTITIONS), after_s=after_s, hold_s=1) for after_s in (2, 14))


def order_copy(guarantee: str, *, commit_ms: int) -> PipelineWorkload:
    """Two instances with this guarantee."""
    pipeline = Pipeline(
        name=f"kafka-streams-{NEWEST}-{guarantee.replace('_', '-')}",
        command=(f"{{kafka-streams {NEWEST}}}",),
        directory=Path(__file__).parents[2],
        environment={"ONCEPROOF_GUARANTEE": guarantee, "ONCEPROOF_COMMIT_MS": str(commit_ms)},
    )
    return PipelineWorkload(partitions=PARTITIONS, pipeline=pipeline)


@requirement("GRP-03", "GRP-04", "GRP-19")
def test_streams_exactly_once(run: RunScenario) -> None:
    """Kafka Streams with exactly_once_v2 copies each input exactly once, however often an instance is killed."""
    run(
        cluster=PIPELINE_CLUSTER,
        workload=order_copy("exactly_once_v2", commit_ms=200),
        schedule=KILLS,
        floors=PIPELINE_FLOORS,
    )


@convict("duplicate")
def test_streams_at_least_once(run: RunScenario) -> None:
    """Kafka Streams with at_least_once copies inputs again when an instance is killed between two commits."""
    run(
        cluster=PIPELINE_CLUSTER,
        workload=order_copy("at_least_once", commit_ms=2000),
        schedule=KILLS,
        floors=STRUCK,
    )
