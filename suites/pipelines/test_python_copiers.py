"""Copiers in plain Python, as an application has them: one right way and the three usual mistakes.

The copier is `fixtures/pipelines/python_copier/copier.py`. It uses confluent-kafka and nothing of this suite.
"""

from __future__ import annotations

from pathlib import Path

from chaos.faults.pipelines import KillInstance
from chaos.schedule import Step
from fixtures.pipelines.manifest import Pipeline
from fixtures.workloads import PipelineWorkload
from runner.scenarios.scenario import PIPELINE_CLUSTER, PIPELINE_FLOORS, STRUCK, RunScenario, convict, requirement

PARTITIONS = 4
#: Three kills: one may strike an instance that has nothing in hand.
KILLS = tuple(Step(fault=KillInstance("billing-events", PARTITIONS), after_s=2, hold_s=1) for _ in range(3))


def copier(*arguments: str, instances: int = 2) -> PipelineWorkload:
    """Instances of the copier with these arguments."""
    directory = Path(__file__).parents[2] / "fixtures" / "pipelines" / "python_copier"
    command = ("{python}", "copier.py", *arguments)
    name = "-".join(["python", *(each.strip("-") for each in arguments)])
    return PipelineWorkload(
        partitions=PARTITIONS, pipeline=Pipeline(name=name, command=command, directory=directory, instances=instances)
    )


@requirement("GRP-03", "GRP-04", "GRP-19")
def test_offsets_in_the_transaction(run: RunScenario) -> None:
    """A copier that commits its offsets with its outputs copies each input exactly once, however often it is killed."""
    run(cluster=PIPELINE_CLUSTER, workload=copier("transaction"), schedule=KILLS, floors=PIPELINE_FLOORS)


@convict("duplicate")
def test_offsets_after_the_outputs(run: RunScenario) -> None:
    """A copier that commits its offsets after its outputs copies inputs again when it is killed in between."""
    run(cluster=PIPELINE_CLUSTER, workload=copier("after"), schedule=KILLS, floors=STRUCK)


@convict("offset-without-output")
def test_offsets_before_the_outputs(run: RunScenario) -> None:
    """A copier that commits its offsets before its outputs loses inputs when it is killed in between."""
    run(cluster=PIPELINE_CLUSTER, workload=copier("before"), schedule=KILLS, floors=STRUCK)


@convict("aborted-read")
def test_reading_uncommitted(run: RunScenario) -> None:
    """A copier that reads uncommitted copies inputs of transactions that are aborted, without any fault."""
    # One instance: with two, the rebalance at the start doubled 12 inputs once. librdkafka asks for stable offsets only
    # with read_committed (rdkafka_assignment.c), so such a member may go on from offsets before those that are pending.
    workload = copier("transaction", "--uncommitted", instances=1)
    run(cluster=PIPELINE_CLUSTER, workload=workload, floors=STRUCK[:1])
