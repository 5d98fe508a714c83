"""A pipeline of the user: `tox -e pipelines -- --manifest my/pipeline.toml` (docs/writing/pipeline.md)."""

from __future__ import annotations

from chaos.faults.brokers import CrashBroker
from chaos.faults.pipelines import KillInstance
from chaos.schedule import Step
from chaos.targets import GroupCoordinator
from fixtures.pipelines.manifest import Pipeline
from fixtures.workloads import PipelineWorkload
from runner.scenarios.scenario import PIPELINE_CLUSTER, PIPELINE_FLOORS, RunScenario, own_pipeline, requirement

PARTITIONS = 4
KILL = Step(fault=KillInstance("billing-events", PARTITIONS), after_s=2, hold_s=1)


@own_pipeline
@requirement("GRP-03", "GRP-04", "GRP-19")
def test_own_pipeline(run: RunScenario, pipeline: Pipeline) -> None:
    """The pipeline copies each input exactly once, when its instances are killed and its group's coordinator crashes."""
    run(
        cluster=PIPELINE_CLUSTER,
        workload=PipelineWorkload(partitions=PARTITIONS, pipeline=pipeline),
        schedule=(KILL, KILL, Step(fault=CrashBroker(GroupCoordinator()), after_s=2, hold_s=3)),
        floors=PIPELINE_FLOORS,
    )
