"""Copiers in plain Python, as an application has them: one right way and the three usual mistakes.

The copier is `fixtures/pipelines/python_copier/copier.py`. It uses confluent-kafka and nothing of this suite.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from chaos.faults.pipelines import KillInstance
from chaos.schedule import Step
from fixtures.pipelines.manifest import Pipeline
from fixtures.workloads import PipelineWorkload
from runner.scenarios.scenario import (
    APART_CLUSTER,
    BROKEN_FLOORS,
    PIPELINE_CLUSTER,
    PIPELINE_FLOORS,
    STRUCK,
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
    ONE_CUT_OFF,
    OUTPUT,
    PARTITIONS,
    PAUSED,
)

#: Three kills: one may strike an instance that has nothing in hand.
KILLS = tuple(Step(fault=KillInstance(OUTPUT, PARTITIONS), after_s=2, hold_s=1) for _ in range(3))


def copier(*arguments: str, instances: int = 2, outputs: int = 1) -> PipelineWorkload:
    """Instances of the copier with these arguments."""
    directory = Path(__file__).parents[2] / "fixtures" / "pipelines" / "python_copier"
    command = ("{python}", "copier.py", *arguments)
    name = "-".join(["python", *(each.strip("-") for each in arguments)])
    pipeline = Pipeline(name=name, command=command, directory=directory, instances=instances, outputs=outputs)
    return PipelineWorkload(partitions=PARTITIONS, pipeline=pipeline)


@requirement("GRP-03", "GRP-04", "GRP-19")
def test_offsets_in_the_transaction(run: RunScenario) -> None:
    """A copier that commits its offsets with its outputs copies each input exactly once, however often it is killed."""
    run(cluster=PIPELINE_CLUSTER, workload=copier("transaction"), schedule=KILLS, floors=PIPELINE_FLOORS)


@requirement("GRP-03", "GRP-19", "COORD-04")
def test_copier_while_brokers_crash(run: RunScenario) -> None:
    """A copier that commits its offsets with its outputs copies each input exactly once while brokers crash."""
    run(cluster=PIPELINE_CLUSTER, workload=copier("transaction"), schedule=BROKERS_FAIL, floors=BROKEN_FLOORS)


@requirement("GRP-04", "GRP-19")
def test_copier_paused(run: RunScenario) -> None:
    """A copier that comes back after others took its partitions commits nothing that they copied."""
    run(cluster=PIPELINE_CLUSTER, workload=copier("transaction"), schedule=PAUSED, floors=PIPELINE_FLOORS)


@nightly
@requirement("GRP-04", "GRP-19")
def test_copier_cut_off_alone(run: RunScenario) -> None:
    """A copier that is cut off alone commits nothing that the others copied meanwhile."""
    workload = replace(copier("transaction"), apart=True)
    run(cluster=APART_CLUSTER, workload=workload, schedule=ONE_CUT_OFF, floors=PIPELINE_FLOORS)


@nightly
@requirement("GRP-04", "GRP-19")
def test_copier_cut_off(run: RunScenario) -> None:
    """Copiers that are cut off for longer than their transaction timeout copy each input exactly once."""
    run(cluster=PIPELINE_CLUSTER, workload=copier("transaction"), schedule=CUT_OFF, floors=PIPELINE_FLOORS)


@requirement("GRP-03", "GRP-19", "TXN-25")
def test_copier_without_answers_to_commits(run: RunScenario) -> None:
    """A copier that gets the answer to the commit of its transaction late or never copies each input exactly once."""
    schedule = (ANSWERS_LOST, ANSWERS_LATE)
    run(cluster=PIPELINE_CLUSTER, workload=copier("transaction"), schedule=schedule, floors=BROKEN_FLOORS)


@convict("duplicate")
def test_offsets_after_the_outputs(run: RunScenario) -> None:
    """A copier that commits its offsets after its outputs copies inputs again when it is killed in between."""
    run(cluster=PIPELINE_CLUSTER, workload=copier("after"), schedule=KILLS, floors=STRUCK)


@nightly
@convict("duplicate")
def test_offsets_after_the_outputs_cut_off_alone(run: RunScenario) -> None:
    """A copier without transactions that is cut off alone copies inputs again that the others copied meanwhile."""
    run(cluster=APART_CLUSTER, workload=replace(copier("after"), apart=True), schedule=ONE_CUT_OFF, floors=STRUCK)


@convict("offset-without-output")
def test_offsets_before_the_outputs(run: RunScenario) -> None:
    """A copier that commits its offsets before its outputs loses inputs when it is killed in between."""
    run(cluster=PIPELINE_CLUSTER, workload=copier("before"), schedule=KILLS, floors=STRUCK)


@nightly
@convict("offset-without-output")
def test_outputs_without_a_transaction(run: RunScenario) -> None:
    """A copier without transactions that is killed between its outputs has written some inputs to one of them alone."""
    run(cluster=PIPELINE_CLUSTER, workload=copier("before", "--apart", outputs=2), schedule=KILLS, floors=STRUCK)


@convict("aborted-read")
def test_reading_uncommitted(run: RunScenario) -> None:
    """A copier that reads uncommitted copies inputs of transactions that are aborted, without any fault."""
    # One instance: with two, the rebalance at the start doubled 12 inputs once. librdkafka asks for stable offsets only
    # with read_committed (rdkafka_assignment.c), so such a member may go on from offsets before those that are pending.
    workload = copier("transaction", "--uncommitted", instances=1)
    run(cluster=PIPELINE_CLUSTER, workload=workload, floors=STRUCK[:1])
