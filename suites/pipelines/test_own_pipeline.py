"""A pipeline of the user: `tox -e pipelines -- --manifest my/pipeline.toml` (docs/writing/pipeline.md)."""

from __future__ import annotations

from chaos.faults.pipelines import KillInstance
from chaos.schedule import Step
from fixtures.pipelines.manifest import Pipeline
from fixtures.workloads import PipelineWorkload
from runner.scenarios.scenario import (
    BROKEN_FLOORS,
    PIPELINE_CLUSTER,
    PIPELINE_FLOORS,
    RunScenario,
    own_pipeline,
    requirement,
)
from suites.pipelines.attacks import BROKERS_CRASH, CUT_OFF, OUTPUT, PARTITIONS, PAUSED

KILL = Step(fault=KillInstance(OUTPUT, PARTITIONS), after_s=2, hold_s=1)


def copies(pipeline: Pipeline) -> PipelineWorkload:
    """The user's pipeline at work."""
    return PipelineWorkload(partitions=PARTITIONS, pipeline=pipeline)


@own_pipeline
@requirement("GRP-03", "GRP-04", "GRP-19")
def test_own_pipeline_killed(run: RunScenario, pipeline: Pipeline) -> None:
    """The pipeline copies each input exactly once when its instances are killed."""
    run(cluster=PIPELINE_CLUSTER, workload=copies(pipeline), schedule=(KILL, KILL), floors=PIPELINE_FLOORS)


@own_pipeline
@requirement("GRP-03", "GRP-19", "COORD-04")
def test_own_pipeline_while_brokers_crash(run: RunScenario, pipeline: Pipeline) -> None:
    """The pipeline copies each input exactly once when the coordinator of its group and a leader crash."""
    run(cluster=PIPELINE_CLUSTER, workload=copies(pipeline), schedule=BROKERS_CRASH, floors=BROKEN_FLOORS)


@own_pipeline
@requirement("GRP-04", "GRP-19", "FENCE-02")
def test_own_pipeline_paused_and_cut_off(run: RunScenario, pipeline: Pipeline) -> None:
    """The pipeline copies each input exactly once when an instance is paused past its session, and when all are cut off."""
    # Only another instance can do the work of one that is paused.
    schedule = (*PAUSED, *CUT_OFF) if pipeline.instances > 1 else CUT_OFF
    run(cluster=PIPELINE_CLUSTER, workload=copies(pipeline), schedule=schedule, floors=PIPELINE_FLOORS)
