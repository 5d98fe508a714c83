"""A pipeline of the user: `tox -e pipelines -- --manifest my/pipeline.toml` (docs/writing/pipeline.md)."""

from __future__ import annotations

from chaos.faults.pipelines import KillInstance
from chaos.schedule import Schedule, Step
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
from suites.pipelines.attacks import BROKERS_FAIL, CUT_OFF, OUTPUT, PARTITIONS, PAUSED
from verification.vocabulary.experiment import AT_LEAST_ONCE, Floor

OF_TRANSACTIONS = ("interrupted_copies", "met_work")
#: Of a pipeline that writes to no topic nothing is observed and no transaction is seen: its effects are rows of a database.
OF_TOPICS = ("observers_at_end", *OF_TRANSACTIONS)


def kills(pipeline: Pipeline) -> Schedule:
    """Two kills, in a transaction where there may be one."""
    partitions = PARTITIONS if pipeline.outputs else 0
    return (Step(fault=KillInstance(OUTPUT, partitions), after_s=2, hold_s=1),) * 2


def floors(pipeline: Pipeline, all_floors: tuple[Floor, ...]) -> tuple[Floor, ...]:
    """The floors that such a pipeline can meet; if it names its state, that must be read."""
    kept = (Floor(name="kept_counts", need=1),) if pipeline.store else ()
    # One that claims at-least-once need not have transactions.
    out_of_reach = OF_TOPICS if not pipeline.outputs else OF_TRANSACTIONS if pipeline.claims == AT_LEAST_ONCE else ()
    return (*(each for each in all_floors if each.name not in out_of_reach), *kept)


def copies(pipeline: Pipeline) -> PipelineWorkload:
    """The user's pipeline at work."""
    return PipelineWorkload(partitions=PARTITIONS, pipeline=pipeline)


@own_pipeline
@requirement("GRP-03", "GRP-04", "GRP-19")
def test_own_pipeline_killed(run: RunScenario, pipeline: Pipeline) -> None:
    """The pipeline copies each input as often as it claims when its instances are killed."""
    run(
        cluster=PIPELINE_CLUSTER,
        workload=copies(pipeline),
        schedule=kills(pipeline),
        floors=floors(pipeline, PIPELINE_FLOORS),
    )


@own_pipeline
@requirement("GRP-03", "GRP-19", "COORD-04")
def test_own_pipeline_while_brokers_crash(run: RunScenario, pipeline: Pipeline) -> None:
    """The pipeline copies each input as often as it claims when the coordinator of its group and a leader crash."""
    # The second one is the leader of an output. Whether it has transactions, a manifest does not say.
    schedule = BROKERS_FAIL[:2] if pipeline.outputs else BROKERS_FAIL[:1]
    run(
        cluster=PIPELINE_CLUSTER,
        workload=copies(pipeline),
        schedule=schedule,
        floors=floors(pipeline, BROKEN_FLOORS),
    )


@own_pipeline
@requirement("GRP-04", "GRP-19")
def test_own_pipeline_paused_and_cut_off(run: RunScenario, pipeline: Pipeline) -> None:
    """The pipeline copies each input as often as it claims when one instance is paused past its session, and all cut off."""
    # Only another instance can do the work of one that is paused, and an output shows that it does.
    schedule = (*PAUSED, *CUT_OFF) if pipeline.instances > 1 and pipeline.outputs else CUT_OFF
    run(
        cluster=PIPELINE_CLUSTER,
        workload=copies(pipeline),
        schedule=schedule,
        floors=floors(pipeline, PIPELINE_FLOORS),
    )
