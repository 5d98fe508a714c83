"""Spark Structured Streaming with the Kafka sink, which is documented to write at least once.

The job is `fixtures/pipelines/spark_sink/sink.py`. Spark notes in its checkpoint that a micro-batch is done after the batch
was written, and it has no transactions. So a batch that was written when the driver died is written again.
"""

from __future__ import annotations

from pathlib import Path

from chaos.faults.pipelines import KillInstance
from chaos.schedule import Step
from fixtures.pipelines.manifest import Pipeline
from fixtures.workloads import PipelineWorkload
from runner.scenarios.scenario import PIPELINE_CLUSTER, STRUCK, RunScenario, convict, nightly
from suites.pipelines.attacks import OUTPUT, PARTITIONS
from verification.vocabulary.experiment import Floor

#: A driver works again 10 to 15 s after its start, at a load of 20 after 30 s. At a load of 27 two kills met none at work.
KILLS = tuple(Step(fault=KillInstance(OUTPUT, PARTITIONS), after_s=after_s, hold_s=1) for after_s in (2, 40, 40))
SINK = Pipeline(
    name="spark-structured-streaming",
    command=("{python}", "-m", "fixtures.pipelines.spark_sink.sink"),
    directory=Path(__file__).parents[2],
    instances=1,
)


@nightly
@convict("duplicate")
def test_spark_sink(run: RunScenario) -> None:
    """A Spark job writes inputs again when its driver is killed between the sink and the checkpoint."""
    # With 600 inputs a second the job had not caught up a minute after the second kill.
    workload = PipelineWorkload(partitions=PARTITIONS, pipeline=SINK, rate=200)
    floors = (*STRUCK, Floor(name="copied_before", need=200))
    run(cluster=PIPELINE_CLUSTER, workload=workload, schedule=KILLS, floors=floors)
