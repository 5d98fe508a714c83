"""Spark Structured Streaming with the Kafka sink, which is documented to write at least once.

The job is `fixtures/pipelines/spark_sink/sink.py`. Spark notes in its checkpoint that a micro-batch is done after the batch
was written, and it has no transactions. So a batch that was written when the driver died is written again.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from chaos.faults.pipelines import KillInstance, KillPart
from chaos.schedule import Step
from fixtures.pipelines.manifest import Pipeline
from fixtures.workloads import PipelineWorkload
from runner.scenarios.scenario import PIPELINE_CLUSTER, RunScenario, convict, nightly
from suites.pipelines.attacks import OUTPUT, PARTITIONS, WORKED

#: A driver works again 10 to 15 s after its start, at a load of 20 after 30 s. At a load of 27 two kills met none at work.
KILLS = tuple(Step(fault=KillInstance(OUTPUT, PARTITIONS), after_s=after_s, hold_s=1) for after_s in (2, 40, 40))
#: The driver starts another executor within 10 s; the kill waits for it.
EXECUTOR_KILLS = tuple(Step(fault=KillPart("CoarseGrainedExecutorBackend"), after_s=5, hold_s=1) for _ in range(4))
SINK = Pipeline(
    name="spark-structured-streaming",
    command=("{python}", "-m", "fixtures.pipelines.spark_sink.sink"),
    directory=Path(__file__).parents[2],
    instances=1,
)


def writing(sink: Pipeline) -> PipelineWorkload:
    """With 600 inputs a second the job had not caught up a minute after the second kill."""
    return PipelineWorkload(partitions=PARTITIONS, pipeline=sink, rate=200)


@nightly
@convict("duplicate")
def test_spark_sink(run: RunScenario) -> None:
    """A Spark job writes inputs again when its driver is killed between the sink and the checkpoint."""
    run(cluster=PIPELINE_CLUSTER, workload=writing(SINK), schedule=KILLS, floors=WORKED)


@nightly
@convict("duplicate")
def test_spark_executor(run: RunScenario) -> None:
    """A Spark job writes inputs again when its executor is killed in a task, which another executor runs again."""
    environment = {"ONCEPROOF_EXECUTOR": "own"}
    # A cluster with an executor has three JVMs. At a load of 43 they had no output in 120 s.
    own = replace(SINK, name=f"{SINK.name}-executor", environment=environment, ready_within_s=240)
    run(cluster=PIPELINE_CLUSTER, workload=writing(own), schedule=EXECUTOR_KILLS, floors=WORKED)
